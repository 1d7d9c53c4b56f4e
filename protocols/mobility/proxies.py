"""Proxies: brokers that always have the trees of a publisher, wherever it is."""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import MobileContent
from protocols.mobility.config import MobilitySettings
from protocols.mobility.leaving import entries_of
from protocols.mobility.messages import StandIn
from protocols.mobility.standing import Standing

RENEW = "renew"  # and a client: its proxies are told that it lives


class ProxySets:
    """The proxies of the publishers that are at this broker."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        config: MobilitySettings,
        content: MobileContent,
        standing: Standing,
        tell: Callable[[NodeId, tuple[NodeId, ...]], None],
    ) -> None:
        self._me = me
        self._effects = effects
        self._config = config
        self._content = content
        self._standing = standing
        self._sets: dict[NodeId, tuple[NodeId, ...]] = {}
        self._choosing: dict[NodeId, None] = {}  # clients at their first broker, which chooses
        self._tell = tell

    def of(self, client: NodeId) -> tuple[NodeId, ...]:
        """The proxies of a client."""
        return self._sets.get(client, ())

    def begin(self, client: NodeId, proxies: tuple[NodeId, ...], now: float) -> None:
        """A publisher came; who names no proxies has the closest brokers to this, its first one."""
        self._sets[client] = proxies or self._closest()
        if not proxies:
            self._choosing[client] = None
        self.renew(client, now)

    def _closest(self) -> tuple[NodeId, ...]:
        far = self._content.moving.distances()
        near = sorted((away, name) for name, away in far.items() if name != self._me)
        return (self._me, *(name for _, name in near))[: self._config.proxy_count]

    def renew(self, client: NodeId, now: float) -> None:
        """Tell the proxies what the publisher advertises, and that it lives."""
        proxies = self._sets.get(client)
        if proxies is None:
            return
        if client in self._choosing and len(proxies) < self._config.proxy_count:
            proxies = self._sets[client] = self._closest()  # more are known by now
            self._tell(client, proxies)
        lease = self._config.proxy_lease
        offers = self._content.moving.offers_of(client)
        for one in offers:
            known = self._content.advertisement(one.id)
            if self._me in proxies and known is not None:
                mine = one._replace(hop=self._me, graft=known.epoch)
                self._standing.add(mine, "proxy", lease, now)
        for epoch in dict.fromkeys(one.epoch for one in offers):
            some = [one for one in offers if one.epoch == epoch]
            entries = entries_of(self._content, some, graft=True)
            for proxy in proxies:
                if proxy != self._me:
                    self._effects.send(proxy, StandIn(client, epoch, lease, entries, proxy=True))
        self._effects.set_timer((RENEW, client), now + lease / 3)

    def end(self, client: NodeId) -> None:
        """The publisher is here no more: its next broker renews them, or nobody."""
        self._choosing.pop(client, None)
        if self._sets.pop(client, None) is not None:
            self._effects.cancel_timer((RENEW, client))
