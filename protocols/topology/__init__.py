"""Topology of a zone: which members keep a link, so that the zone holds together and routes fast.

SpiderCast §1.1 asks for a ring by virtual id and names a structured overlay; its predecessor
(DEBS 2007) adds random and interest-aware links. Every member knows all others (membership), so
each chooses its links alone; what takes a protocol is that both ends agree on them.

| tag | message     | sent when                              | the receiver                       |
|-----|-------------|----------------------------------------|------------------------------------|
| 48  | LinkRequest | a member wants a link; repeated        | LinkAccept, or LinkRefused if full |
| 49  | LinkAccept  | a request arrived                      | holds the link up; LinkCheck       |
| 50  | LinkRefused | the degree bound leaves no room        | chooses somebody else              |
| 51  | LinkDropped | a link is over, or never was           | gives it up, and chooses again     |
| 52  | LinkCheck   | a link went up or its reasons changed; | holds the link up; if it does not  |
|     |             | each `check_period`                    | know it: accepts it or LinkDropped |

Reasons. An end has its own reasons for a link (`Kind`), and tells them to the other. A link lives
while either end has one; when both know that neither has, it ends. So nobody loses a link that
it needs because its other end does not.

- RING: the `ring_links` nearest on either side. Where views agree both ends choose each other, and
  the degree bound does not count these links nor refuse them: a zone is connected while its members
  reach each other. Where views differ, a claim on the ring counts as any other link.
- STRUCTURED: about `structured_links` × log2 n members at harmonic distances n^u, drawn anew when
  the zone has doubled or halved (Symphony).
- RANDOM: `random_links` members anywhere.
- INTEREST: `greedy_coverage` + `random_coverage` neighbours share each of my topics, whatever their
  link is for (`coverage.py`). A link that no topic needs any more is released, one at a time.

Agreement. An end holds a link *up* once it knows that each hears the other: it got a LinkAccept or
a LinkCheck. All messages are idempotent statements about the sender's state, so losses, duplicates
and overtaking are mended by the next LinkCheck; an end that hears none for `silence` periods ends
the link. A one-way cut leaves no link up on one end only.

Stability. A choice stays until its member goes, refuses or falls silent. Links follow the view
after `review_delay`, at most `changes` new ones per review besides the ring's, so a mass join or
failure causes a bounded rate of requests, and a member that refused is not asked again for a while.

Invariants (`check_invariants`, and the scenarios in nodes/scenarios/topology.py)
- Neighbours are members, and never oneself.
- At most `max_degree` links lead to others than the nearest on the ring.
- Unless a review waits, each of the nearest on the ring, by the view, is a neighbour.
- Eventually links are symmetric, and each live member has the ring links that the view asks for.
"""

from protocols.topology.config import TopologySettings
from protocols.topology.events import NeighbourAdded, NeighbourRemoved
from protocols.topology.interface import TopologyView
from protocols.topology.kinds import Kind
from protocols.topology.machine import Topology
from protocols.topology.messages import (
    LinkAccept,
    LinkCheck,
    LinkDropped,
    LinkRefused,
    LinkRequest,
)

__all__ = [
    "Kind",
    "LinkAccept",
    "LinkCheck",
    "LinkDropped",
    "LinkRefused",
    "LinkRequest",
    "NeighbourAdded",
    "NeighbourRemoved",
    "Topology",
    "TopologySettings",
    "TopologyView",
]
