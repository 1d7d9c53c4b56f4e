"""Handing a shard over to the preferred leader of its group, without leaving anybody in doubt."""

from __future__ import annotations

from protocols.dht.core import Core
from protocols.dht.leading import Leader
from protocols.dht.messages import Handover
from protocols.dht.shard import Shard

PATIENCE = 8  # × retry: then this node goes on to lead


class Steward:
    """Leads for members that come before it in their groups, until they are back."""

    def __init__(self, core: Core, leader: Leader) -> None:
        self._core = core
        self._leader = leader
        self._handing: dict[int, float] = {}  # shards that stand still, since when

    def __len__(self) -> int:
        return len(self._handing)

    def review(self, now: float) -> None:
        """Stop leading where the preferred leader has been there for a while."""
        core = self._core
        for shard in core.shards.values():
            reign = shard.reign
            if reign is None or reign.recovering or reign.frozen or reign.closed:
                continue
            first = shard.group.members[0]
            rested = now - reign.begun_at > core.settings.settle
            if first.name != core.me and rested and self._is_back(shard, now):
                reign.frozen = True
                self._handing[shard.id] = now
                if not reign.inflight:
                    self.on_drained(shard, now)

    def _is_back(self, shard: Shard, now: float) -> bool:
        core = self._core
        first = shard.group.members[0]
        heard = core.heard.get(first.name, float("-inf"))
        return core.reachable(first, now) and now - heard <= 2 * core.settings.compare

    def on_drained(self, shard: Shard, now: float) -> None:
        """Nothing is under way any more: the other one may begin."""
        reign = shard.reign
        if shard.id in self._handing and reign is not None:
            message = Handover(self._core.number, ((shard.id, reign.ballot),))
            self._core.effects.send(shard.group.members[0].name, message)

    def forget(self, shard: Shard) -> None:
        """Somebody leads it."""
        self._handing.pop(shard.id, None)

    def resend(self, now: float) -> None:
        """Go on to lead what nobody took."""
        core = self._core
        for number, since in list(self._handing.items()):
            if now - since > PATIENCE * core.settings.retry:
                del self._handing[number]
                reign = core.shards[number].reign
                if reign is not None:
                    reign.begun_at = now
                    self._leader.thaw(reign)

    def reset(self) -> None:
        """This node left the table."""
        self._handing.clear()
