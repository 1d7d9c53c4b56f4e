"""A supervisor, as applications hold it: in the management zone only, it looks after base zones.

async with Supervisor.join(name="sup", seeds=["10.0.0.7:7400"]) as supervisor:
    print(supervisor.zones)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from nodes.bdn_fallback import BdnFallback
from nodes.clock import PeerTime
from nodes.federation import Federation
from nodes.node import Node
from nodes.recipes import supervisor
from nodes.settings import node_config
from nodes.watching import WatchService
from protocols.zones import ZoneEntry, Zones

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from nodes.settings import NodeConfig


class Supervisor:
    """Finds the management zone when its `async with` block begins, and leaves it at the end."""

    def __init__(self, config: NodeConfig) -> None:
        self.node = Node(config, supervisor(config))
        Federation(self.node)
        self.time = PeerTime(self.node)
        BdnFallback(self.node)
        self.watching = WatchService(self.node)

    @classmethod
    def join(cls, *, name: str | None = None, seeds: Iterable[str] = (), **options: Any) -> Self:
        """A supervisor that meets the seeds (HOST:PORT); `options` as of `node_config`."""
        return cls(node_config(name, seeds=seeds, **options))

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.node.__aexit__(kind, error, trace)

    async def run(self) -> None:
        """Wait until something stops this node."""
        await self.node.run()

    def stop(self) -> None:
        """Begin to stop."""
        self.node.stop()

    @property
    def zones(self) -> tuple[ZoneEntry, ...]:
        """All zones of the overlay, by name."""
        return self.node.protocol(Zones).zones()
