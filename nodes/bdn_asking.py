"""Asking the BDNs of the settings for brokers whenever a node tells that it needs one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from overlay.protocol import Event
from protocols.discovery import DiscoverySettings

if TYPE_CHECKING:
    from nodes.node import Node


class BdnAsker(ABC):
    """Runs in the background of a node, where `discovery.bdns` names any."""

    def __init__(self, node: Node, need: type[Event]) -> None:
        """`need`: the event after which brokers are looked for."""
        self._node = node
        self._need = need
        node.in_background(self._run)

    async def _run(self) -> None:
        node = self._node
        if not node.config.section(DiscoverySettings).bdns:
            return
        with node.events(self._need) as needs:
            async for _ in needs:
                await self._ask()

    @abstractmethod
    async def _ask(self) -> None:
        """Look for brokers once, and use what was found."""
