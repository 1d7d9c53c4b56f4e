"""Colonies through the control socket of a running node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nodes.colony import parsed
from protocols.colony import Colony, ColonySettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.colony import PeerColony
    from nodes.node import Node


class ColonyService:
    """Registers `colony`, `colony-join`, `colony-offer` and `colony-ask` with a node's socket."""

    def __init__(self, node: Node, colony: PeerColony) -> None:
        self._node = node
        self._colony = colony
        node.control.register("colony", self._tell)
        node.control.register("colony-join", self._join)
        node.control.register("colony-offer", self._offer)
        node.control.register("colony-ask", self._ask)

    def _heading(self) -> dict[str, Any]:
        node = self._node
        return {"node": node.name, "overlay": node.overlay, "zone": node.zone}

    def _tell(self) -> dict[str, Any]:
        machine = self._node.protocol(Colony)
        return self._heading() | {
            "placement": self._node.config.section(ColonySettings).placement,
            "leads": machine.leads,
            "leader": machine.leader,
            "path": machine.path,
            "offers": machine.own_services,
            "services": machine.table.union,
            "individuals": [msgspec.structs.asdict(one) for one in machine.individuals()],
            "searches": machine.searches,
            "counts": msgspec.to_builtins(machine.counts),
        }

    async def _join(self, leader: str = "", lead: bool = False) -> AsyncIterator[dict[str, Any]]:
        """Lead, follow somebody, or both; told once it is so."""
        if lead:
            self._colony.lead()
        if leader:
            await self._colony.join(leader)
        elif not lead:
            self._colony.leave()
        yield self._tell()

    async def _offer(
        self, services: list[str], withdraw: bool = False, refuse: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        """Offer these, or no more, if all are well formed; told when the leader knows it."""
        for service in [parsed(text) for text in services]:
            if withdraw:
                self._colony.withdraw(service)
            else:
                self._colony.offer(service, accept=_never if refuse else None)
        await self._colony.announced()
        yield self._tell()

    async def _ask(self, services: list[str], **terms: Any) -> AsyncIterator[dict[str, Any]]:
        """First who asks, then each servant, then how it ended."""
        wanted = [text.split(" & ") for text in services]
        with await self._colony.ask(wanted, **terms) as found:
            yield self._heading()
            async for servant in found:
                yield {"servant": msgspec.structs.asdict(servant)}
            yield {"complete": found.complete, "rejected": found.rejected}


def _never(_proposal: object) -> bool:
    return False
