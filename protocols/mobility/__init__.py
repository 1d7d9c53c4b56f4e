"""Mobile publishers and subscribers: clients of brokers that leave one and appear at another.

The paper: V. Muthusamy et al., *Publisher mobility in distributed publish/subscribe systems*. It
runs on content-based routing (`protocols.content`). Two protocols share this folder: `Mobility`
(machine.py: who moves, and what becomes of its advertisements, below) and the keeping of what a
subscriber missed.

A client *moves out* of its broker and later *moves in* at another, or at the same one. Section 3
has four algorithms, and says that they can be combined. A publisher's settings choose:

| algorithm           | at the old broker                  | at the new broker                     |
|---------------------|------------------------------------|---------------------------------------|
| standard            | withdraws what was advertised      | advertises it again, in a new epoch   |
| prefetching         | withdraws it, tells the broker     | advertised it already, in that epoch  |
|                     | that a predictor names             |                                       |
| proxy               | keeps it: a proxy always does      | a proxy has it; any other grafts      |
| delayed             | keeps it for `teardown`            | grafts                                |
| prefetching+delayed | keeps it, tells the predicted one  | has grafted already                   |

| tag | message    | sent when                              | the receiver                         |
|-----|------------|----------------------------------------|--------------------------------------|
| 272 | MoveOut    | a client leaves, to its broker         | keeps or withdraws, tells another    |
| 273 | MoveIn     | a client comes, to its new broker      | asks the previous one to hand over   |
| 274 | Handover   | a client came, to its previous broker  | lets it go, if it had not; flushes   |
| 275 | HandedOver | what it had published has passed       | begins the new tree (lossless)       |
| 276 | StandIn    | predicted, or chosen as a proxy        | advertises for it, for a while       |
| 277 | Sound      | a tree is asked whether it stands      | asks its own branches                |
| 278 | Sounded    | all branches behind have answered      | answers in turn, or tells the client |
| 279 | TreeReady  | the wave came back (end of t4)         | publishes what waited                |
| 280 | Here       | a subscriber comes to a broker, or     | keeps for it, fetches what others    |
|     |            | wants something else                   | kept                                 |
| 281 | Hosted     | it is kept for; or not, and why        | takes from now on; or is told        |
| 282 | Batch      | something is kept, to who takes it     | takes what follows, once             |
| 283 | Taken      | it has all before a number; each beat  | forgets that, renews the lease       |
| 284 | Away       | a subscriber goes, or ends it all      | keeps for it, for so long            |
| 285 | Fetch      | a subscriber is here, to its old broker| sends the box there                  |
| 286 | Drained    | all of a box was taken; or there is    | goes on with what it got itself, or  |
|     |            | none                                   | asks an older one; or tells a gap    |

*Grafting* (in `protocols.content`, `grafts.py`). An advertisement keeps the tree that it has,
rooted at its *anchor*: the broker that told it first in this epoch. A broker at which the publisher
appears, and that knows the same advertisement from a neighbour, does not advertise anew but is a
*source* on that tree: it tells its last hop so, which tells its own, up to the anchor or to who
knows already. From there on back, each tells the branches that have sources of their own whether
there are others besides. So all brokers between sources send subscriptions to each of them, and
nobody else is told anything: the tree is the same, seen from another root. When the old broker's
time is over it is a source no more, and subscriptions on the way to it are taken back: that is all
that is extraneous. The old broker stays the anchor for as long as there is a source; if it fails,
who has the publisher advertises in its new epoch. A client says in which epoch the tree is rooted
that it has (its broker tells when a new one begins): a broker that knows an older one alone, left
over somewhere, does not use it. Where another advertisement covers it, the tree may not be known;
then it is advertised anew, which the cover keeps short. On a graph with cycles a grafted tree is a
tree, but not of shortest paths: `reanchor` builds it anew where a publisher stays.

*Standing in.* A broker that keeps or prefetches an advertisement offers it itself, in the epoch
that the client gave it. It ends when its time is over and no source needs the anchor, or when the
advertisement is known in a newer epoch. A publisher's broker renews its proxies, which are sources
on its tree all the time; who names none has the closest brokers that its first one knows of.

*The end of t4.* The paper has no way to know it. Here the publisher's broker *sounds* the tree: it
asks every neighbour to which it hands publications on; these ask theirs. A leaf answers at once,
any other when all its branches have answered or are gone, and each answer follows the lines of the
ledger in which the broker told the subscriptions behind it. So when the wave is back, all
subscriptions there were are in place. A question and an answer name the state of the ledger that
they follow: who has not read so far (a change was lost) does not answer, and is asked again. A
branch that has another way by now says so, and is asked from there. Branches that answered for a
tree are not asked again while it stands: a graft sounds the way between the two brokers alone. A
broker that does not answer for `patience` is given up and counted; then the tree is ready without
it (`complete` is false).

*Lossless handover* (`handover = "lossless"`). A client keeps what it publishes from `moveout` to
TreeReady, in order and bounded (`max_held`: then `publish` refuses). Its previous broker flushes
before the new tree is begun: it sounds its own tree behind the last publication, as far as anybody
wants what is published, so that nothing is under way on the old tree when ways change; what a
client advertised does not count at its new broker until then. Who moves on before it was handed
over is asked for from broker to broker. Such an advertisement has a tree of its own (`whole`), or
it would lose what it publishes when its cover moves. Sequence numbers go on; nothing is lost,
doubled or out of order as long as brokers and links live. With "best-effort", as in the paper,
publications go at once; with "sounded", too, but the end of t4 is told.

*Subscribers* (keeper.py at brokers, follower.py at subscribers; both use content-based routing from
outside). A mobile subscriber is no client of content-based routing: its broker *stands in* for it,
under subscriptions of its own, and keeps what matches in a *box*, a log with consecutive numbers.
Whoever takes from a box says how far it has come; what is taken is forgotten, what is not is sent
again. So a subscriber that is here, one that is silent and one that is away differ only in whether
the box is sent to it. Each stay at a broker is a *visit*, with a box and a number that grows.

*A subscriber that reappears* says where it was. The new broker stands in for it at once, holds what
it gets itself, and fetches the old box, which the old broker goes on filling for `overlap`; then
that one withdraws its stand-in, and says that this was all. What the new broker held follows,
except what the old one had as well: the epoch and sequence of each publisher's stream decide, at
the broker and again at the subscriber. So nothing waits for the handover: what is published
meanwhile comes by the old broker. Who moves on before a box was fetched leaves a chain of boxes,
each fetched by the next visit's; of two that fetch the same one the newer visit gets it. A broker
that is not sure to have had the subscriber is asked first, then the one before it.

*A gap* is told, in its place, when a bound (`max_kept`, `max_bytes`, `max_age`, `max_total`) put
something out, when an old broker is silent for `fetch_within` or has forgotten the box, and when
a broker with a disk was restarted: it has what it kept, but not what was published meanwhile. A
box of which nothing was heard for `keep_for` expires.

*Seam with the subscribers' side.* On a broker `ClientMovedOut` is emitted while the client's
entries are still in the tables, and `ClientMovedIn` with the name of the previous broker. On the
client, `moveout` and `movein` emit `MovedOut` and `MovedIn`.

Invariants
- A broker stands in for an advertisement until a bounded time from now, or while it has a source.
- (content) Graft lines follow the tree of their advertisement's epoch; with no source none is left.
- A box holds exactly the numbers from `oldest` to `next`; none after `taken` is forgotten untold.
- A subscriber gets each stream in growing order of (epoch, sequence), from whatever boxes.
- A client's held publications are bounded, and leave in the order of their sequence numbers.
- (scenarios) Once all is quiet, the tables are those of a system built in the final placement;
  lossless handover lost and doubled nothing.
"""

from protocols.mobility.config import MobilitySettings
from protocols.mobility.events import (
    ClientMovedIn,
    ClientMovedOut,
    MovedIn,
    MovedOut,
    MoveUnanswered,
    TreeStands,
)
from protocols.mobility.follower import Follower
from protocols.mobility.keeper import Keeper
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_events import (
    BoxExpired,
    BoxHandedOver,
    Gap,
    NotKept,
    Received,
    Settled,
    SubscriberAway,
    SubscriberBack,
)
from protocols.mobility.machine import Mobility

__all__ = [
    "BoxExpired",
    "BoxHandedOver",
    "ClientMovedIn",
    "ClientMovedOut",
    "Follower",
    "Gap",
    "Keeper",
    "KeepingSettings",
    "Mobility",
    "MobilitySettings",
    "MoveUnanswered",
    "MovedIn",
    "MovedOut",
    "NotKept",
    "Received",
    "Settled",
    "SubscriberAway",
    "SubscriberBack",
    "TreeStands",
]
