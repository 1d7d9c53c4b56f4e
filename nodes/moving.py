"""A peer changes its zone or its address, and its publishers and subscriptions go along.

await peer.move(zone="hall")                     # leaves its zone, and joins that one
await peer.move(bind=["tcp://10.0.7.3:7400"])    # the same zone, at another address

The node stops in good order and starts again elsewhere, within the same process and under the same
name. What belongs to a place stays behind: its office as gateway or delegate, its part of the hash
table, its links. What belongs to the application goes along: publishers with their numbers and what
is not acknowledged yet, subscriptions with how far they read, attributes, event streams.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from overlay.errors import LocalProtocolError
from overlay.net.addresses import parse_endpoint
from overlay.net.config import NetSettings
from protocols.membership import Membership
from protocols.topics.machine import Topics
from protocols.zones import Zones

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from nodes.node import Node
    from nodes.settings import NodeConfig
    from overlay.protocol import Scope
    from protocols.membership.attributes import Value
    from protocols.topics.moving import Luggage

JOINED_WITHIN = 10.0  # s: those who were there may be gone
SEEDS = 8  # nodes of the old zone whose addresses are tried in the new one


class Relocation:
    """One move: what is taken along, and when it has arrived. A `trio.TaskStatus` of the driver."""

    def __init__(self, node: Node, config: NodeConfig, zone: Scope) -> None:
        self.config = config
        self.zone = zone
        self.refused: Exception | None = None  # why the node cannot be there: it went back
        self.arrived = trio.Event()
        self._node = node
        self._book: dict[str, list[str]] = {}
        self._luggage: Luggage

    def leave(self) -> None:
        """Take everything out of the driver that is about to stop."""
        node = self._node
        links = node.driver.links
        self._luggage = node.call(node.protocol(Topics).pack)
        for name in self._luggage.partners:
            if name != node.name:
                self._book[name] = [*map(str, links.endpoints_of(name))]

    def started(self, _value: None = None) -> None:
        """The new driver runs."""
        node = self._node
        for name, endpoints in self._book.items():
            node.learn(name, endpoints)
        for seed in node.config.seeds:
            node.meet(seed)
        node.call(node.protocol(Topics).unpack, self._luggage)
        self.arrived.set()

    def go_back(self, error: Exception, config: NodeConfig, zone: Scope) -> None:
        """It cannot be there."""
        self.refused, self.config, self.zone = error, config, zone


class Moving:
    """What `peer.move` and `overlay move` do."""

    def __init__(
        self,
        node: Node,
        attributes: Mapping[str, Value],
        joined: Callable[[], Awaitable[None]],
    ) -> None:
        self._node = node
        self._attributes = attributes
        self._joined = joined
        self._under_way = False
        node.control.register("move", self.control)

    async def control(
        self, zone: str = "", bind: list[str] | None = None, seeds: list[str] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Move, and tell where the node is now."""
        node = self._node
        await self.move(zone, bind or (), seeds or ())
        yield {
            "node": node.name,
            "overlay": node.overlay,
            "zone": node.zone,
            "endpoints": node.endpoints,
        }

    async def move(self, zone: Scope, bind: Iterable[str], seeds: Iterable[str]) -> None:
        """Leave, and return when the node runs there and, if somebody is there, was taken in."""
        node = self._node
        if not node.is_running:
            raise LocalProtocolError(f"{node.name} does not run")
        if self._under_way:
            raise LocalProtocolError(f"{node.name} is moving already")
        zone = zone or node.zone
        node.check_zone(zone)
        self._under_way = True
        somebody = self._is_known(zone)
        try:
            relocation = Relocation(node, self._config(zone, tuple(bind), tuple(seeds)), zone)
            await node.relocate(relocation)
            for key, value in self._attributes.items():
                membership = node.protocol(Membership, node.zone)
                node.call(membership.set_attribute, key, value)
            if somebody:
                with trio.move_on_after(JOINED_WITHIN):
                    await self._joined()
        finally:
            self._under_way = False
        if relocation.refused is not None:
            raise relocation.refused

    def _is_known(self, zone: Scope) -> bool:
        """Whether others are in that zone, as far as this node knows."""
        node = self._node
        if zone == node.zone:
            return len(node.protocol(Membership, zone).view) > 1
        return any(entry.name == zone for entry in node.protocol(Zones).zones())

    def _config(self, zone: Scope, bind: tuple[str, ...], seeds: tuple[str, ...]) -> NodeConfig:
        """The node's config as it is there: it knows some of those that it knows here."""
        node, config = self._node, self._node.config
        settings = dict(config.settings)
        if bind:
            for text in bind:
                parse_endpoint(text)
            section = next(key for key, one in settings.items() if isinstance(one, NetSettings))
            settings[section] = msgspec.structs.replace(settings[section], bind=bind, advertise=())
        known = [*seeds, *config.seeds]
        for name in list(node.driver.links.by_name)[:SEEDS]:
            known += [str(one) for one in node.driver.links.endpoints_of(name)]
        mine = set(node.endpoints)
        told = tuple(one for one in dict.fromkeys(known) if one not in mine)
        return replace(config, zone=zone, seeds=told, settings=settings)
