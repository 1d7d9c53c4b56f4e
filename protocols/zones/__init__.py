"""Zones: base zones federated by a management zone, through delegates and supervisors.

SpiderCast §1.1: each base zone is represented in a management zone by some of its own members
(delegates); nodes of the management zone alone (supervisors) look after zones they are no members
of. One instance per node, in the node's own scope. It reads the full view of its base zone, and,
while this node is a delegate or a supervisor, that of the management zone, whose membership is
the same code in the scope `@management`.

| tag | message         | sent when                              | the receiver                    |
|-----|-----------------|----------------------------------------|---------------------------------|
| 80  | ContactsRequest | in the management zone, now and then,  | answers with Contacts           |
|     |                 | to who is not known to be in it        |                                 |
| 81  | Contacts        | asked; by a supervisor, to members of  | joins the sender if it is       |
|     |                 | a zone whose delegates are all gone    | inside, asks whom it names      |
| 82  | TableRequest    | each `table_period`, to a delegate; at | tells all zones, if they differ |
|     |                 | once when a sibling says `refresh`     |                                 |
| 83  | TablePage       | a TableRequest came                    | with the last page takes them   |
| 84  | MembersRequest  | `ask_members`; each page; forwarded    | answers, asks on, or denies     |
| 85  | MembersPage     | it is the sender's zone to know        | passes it on, or asks for more  |
| 86  | MembersDenied   | the sender cannot know                 | asks somebody else              |
| 87  | RosterDigest    | a delegate's zone changed; regularly   | (supervisor) fetches the roster |

Delegates. Everybody elects alike from the full view, without votes: who serves stays, then the
oldest life, then the ring (`election.py`). Who is elected for `appoint_after` takes office: it
sets the role `delegate` in its base zone and emits DelegateAppointed. The recipe hears that,
starts the membership of the management zone and hands it over (`enter_management`);
DelegateDismissed ends it. So a dead delegate is replaced as soon as the view lacks it.

The management zone. A delegate shows zone, size and summary as attributes there; everybody in it
computes the directory from them (`directory.py`), and which supervisors look after which zone
(rendezvous hashing of names). A zone without delegates stays listed for `vanish_after`, then it
is gone.

Finding it. A delegate tells its zone, by the attribute `management`, of nodes in the management
zone: a supervisor or two and delegates of several other zones, the same while they live. So
whoever is next knows them, though all delegates died at once. More come from the configuration,
from addresses that answered, and from an earlier life's disk. A node never sends a Join on
hearsay: it asks by ContactsRequest, which any node answers, and joins only who says to be inside.
A supervisor calls members of a zone that lost all delegates.

Reunion. A delegate that sees another one of its own zone who is not in its view joins it: so
members who know only nodes of other zones find each other, and a split zone heals sooner.

Members of zones. A delegate answers for its zone, a supervisor for its zones from what delegates
last told it; both forward for members of their zone. Pages are bounded, and asked for one by one
by a cursor on the ring, so nobody keeps state for an asker but who forwards, for one page.

Rights. A claim to stand for a zone, or to be a supervisor, that the claimant's certificate does not
allow (`may_join`, `may_be`) is counted and ignored.

Invariants
- A node is a delegate exactly when it counts itself among its zone's delegates.
- A node in the management zone never stops looking for unknown parts of it.
- A zone in the directory has a delegate, or a timer that makes it vanish.
- At most `max_open` questions are open; each has a timer; each ends in exactly one event.
- A reply to what is not open is counted as late and changes nothing.
- (scenarios) A zone with members has a delegate or a supervisor after one detection time, and in
  the end all directories agree.

Departs from §1.1, which leaves the protocol open: supervisors keep no full membership of their
zones but rosters fetched from delegates, so that a zone's gossip never leaves it.
"""

from protocols.zones.config import ZonesSettings
from protocols.zones.events import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    ZoneVanished,
)
from protocols.zones.interface import (
    DELEGATE,
    MANAGEMENT,
    SUPERVISOR,
    MemberEntry,
    ZoneDirectory,
    ZoneEntry,
    check_zone_name,
)
from protocols.zones.machine import Zones

__all__ = [
    "DELEGATE",
    "MANAGEMENT",
    "SUPERVISOR",
    "DelegateAppointed",
    "DelegateDismissed",
    "MemberEntry",
    "ZoneAppeared",
    "ZoneChanged",
    "ZoneDirectory",
    "ZoneEntry",
    "ZoneMembersKnown",
    "ZoneMembersUnknown",
    "ZoneVanished",
    "Zones",
    "ZonesSettings",
    "check_zone_name",
]
