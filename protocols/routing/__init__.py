"""Routing in a zone: a message to a key's member, to everybody, and sums over everybody.

SpiderCast §2 and §3 build on this: key-based routing over the structured overlay ([Stoica01]),
and dissemination in a zone by splitting the ring ([El-Ansary03]). Payloads are opaque.

| tag | message   | sent when                               | the receiver                       |
|-----|-----------|-----------------------------------------|------------------------------------|
| 64  | RouteStep | a message is not at its member yet      | delivers it or hands it on         |
| 65  | Taken     | the end of what was handed over is open | waits, and asks after `ask_again`  |
| 66  | RouteDone | a route arrived, or found no way        | passes it back; its origin ends it |
|     |           |                                         | or tries again after a pause       |
| 67  | Spread    | a range of the ring is to be reached    | delivers it, splits the rest,      |
|     |           |                                         | hands on, and sums up the reports  |
| 68  | RangeDone | all parts of a range have ended         | adds the report to its own         |
| 69  | Ask       | a peer took something and tells no end  | tells it, or Taken again           |

Routes. Each hop sends a message to its neighbour nearest to the responsible member, clockwise or
not, strictly nearer than itself; with harmonic links that takes O(log n) hops. `direct` goes past
the overlay in one hop (§2.1's one-hop DHT). A hop answers for what it took: it repeats it, chooses
another way when the next hop is silent or gone, and passes the end back, so the origin hears
`Routed` or, at its deadline, `RouteFailed`. Nobody keeps it longer than its origin has patience.

Ranges. The origin cuts the ring into arcs, each headed by one of its neighbours; a head takes its
own place out and cuts the rest among its neighbours in it. Parts tile an arc, so each member is in
one, known to the sender or not, and no part holds a place where the message has been: a tree, in
which each gets one copy, O(log n) deep. Past log2 n levels (links are still being made) a range is
halved over links or not. Arcs with nobody interested, by the sender's view, are left out. A head
that is silent or gone is left out too, and its arc cut anew; whoever gets a copy by both ways
delivers one. A silent member alone in its arc is tried until it is gone, or until the deadline.

Convergecast is the way back: each report counts the members reached and missing, and merges their
aggregates. Members count in the tree whose reports are accepted, so nobody counts twice.

Trust. A member is believed what it hands over for others. Refused, with these reasons:
`forged-origin` (a first hop for somebody else), `hop-limit`, `range-elsewhere` (it does not hold my
place), `range-too-wide` (it holds its sender's or its origin's place, as the whole ring does),
`unsound-aggregate`. What comes from or began at a stranger, who may be a newcomer, and what is too
much at once is turned away in silence, and counted: its sender tries again or takes another way.

Invariants (`check_invariants`, and the scenarios in nodes/scenarios/routing.py)
- Everything that began here ends in exactly one event; each transfer belongs to one route or range.
- While something waits the sweep timer is set. What is open, held and remembered is bounded.
- A member delivers a route or a broadcast at most once while it remembers its id (`remember_for`).
- In a zone at rest a broadcast reaches each member once, and a route the responsible member.
"""

from protocols.routing.aggregates import Aggregate
from protocols.routing.config import RoutingSettings
from protocols.routing.events import (
    AggregateDone,
    BroadcastArrived,
    BroadcastDone,
    RouteArrived,
    Routed,
    RouteFailed,
)
from protocols.routing.interface import Interest, Router
from protocols.routing.machine import Routing
from protocols.routing.messages import Ask, RangeDone, RouteDone, RouteStep, Spread, Taken

__all__ = [
    "Aggregate",
    "AggregateDone",
    "Ask",
    "BroadcastArrived",
    "BroadcastDone",
    "Interest",
    "RangeDone",
    "RouteArrived",
    "RouteDone",
    "RouteFailed",
    "RouteStep",
    "Routed",
    "Router",
    "Routing",
    "RoutingSettings",
    "Spread",
    "Taken",
]
