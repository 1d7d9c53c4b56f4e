"""Which group a shard should have by this node's views, and the changes that follow from it."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.dht.changing import Changer
from protocols.dht.core import Core
from protocols.dht.events import RebalancingProgressed
from protocols.dht.groups import Member
from protocols.dht.locating import Locator
from protocols.dht.placement import spread, zones_of
from protocols.dht.shard import Shard


class Proposer:
    """Views only propose: what comes of it, the old group decides."""

    def __init__(self, core: Core, changer: Changer, locator: Locator) -> None:
        self._core = core
        self._changer = changer
        self._locator = locator
        self._left = 0
        self._moved = 0

    def review(self, now: float) -> None:
        """Begin changes of groups that are not as they should be, some at a time."""
        core = self._core
        self._ask_zones(now)
        left = 0
        room = core.settings.transfers - len(self._changer.changes)
        for shard in list(core.shards.values()):
            if shard.id in self._changer.changes:
                left += 1
                continue
            reign = shard.reign
            if reign is None or reign.recovering or reign.closed or reign.frozen:
                continue
            wanted = self.desired(shard, now)
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

    def _zones(self, shard: Shard) -> tuple[Scope, ...]:
        core = self._core
        zones = zones_of(shard.id, core.bits, core.tier, core.settings.slice_points)
        return zones or (core.zone,)

    @property
    def _most(self) -> int:
        return max(self._core.settings.replicas, self._core.settings.lateral)

    def _ask_zones(self, now: float) -> None:
        """Ask the other zones of all shards that this node leads for their servers."""
        core = self._core
        wanted = [
            (zone, shard)
            for shard in core.shards.values()
            if shard.reign is not None
            for zone in self._zones(shard)
            if zone != core.zone
        ]
        if wanted or len(core.tier) > 1:
            self._locator.trim((zone, shard.id) for zone, shard in wanted)
            self._locator.ask(wanted, self._most, now)

    def desired(self, shard: Shard, now: float) -> tuple[Member, ...]:
        """The group that a shard should have; empty: other zones have not said yet."""
        core, settings = self._core, self._core.settings
        zones = self._zones(shard)
        most = self._most
        known: dict[NodeId, Member] = {}
        candidates: list[tuple[Scope, list[NodeId]]] = []
        for zone in zones:
            if zone == core.zone:
                names = core.layout.names(shard.id, most)
                members = [core.server(name) for name in names]
            else:
                found = self._locator.find(zone, shard.id, now)
                if found is None:
                    return ()
                members = list(found)
            known.update({member.name: member for member in members})
            candidates.append((zone, [member.name for member in members]))
        names = spread(candidates, settings.replicas, settings.lateral)
        return tuple(known[name] for name in names)


def _same(one: tuple[Member, ...], other: tuple[Member, ...]) -> bool:
    return len(one) == len(other) and all(a.same(b) for a, b in zip(one, other, strict=True))
