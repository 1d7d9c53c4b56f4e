"""The distributed hash table: keys and values, kept by several servers each.

SpiderCast §2. One instance per node, in the node's own scope. Members with the role `dht` are
*servers*; all others are clients, which ask through a server (their *access point*).

Consistency in one sentence: **every operation on a key takes effect at one instant between its
call and its answer, on the value that the operation before it left (linearizable for each key),
and where no majority of the key's replicas can be reached it is refused, or, if it may have taken
effect, said to be unknown.** `get(stale_ok=True)` alone may answer with an older value, or with
one whose write is not acknowledged yet.

Shards. The first `shard_bits` bits of a key's SHA-256 name its *shard*. Keys of a shard share a
*replica group*, so that consensus is about shards and not about each key; a key that nobody ever
wrote has a group as well. The shard's place on the ring of a zone is its first key, and the first
servers at or after it keep it: by their VIDs as in §2.1 if `node_points` is 0, else by several
salted places of each, as long as they have room, and all lead alike (`layout.py`). Whole shards
divide evenly where there are many: 16 or more for each server (`shard_bits`).

Many zones (§2.2). The upper tier ring (UTR) has `slice_points` points for each slice of each
storage zone; a shard belongs to the zone of the first point at or after the shard's *salted* hash,
and its lateral replicas to the next different zones on the UTR, where they are placed by the
shard's place on that zone's ring. Delegates compute slice counts (`slices.py`) and the UTR from
the management zone's view, and tell their zone by the attribute `dht-tier` (`zoning.py`).

Replica groups. A group has a version and members, the preferred leader first. Members are lives,
not names: who lost its memory is not the member that it was. One zone: `replicas` successors. Two:
`replicas` in the first, `lateral` in the second. Three or more: `replicas + lateral`, at most
(n - 1) // 2 of them in one zone, so that any zone may be lost: 3 + 2 becomes 2, 2 and 1.
An acknowledgement needs a majority, at least `quorum` copies, and copies in two zones where the
group has two. One zone survives the loss of a minority of each group; two zones lose no
acknowledged write with either; without the one that has a majority they refuse until it is back.

Consensus, for each shard. A *leader* holds a ballot that a majority of the group promised. It reads
from that majority what may be newer than its own copy, proposes again what not all of them have,
and is ready. A write is one round trip to the group: `Accept`, for many keys and shards in one
message per tick. A get asks the leader for its committed value and, at the same time, enough
others whether they still promise its ballot: one round trip, no clock. Ballots grow with
(group version, round, place of the leader in the group).

Changing a group, always by its leader: bring the new members up to date, stop writing, bring all
of them to its exact state (a majority, if it only finishes what an earlier leader began), then
have a majority of the *old* group accept the next one (`Decide`), and only then let it begin
(`Activate`), with ballots of its own. Views of membership only propose; they decide nothing. Who
was replaced forgets the data and remembers the successor group.

Founding. A table is founded once, by the most senior server that sees no table for `found_after`;
its groups come from that server's view, and everybody computes them alike. Servers that could not
see each other may found two: when they meet, the younger one moves its records into the older and
ends (`uniting.py`). Linearizability holds within one table.

Asking. A server asks leaders directly; who leads is remembered until it proves wrong, and else
asked for: in the zone the responsible member, for another zone a delegate, which asks a delegate
there, which asks the member (`routes.py`). Nodes of a zone without servers ask through an access
point that their delegates name (`binding.py`). With `direct = false` requests take the links of the
zone (`posting.py`).

| tag | message      | sent when                               | the receiver                      |
|-----|--------------|-----------------------------------------|-----------------------------------|
| 176 | Request      | operations for a leader, once a tick    | does them, or says who leads      |
| 177 | Reply        | operations are done, or refused         | answers, or tries elsewhere       |
| 178 | Confirm      | a get needs to know who still leads     | compares its promises             |
| 179 | Confirmed    | asked                                   | counts                            |
| 180 | Prepare      | a member wants to lead                  | promises, unless it promised more |
| 181 | Promise      | asked                                   | counts; pulls what differs        |
| 182 | Pull         | a leader lacks what a member may have   | sends the records that differ     |
| 183 | Pulled       | asked                                   | merges                            |
| 184 | Accept       | a leader writes                         | keeps it, unless it promised more |
| 185 | Accepted     | a batch is kept (and on disk)           | commits with a quorum             |
| 186 | Offer        | contents are compared, leaf by leaf     | says which leaves differ          |
| 187 | Want         | asked                                   | copies those leaves               |
| 188 | Copy         | wanted                                  | has the same leaves then          |
| 189 | Decide       | the next group is proposed to the old   | keeps it, confirms nothing more   |
| 190 | Decided      | kept                                    | with a majority activates it      |
| 191 | Activate     | a group was decided; to who is behind   | belongs to it, or forgets         |
| 192 | Handover     | the preferred leader is back            | prepares                          |
| 193 | RouteRequest | nobody here knows who leads a shard     | answers, or asks on               |
| 194 | Route        | asked; an operation came to the wrong   | keeps it and goes on              |
| 195 | Beat         | each `compare`, to all who follow       | knows that it lives; compares     |
| 196 | Differs      | a beat came                             | offers the shards that differ     |
| 197 | TableRequest | a server knows of no table              | tells                             |
| 198 | TableKnown   | asked; a table was founded              | takes part                        |
| 200 | Locate       | a leader needs servers of another zone  | names them from its ring          |
| 201 | Located      | asked                                   | proposes groups                   |
| 202 | Bind         | a client needs an access point          | (delegate) names servers          |
| 203 | Bound        | asked                                   | asks through one of them          |
| 204 | Watch        | a watcher, each `watch_renew`           | tells each committed change       |
| 205 | Changed      | a watched key has another value         | tells the application             |
| 206 | Activated    | it belongs to that group now            | is told no more                   |

Loss. A shard that lost the memory of a majority refuses, until a person says that those members
are gone for good (`Dht.accept_loss`, `losing.py`): then the survivors go on with what they have.

Durability. In memory, what is acknowledged survives any minority of its group. With
`storage = "sqlite"` promises, records and groups are on disk before anything is said about them,
and a node that restarts is the member that it was.

Trust. Messages about a shard are taken from members of its group only (groups, from members of
the old or the new one); requests from who may read or write by its certificate (`may`).

Invariants
- A ballot belongs to one leader. A leader proposes one value for each (ballot, sequence).
- What a member promised never falls; it accepts nothing below it.
- A leader that is ready has every value that a majority ever accepted in its shard.
- A write is answered only once enough members have it; each operation has one answer.
- A leader that proposed a next group writes no more in the old one.

Departs from §2.2, as PAPER-NOTES says: the UTR takes a salted hash; lateral replicas are placed by
key; several points for each slice. Departs from §2.1 by hashing to `shard_bits` bits, and by
several places for each server with a bound on what it keeps: with one place each, servers kept up
to 7.8 × of the mean. The paper has no consistency: this one is per-shard consensus with leaders and
versioned groups.
"""

from protocols.dht.config import DhtSettings
from protocols.dht.events import (
    MajorityLost,
    RebalancingProgressed,
    StorageZoneAdded,
    StorageZoneRemoved,
    TableJoined,
)
from protocols.dht.interface import Kind, Operation, Outcome, Status, Whereabouts
from protocols.dht.machine import Dht

__all__ = [
    "Dht",
    "DhtSettings",
    "Kind",
    "MajorityLost",
    "Operation",
    "Outcome",
    "RebalancingProgressed",
    "Status",
    "StorageZoneAdded",
    "StorageZoneRemoved",
    "TableJoined",
    "Whereabouts",
]
