"""Beacons: nodes of one overlay find each other on a LAN, with no address given.

| tag | message      | cast when                                   | the receiver                  |
|-----|--------------|---------------------------------------------|-------------------------------|
| 144 | Query        | to the groups: at the start and whenever it | answers, or leaves it to      |
|     |              | is alone, at once, then ever more rarely    | others; if alone, tries it    |
| 145 | Answer       | to the sender of a Query, at once           | tries it, if it asked for it  |
| 146 | Announcement | to the groups, as the Trickle timer says    | tries it, if it is unknown    |

All are datagrams of one shape (`Presence`): overlay, fingerprint of its authority, zone, how many
members that has, version, endpoints. The envelope holds the name, signed where there are keys, and
the name's hash is the VID. What comes of another overlay or authority is counted, nothing else.

To *try* a node of the own zone is to tell the driver where it is (`ContactLearned`) and the
membership that it is there (`PeerMet`), which sends it a Join; `parallel` of them at once. A link
proves who lives at an address, so a made-up beacon costs an attempt in vain and no more. Nodes of
other zones are only told (`PeerMet` with their zone): the federation asks them when it needs to.

How few say how much, on a LAN of n members of one zone:

- A Query carries the number of its attempt, a. Each hearer answers with the probability
  `answers · 4^a / n`, so about 8, 32, 128 do, whatever n is. n counts the members in its view,
  and those it heard lately who are none yet, when all start at once. Members of another zone
  answer for theirs in the same way, with `stranger_answers`.
- One that is alone asks after 0.1, 0.3, 0.7, … s, in the end every `query_longest`; for a second
  not, after somebody of its zone answered. Whoever was given addresses asks only after
  `after_seeds`: they are the better way, where they work.
- Announcements follow Trickle (RFC 6206): about `redundancy` in an interval, of all members
  together; the interval doubles up to `announce_longest`, and is short again when a member fails
  or an unknown one is heard.
- Fallbacks where multicast is blocked: seeds, which do not wait for anybody; after
  `fallback_after` the last known peers of the same overlay, authority and zone, and `NobodyFound`,
  at which mDNS may `suggest` candidates, and BDNs are asked for brokers to meet.

Bounds: `parallel` candidates in trial and `waiting` in the queue, at most half of them of one
host; beacons of one name and of one host, and answers, per second; 256 buckets; 8 open queries;
256 beacons whose copies are known; 1,024 names that were heard.

Invariants: who is alone has a query under way and announces nothing; who is not has its Trickle
timer running and asks nothing; the bounds hold; no member is in trial for its own zone.
"""

from protocols.beacon.config import BeaconSettings
from protocols.beacon.events import NobodyFound, PeerFound
from protocols.beacon.machine import Beacon
from protocols.beacon.messages import Announcement, Answer, Presence, Query

__all__ = [
    "Announcement",
    "Answer",
    "Beacon",
    "BeaconSettings",
    "NobodyFound",
    "PeerFound",
    "Presence",
    "Query",
]
