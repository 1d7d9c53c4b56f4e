"""Membership of one zone: every member knows every other, its state and its attributes.

SpiderCast §1.1 asks for a gossip-based full view of each zone and leaves the algorithm open. Ours
is SWIM (probes, indirect probes, suspicion, refutation) with Lifeguard's local health, and an
anti-entropy by digest instead of by full state. One instance serves one zone, its scope.

| message        | tag | from -> to                | says                                         |
|----------------|-----|---------------------------|----------------------------------------------|
| Ping           | 32  | prober -> member          | are you there? digest of my view, news       |
| Ack            | 33  | member -> prober          | yes, in this life; digest of my view, news   |
| PingRequest    | 34  | prober -> helper          | ask that member for me                       |
| IndirectAck    | 35  | helper -> prober          | it answered, or: it did not, but I am here   |
| Gossip         | 36  | member -> a few members   | news, right away                             |
| Join           | 37  | newcomer -> contact       | this is me; may I?                           |
| JoinReply      | 38  | contact -> newcomer       | one piece of the view                        |
| JoinRefused    | 39  | contact -> newcomer       | no, because ...                              |
| Sync           | 40  | member -> member          | digests of all buckets of my view            |
| SyncSummary    | 41  | member -> member          | what I hold in the buckets that differ       |
| SyncRecords    | 42  | member -> member          | what you lack; and what I lack               |

Detection. Each half of `probe_period` a member pings once: in turn its ring successor and the next
of its partners (`partners.py`: a dozen members to whom links are open); when there was no news for
a while the successor still in every period, and a partner in every third. Departs from SWIM, whose
random targets leave a member unwatched for 4.6 periods in one of a hundred cases, and need a link
to everybody: here one member watches each other in every period. A member that does not answer in
time is pinged again, directly and through helpers; then it is suspected, and everybody hears of it.
Who hears nothing of its helpers either asks others, more patiently, before it accuses anybody: it
may be slow itself. Its nearest neighbours on the ring see for themselves, with one helper each,
since a suspect may have more to do than it can: their accusations are the independent confirmations
that shorten the suspicion from `suspicion_max` to `suspicion_min`, and go to the other accusers
only, whose verdict it is (told to everybody, they cost seven times the messages at 1,000 members).
A lost link is a hint: it starts such an urgent probe, never a verdict, and only if several members
saw links close *and* got no answer is the suspicion as short as `abrupt_min`; of these accusers all
hear by gossip. Of a crowd of lost links (a partition) a few at a time are asked through helpers:
the zone's members share that work. The accused refutes by a higher incarnation, to its accusers
first. A verdict without the suspicion that should have come before it is verified by an urgent
probe: it may have waited in a link that was broken.

Dissemination. News is sent at once to a few partners and a neighbour on the ring, and rides on
every Ping and Ack, a few times, and once less for each peer that tells the same; half of each
packet is reserved for member states and half for attributes. Every Ping and Ack carries a digest of
the view; if it differs, the two reconcile (Sync), bucket by bucket, so a view heals however the
news was lost, and an idle zone pays 9 bytes for it. That somebody died is not believed from such a
memory but verified. The dead are remembered for `remember_dead`, and the zone together knocks at a
few of them in each `knock_period`: one answer, and two healed partitions merge, each member
knocking at its share of the others.

Attributes are written by their owner alone, in versions that rise over all its lives. An owner
that hears of a version it did not write overrules it by a higher one.

Time that nobody witnessed does not count: after a hang, a sleep or a jump of the clock, timeouts go
on where they were (`clock.py`), so a node that wakes up accuses nobody. A timeout that ends late is
put off once, until what came meanwhile is read.

Invariants (`check_invariants` looks at what changed, `audit` at everything, and the scenarios in
nodes/scenarios/membership*.py at all members together)
- A name is in the view once; the ring and the digest hold exactly the members that are present
  (alive or suspect).
- For each name (incarnation, state) never goes back while it is remembered; a version of an
  attribute never goes back within one life of its owner, and is higher in its next life.
- I am present in my own view, with the highest incarnation that I ever heard about me.
- A member that is alive and connected is eventually in each connected view, a dead one in none.

Incarnations. A life begins at max(stored + 1, clock in ms): either alone survives the loss of the
other, and if both are lost the contact's JoinReply tells how far the earlier life had come. So
an incarnation more than a day ahead of my clock (or of what the contact that let me in showed)
is nobody's, and refused; gossip cannot move that horizon (`horizon.py`).

Rights. Whoever's certificate does not allow the zone is not let in, and nothing that it says
counts. A certificate is seen when its owner connects: one that a member vouched for before that
cannot answer probes, and goes the way of the dead.

Names. A Join under the name of a present member makes the contact probe it: if that life answers,
the newcomer is refused. Where the two meet by gossip only (two partitions), the older life
raises its incarnation whenever it is overtaken, and the newer one, overtaken `TWIN_PROOFS` times,
stops itself with NameTaken.
"""

from protocols.membership.config import MembershipSettings
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    NameTaken,
    ZoneEntered,
)
from protocols.membership.interface import MembershipView
from protocols.membership.machine import Membership

__all__ = [
    "AttributesChanged",
    "MemberFailed",
    "MemberJoined",
    "MemberLeft",
    "MemberRefuted",
    "MemberSuspected",
    "Membership",
    "MembershipSettings",
    "MembershipView",
    "NameTaken",
    "ZoneEntered",
]
