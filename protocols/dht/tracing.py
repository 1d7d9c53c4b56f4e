"""What the table leaves in the traces: operations, versions kept, and what a node holds."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Effects
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import DHT_BEGAN, DHT_DONE, DHT_LOAD, DHT_STORED
from protocols.dht.interface import Kind, Outcome, Status
from protocols.dht.shard import Shard

OWNER, REPLICA, LATERAL = "owner", "replica", "lateral"


def role_of(shard: Shard, me: NodeId) -> str:
    """What this node is to a shard: its leader, or a replica in the leader's zone or another."""
    if shard.reign is not None:
        return OWNER
    zones = {member.name: member.zone for member in shard.group.members}
    leader = shard.leader
    same = leader is None or zones.get(leader) == zones.get(me)
    return REPLICA if same else LATERAL


def ended_as(kind: Kind, outcome: Outcome) -> str:
    """The name and the outcome of an operation, in a few words."""
    name = kind.name.lower()
    if outcome.status is not Status.DONE:
        return f"{name} {outcome.status.name.lower()}"
    if kind in (Kind.GET, Kind.CONTAINS):
        return f"{name} {'found' if outcome.applied else 'absent'}"
    return f"{name} {'stored' if outcome.applied else 'unchanged'}"


class Tracer:
    """Makes rows only while somebody records them."""

    def __init__(self, me: NodeId, effects: Effects) -> None:
        self._me = me
        self._effects = effects

    def began(self, number: int, kind: Kind) -> None:
        """An operation of this node began."""
        if self._effects.tracing >= Level.MESSAGES:
            detail = kind.name.lower()
            self._effects.trace(Trace(DHT_BEGAN, origin=self._me, stream=number, detail=detail))

    def done(
        self, number: int, kind: Kind, outcome: Outcome, peer: NodeId, duration: float
    ) -> None:
        """It ended."""
        if self._effects.tracing >= Level.DELIVERY:
            self._effects.trace(
                Trace(
                    DHT_DONE,
                    peer=peer,
                    origin=self._me,
                    stream=number,
                    hops=int(bool(peer) and peer != self._me),
                    duration=max(duration, 0.0),
                    detail=ended_as(kind, outcome),
                )
            )

    def stored(self, shard: Shard, key: bytes, sequence: int) -> None:
        """This node keeps a version of a key."""
        if self._effects.tracing >= Level.MESSAGES:
            role = role_of(shard, self._me)
            ballot = shard.shelf.records[key].ballot  # with it a version is the same nowhere else
            value = float(sequence)
            self._effects.trace(
                Trace(DHT_STORED, stream=ballot, detail=role, key=key.hex(), value=value)
            )

    def load(self, shards: dict[int, Shard]) -> None:
        """What this node holds now, by what it is to each shard."""
        if self._effects.tracing < Level.DELIVERY:
            return
        keys = dict.fromkeys((OWNER, REPLICA, LATERAL), 0)
        size = dict.fromkeys(keys, 0)
        for shard in shards.values():
            if shard.seated:
                role = role_of(shard, self._me)
                keys[role] += len(shard.shelf)
                size[role] += shard.shelf.bytes
        for role, count in keys.items():
            self._effects.trace(Trace(DHT_LOAD, count=count, bytes=size[role], detail=role))
