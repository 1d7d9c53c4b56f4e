"""Which group a shard should have by this node's views, and the changes that follow from it."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.dht.changing import Changer
from protocols.dht.core import Core
from protocols.dht.events import RebalancingProgressed
from protocols.dht.groups import Member
from protocols.dht.placement import point_of, spread, successors_of, zones_of
from protocols.dht.shard import Shard


class Proposer:
    """Views only propose: what comes of it, the old group decides."""

    def __init__(self, core: Core, changer: Changer) -> None:
        self._core = core
        self._changer = changer
        self._left = 0
        self._moved = 0
        self.located: dict[tuple[Scope, int], tuple[Member, ...]] = {}
        """Servers of other zones for a shard, as they told."""

    def review(self, now: float) -> None:
        """Begin changes of groups that are not as they should be, some at a time."""
        core = self._core
        left = 0
        room = core.settings.transfers - len(self._changer.changes)
        for shard in list(core.shards.values()):
            if shard.id in self._changer.changes:
                left += 1
                continue
            reign = shard.reign
            if reign is None or reign.recovering or reign.closed or reign.frozen:
                continue
            wanted = self.desired(shard)
            if not wanted or _same(wanted, shard.group.members):
                continue
            present = [one.name for one in shard.group.members if core.reachable(one, now)]
            if not shard.group.is_majority(present):
                continue
            left += 1
            if room > 0:
                room -= 1
                self._moved += 1
                self._changer.begin(shard, wanted, now)
        if left != self._left:
            self._left = left
            core.effects.emit(RebalancingProgressed(left, self._moved))
            if not left:
                self._moved = 0

    @property
    def left(self) -> int:
        """Shards whose group is not as it should be, at the last look."""
        return self._left

    def desired(self, shard: Shard) -> tuple[Member, ...]:
        """The group that a shard should have; empty: other zones have not said yet."""
        core, settings = self._core, self._core.settings
        zones = zones_of(shard.id, core.bits, core.tier, settings.slice_points) or (core.zone,)
        most = max(settings.replicas, settings.lateral)
        known: dict[NodeId, Member] = {}
        candidates: list[tuple[Scope, list[NodeId]]] = []
        for zone in zones:
            if zone == core.zone:
                names = successors_of(core.ring, point_of(shard.id, core.bits), most)
                members = [core.server(name) for name in names]
            else:
                found = self.located.get((zone, shard.id))
                if found is None:
                    return ()
                members = list(found)
            known.update({member.name: member for member in members})
            candidates.append((zone, [member.name for member in members]))
        names = spread(candidates, settings.replicas, settings.lateral)
        return tuple(known[name] for name in names)


def _same(one: tuple[Member, ...], other: tuple[Member, ...]) -> bool:
    return len(one) == len(other) and all(a.same(b) for a, b in zip(one, other, strict=True))
