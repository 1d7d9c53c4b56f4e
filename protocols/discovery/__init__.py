"""Discovery: the nearest broker, by way of BDNs, known brokers or multicast (the paper's §2 to §9).

Three machines share these messages. `Requester` asks and chooses, `Broker` answers and hands
requests on, `Bdn` lists brokers and injects requests. A node may be a requester and one of the
other two; in one scope it is not both a broker and a BDN, since both take requests.

| tag | message          | sent when                        | the receiver                  |
|-----|------------------|----------------------------------|-------------------------------|
| 160 | Advertisement    | a broker starts, changes, renews | stores it or not; the Ack     |
| 161 | AdvertisementAck | an Advertisement arrived         | renews by its lease, or later |
| 162 | BdnAnnouncement  | a BDN starts, and regularly      | advertises there, if it wants |
| 163 | Request          | a discovery begins; each attempt | RequestAck; Inject; Response  |
| 164 | RequestAck       | a Request arrived                | proves its address, or waits  |
| 165 | Inject           | an address is proven             | hands it on, Response by UDP  |
| 166 | Response         | a Request or Inject is answered  | is a candidate                |
| 167 | Ping             | several times to each target     | Pong                          |
| 168 | Pong             | a Ping arrived                   | is a round trip               |
| 169 | Probe            | a BDN measures its brokers       | ProbeReply                    |
| 170 | ProbeReply       | a Probe arrived                  | is the broker's distance      |
| 171 | BrokerLink       | brokers are linked, and regularly| hands requests on to it       |
| 172 | Hold             | a BDN may hand requests there    | does nothing: the link is used|

Over links go Inject, BrokerLink and Hold; everything else is a datagram, signed by the driver, and
sealed where its reader is known; pings and probes are not sealed: they hold nothing.

**When collecting ends** (§9 leaves it to the timeout). Who takes a request on tells to whom it was
handed: a BDN in its RequestAck, a broker in its Response. So the requester knows whom it waits for,
and ends collecting at the first of these:
  1. `max_responses` have come;
  2. everybody who was handed the request has answered (not after a multicast: nobody can know who
     heard it);
  3. attempts were acknowledged and brought nobody new: `fruitless` of them, or one after a
     multicast in which nobody is missing and nothing was lost;
  4. 80 % of `timeout` are over.
Then the target set is pinged. That ends when all have answered, or 2 × the slowest round trip +
`ping_slack` after it began, and never past `timeout`: see `pinging`.

**Attempts.** A retransmission has a higher attempt number and the digests of those who answered: so
brokers that remember the request (§4: the last 1,000) hand it on and answer again, but for those.
The same attempt twice is a duplicate: acknowledged by a BDN, and nothing else.

**Addresses are proven.** A request with a false address would make a whole network answer there. A
BDN or broker hands a request on only with a cookie that it sent to that address before, which costs
the first request one round trip more. A broker that is asked directly answers at once, with no more
than twice the bytes of the (padded) request.

**Time.** Every answer tells overlay time, and how far that may be off. All of them were told after
the request left and before they arrived, so together they tell a visitor, whose clock may show
anything, what overlay time it is: see `timing`. A delay is estimated with its error from that.

**A liar** may claim any timestamp and load: an impossible delay ranks last, and pings decide.

Departs from the paper: delay = now − sent (§6 reverses it); metrics are normalised (§9's memory in
MiB would swamp the rest); a BDN also injects at one broker of every unconnected component (§4's
closest and farthest alone would miss them); the least of several pings decides, not their mean.

Invariants: a discovery ends exactly once, by BrokerFound or NoBrokerFound, within `timeout`; every
table is bounded by a setting; nothing but a proven address makes a request travel.
"""

from protocols.discovery.bdn import Bdn
from protocols.discovery.broker import Broker
from protocols.discovery.config import TOPIC, BdnSettings, BrokerSettings, DiscoverySettings
from protocols.discovery.events import (
    Advertised,
    AdvertisementChanged,
    BrokerDelisted,
    BrokerFound,
    BrokerListed,
    BrokerMoved,
    Candidate,
    NoBrokerFound,
    Phases,
)
from protocols.discovery.machine import Requester
from protocols.discovery.messages import Advertisement, Usage

__all__ = [
    "TOPIC",
    "Advertised",
    "Advertisement",
    "AdvertisementChanged",
    "Bdn",
    "BdnSettings",
    "Broker",
    "BrokerDelisted",
    "BrokerFound",
    "BrokerListed",
    "BrokerMoved",
    "BrokerSettings",
    "Candidate",
    "DiscoverySettings",
    "NoBrokerFound",
    "Phases",
    "Requester",
    "Usage",
]
