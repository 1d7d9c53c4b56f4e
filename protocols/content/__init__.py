"""Content-based routing: publications find subscriptions by what they say, over linked brokers.

The paper: W. Yan et al., *Efficient event-based resource discovery* (DEBS 2009), section 3; the
handlers of advertisements and subscriptions with covering: V. Muthusamy et al., *Publisher
mobility in distributed publish/subscribe systems*, figures 2 and 3. Constraints, items and their
relations: `overlay.predicates`. One instance per node, in the node's own scope, as a *broker* or
as a *client* of one broker. Brokers are linked as their settings say; cycles are welcome.

A publisher *advertises* what it is going to publish. Every broker keeps it in its SRT with the
*last hop* on the way to the publisher. A subscription follows intersecting advertisements back,
hop by hop, and every broker on the way keeps it in its PRT with the hops that it came from. A
publication follows matching subscriptions.

| tag | message     | sent when                              | the receiver                        |
|-----|-------------|----------------------------------------|-------------------------------------|
| 208 | Greeting    | each `beat`, to neighbours and broker  | renews the lease, compares ledgers  |
| 209 | Change      | lines of a ledger changed in this tick | takes them, or asks again           |
| 210 | Again       | a change was lost, or ledgers differ   | tells the whole ledger              |
| 211 | Page        | asked                                  | replaces its copy with the last one |
| 212 | Publication | a matching subscription came from there| hands it on and delivers it, once   |
| 213 | Refused     | a bound or a right was passed          | tells the application               |

*Links.* A link is up once both ends said that they hear the other, and for as long as they do; a
link that carries one way alone carries nothing.

*Ledgers.* Whatever one node tells a neighbour is a ledger with lines, of advertisements, grafts
and subscriptions; what it holds is a function of the teller's own tables. Changes are counted.
Who misses one, or sees another digest in a greeting, asks for the whole ledger. So a new link, a
neighbour that returned and a lost message are mended in the same way, and two neighbours that
agree say so in one message of 40 bytes per beat.

*Advertisements* spread with the path that they took (a path vector). A broker chooses the newest
epoch, then the shortest path, then the first in the order of names; tells its own choice with
itself in front; and never to who is on the path. So every publisher has one tree, of shortest
paths, on any graph; when a link goes the next best path takes over, and no loop outlives the
messages under way. Departs from the flooding of section 3, where the first arrival wins.

*Subscriptions* go to the last hop of each advertisement that they intersect, unless they came
from there, or from brokers that have a way of their own to that publisher. They carry a path as
well: around a cycle a subscription can come back to a broker. Such a line is a way for
publications, but does not keep the subscription alive, or it would outlive its subscriber.

*Covering.* A subscription is not told to a neighbour that was told another one that covers it
(figure 3, line 6, with the subscription itself left out). When that one goes, what it had
suppressed is told. An advertisement is not told to a neighbour that was told its *cover*: of all
advertisements that cover it and are covered by none, the senior one (the lowest epoch, then id).
Departs from figure 2, line 6, where any advertisement told to that neighbour suppresses: on a
graph with cycles two covers can then suppress a third from both sides, so that no subscription
finds it. One cover, the same for all brokers, cannot: nothing stops an advertisement on its way to
its cover's broker, and everybody's subscriptions go there. `whole` advertisements are
told to all, and take no part in covering.

*Grafts.* A publisher may publish elsewhere on the tree of its advertisement than where that is
rooted (`grafts.py`; for clients that move, `protocols.mobility`). Lines of a third kind tell on
which sides of a broker there are sources: upwards from each of them, and back whether there are
others. Between sources subscriptions go to all of them; where the anchor has none, not to it.

*Publications* go down the tree of their advertisement, to neighbours from which a matching
subscription came and that have no other way to the publisher; where it is covered, down the tree
of its cover, which the publication then names. They carry a sequence number. A broker hands them
on in growing order only: what comes twice, or too late, ends there. After a tree changed, some
come by a new way while others are under way on the old one; those wait for up to `settle`.
What is lost with a link is lost: this routing is best effort, and at most once.

*Clients* tell their broker their own entries, whatever others advertise, and get publications.
What a client leaves behind goes with its lease. Ids are OWNER/NAME and hold no broker, so that a
client may turn to another one: there its entries have a newer epoch, and win.

*What is trusted.* Only who may have the role "broker" is a neighbour, and is believed as to what
others advertise. A client tells entries of its own name alone. A publication that its
advertisement does not determine is refused at the publisher, and at any broker that knows it.

Invariants
- The choice for each advertisement is the best of its offers, and has this broker not in its path.
- Each neighbour's ledger holds exactly: the chosen advertisements that it may be told and no cover
  suppresses; of the subscriptions that it must get, all but those that another one told covers.
- A neighbour is told of grafts exactly if it is the last hop of what has a source on this side, or
  a branch that has one of its own.
- Publications of one epoch are handed on in strictly growing order.
- Everything is bounded (`content.max_*`), and what a bound refused is counted.
- (scenarios) Once all is quiet, a publication reaches every matching subscription exactly once.
"""

from protocols.content.config import ContentSettings
from protocols.content.events import (
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
    BrokerAttached,
    BrokerLost,
    ClientAttached,
    ClientGone,
    Delivered,
    EntryRefused,
    NeighbourDown,
    NeighbourUp,
)
from protocols.content.interface import (
    Advertised,
    ContentRouter,
    ContentView,
    EntryId,
    Subscribed,
    entry_id,
    owner_of,
)
from protocols.content.machine import Content

__all__ = [
    "Advertised",
    "AdvertisementAdded",
    "AdvertisementChanged",
    "AdvertisementRemoved",
    "BrokerAttached",
    "BrokerLost",
    "ClientAttached",
    "ClientGone",
    "Content",
    "ContentRouter",
    "ContentSettings",
    "ContentView",
    "Delivered",
    "EntryId",
    "EntryRefused",
    "NeighbourDown",
    "NeighbourUp",
    "Subscribed",
    "entry_id",
    "owner_of",
]
