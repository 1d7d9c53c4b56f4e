"""The time service: all nodes of an overlay agree on one time, and each knows how well.

| tag | message     | sent when             | the receiver                              |
|-----|-------------|-----------------------|-------------------------------------------|
| 128 | TimeRequest | a source is polled    | answers, at most `serve_rate` times a s   |
| 129 | TimeReply   | a TimeRequest arrived | takes the sample, votes, steers its clock |

Both are datagrams. A poll gives the four timestamps of NTP (RFC 5905): asked and heard by the
poller's clock, received and sent by the source's. They measure how the two *node clocks* differ;
beside them a source tells what it adds to its own clock (`offset`, `rate`), how wrong that may be
(`error`) and whom it follows. Departs from NTP, where timestamps are disciplined time already: so
samples stay good while the source still corrects itself, and a zone that starts settles together.

Overlay time is the node's clock plus an offset that is slewed and never lets it run backwards. It
is worth what a zone's founder made of it: its own clock, unless NTP servers are configured.

Whom a node asks. Members are ordered by seniority (`born`, `life`, name: fixed for a life). Three
in that order are a committee; a committee takes its time from the one above, which serves three
others. So nobody serves more than a dozen, whatever the size of the zone. The first member follows
nobody: the *root*. Beside up to three seniors a node asks random members, which may only vote; who
lacks seniors asks more of those. Who starts asks them all, and takes what they agree on.

Other zones (`abroad`). Zones have an order, too: the larger leads, in a tree. A delegate asks
delegates of zones that lead its own and takes their time, against which its zone has no word; its
replies say so (`led`). The first committee of its zone follows delegates who say so, if more than
half of them agree, and all others follow that committee. A zone whose clock is moved so moves as a
whole, and one liar, delegate or not, moves none. A supervisor, which is in no base zone, is led by
all zones.

Whom it believes. Each source states an interval for the offset: its sample with the least delay,
± delay/2, what the clocks may have drifted since, and the source's own error. A synchronised node
adds an interval of its own. The largest set of intervals that share a point wins (Marzullo, as
NTP selects); of equal ones that with the most senior member. Others are falsetickers. Among
the winners a node follows those it may follow. A member whom all others contradict, the root too,
gives in to them. NTP servers are voted on among themselves: peers have no word against them.

What the stated error means: true while one source that won is honest, whatever asymmetry the way
to it has, for no delay is asymmetric by more than its whole length.

Invariants:
1. Overlay time, as told, never decreases.
2. A synchronised node follows only members senior to it, servers, NTP, and leading zones by way of
   their delegates or its own; so nobody follows itself by any number of hops, whatever the views
   of the members are. Between zones views of their sizes may differ for a moment: nobody follows
   who has its own time from it. It may yield to juniors, as root, for one correction at a time.
3. The root's death needs no election: the next in order follows nobody already, and goes on with
   the overlay time that it has; while its seniors live and are not heard, as their time, with an
   error that grows. A newcomer takes the time of the zone before it serves any.
4. Only a reply with the number of an open request, of the peer that was asked, is a sample.
5. At most `sources` members, three delegates of leading zones and the configured servers are
   polled; open requests and samples are bounded.
6. No reply is more than twice as long as its request, for nobody proves its address here.

What remains: a founder that tells each member another time splits a zone that never had a
common one; its members see each other as falsetickers, and the senior one wins. Two parts of an
overlay that meet after they had times of their own: the smaller zones move. NTP belongs on all
nodes: a zone with NTP follows nobody else, and leads only if it is the largest.
"""

from protocols.timesync.config import TimeSettings
from protocols.timesync.events import FalsetickerFound, TimeSynchronised
from protocols.timesync.interface import OverlayTime
from protocols.timesync.machine import TimeSync
from protocols.timesync.messages import TimeReply, TimeRequest

__all__ = [
    "FalsetickerFound",
    "OverlayTime",
    "TimeReply",
    "TimeRequest",
    "TimeSettings",
    "TimeSync",
    "TimeSynchronised",
]
