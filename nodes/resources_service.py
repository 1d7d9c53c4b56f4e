"""Resources through the control socket of a running node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from nodes.resources import as_query, as_values, plain
from protocols.resources import ModelType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.node import Node
    from nodes.resources import PeerResources
    from protocols.resources import Resource


class ResourcesService:
    """Registers `resource-*`, `resources`, `find` and `find-watch` with a node's control socket."""

    def __init__(self, node: Node, resources: PeerResources) -> None:
        self._node = node
        self._resources = resources
        for name, handler in (
            ("resources", self._list),
            ("resource-register", self._register),
            ("resource-update", self._update),
            ("resource-unregister", self._unregister),
            ("find", self._find),
            ("find-watch", self._watch),
        ):
            node.control.register(name, handler)

    def _heading(self) -> dict[str, Any]:
        node = self._node
        return {"node": node.name, "overlay": node.overlay, "zone": node.zone}

    def _list(self) -> dict[str, Any]:
        machine = self._resources.machine
        return self._heading() | {
            "resources": [
                {
                    "name": own.name,
                    "model": own.model,
                    "description": str(own.description),
                    "values": plain(own.item),
                    "lease": own.lease,
                }
                for own in self._resources.own
            ],
            "counts": msgspec.to_builtins(machine.counts),
        }

    def _register(
        self,
        name: str,
        description: str = "",
        values: str = "",
        model: str = "",
        lease: float = 0.0,
    ) -> dict[str, Any]:
        registered = self._resources.register(
            name,
            as_query(description) if description else None,
            values=as_values(values) if values else None,
            model="dynamic" if model == ModelType.DYNAMIC else None,
            lease=lease,
        )
        return self._heading() | {"id": registered}

    def _update(self, name: str, values: str) -> dict[str, Any]:
        self._resources.update(name, as_values(values))
        return self._heading() | {"id": f"{self._node.name}/{name}"}

    def _unregister(self, name: str) -> dict[str, Any]:
        self._resources.unregister(name)
        return self._heading() | {"id": f"{self._node.name}/{name}"}

    async def _find(
        self,
        query: str,
        limit: int = 0,
        model: str = "any",
        nearest: bool = False,
        fresh: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - brokers must know it, too
    ) -> AsyncIterator[dict[str, Any]]:
        """Each resource, and last how it ended."""
        found = await self._resources.find(
            query,
            limit=limit,
            model=model,  # type: ignore[arg-type]
            nearest=nearest,
            fresh=fresh,
            timeout=timeout,
        )
        for resource in found:
            yield facts(resource)
        yield self._heading() | {
            "found": len(found),
            "complete": found.complete,
            "reason": found.reason,
        }

    async def _watch(self, query: str, model: str = "any") -> AsyncIterator[dict[str, Any]]:
        """First who watches, then each change."""
        with self._resources.watch(query, model=model) as changes:  # type: ignore[arg-type]
            yield self._heading()
            async for resource in changes:
                yield facts(resource)


def facts(resource: Resource) -> dict[str, Any]:
    """A resource for programs."""
    return {
        "id": resource.id,
        "owner": resource.owner,
        "name": resource.name,
        "model": resource.model,
        "values": plain(resource.item),
        "description": resource.description,
        "age": round(resource.age, 3),
        "hops": resource.hops,
        "distance": resource.distance,
        "gone": resource.gone,
    }
