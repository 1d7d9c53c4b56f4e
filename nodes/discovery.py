"""Finding the nearest broker, as applications do it.

broker = await discover("10.0.0.7:7400")
print(broker.name, broker.endpoints, broker.round_trip)

async with Finder.open("10.0.0.7:7400") as finder:
    async for moved in finder.watch():
        print(moved.new.name, moved.reason)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from nodes.discovery_recipe import requester, resolved, with_settings
from nodes.node import Node
from nodes.settings import node_config
from overlay.errors import LocalProtocolError, OverlayError
from overlay.ids import NodeId
from protocols.discovery import (
    BrokerFound,
    BrokerMoved,
    Candidate,
    DiscoverySettings,
    NoBrokerFound,
    Phases,
    Requester,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from nodes.settings import NodeConfig


class NoBroker(OverlayError):
    """No broker was found; `candidates` are those who answered but no ping."""

    def __init__(self, reason: str, candidates: tuple[Candidate, ...] = ()) -> None:
        super().__init__(reason)
        self.candidates = candidates


class Broker(msgspec.Struct, frozen=True):
    """The broker that a discovery chose, and why."""

    name: NodeId
    endpoints: tuple[str, ...]  # where to connect to
    round_trip: float  # s, the least of the pings
    candidates: tuple[Candidate, ...]  # all that were considered, this one first
    phases: Phases
    sources: tuple[str, ...]  # who was asked
    attempts: int


class Finder:
    """A node that looks for brokers, as long as its `async with` block runs."""

    def __init__(self, config: NodeConfig) -> None:
        self.node = Node(config, requester(config))

    @classmethod
    def open(
        cls,
        *bdns: str,
        multicast: bool = False,
        timeout: float | None = None,
        state: Path | None = None,
        **options: Any,
    ) -> Self:
        """Ask these BDNs (HOST:PORT) before those of the settings; `multicast`: at once as well.

        `state` is a folder for the last target set; `options` as of `node_config`.
        """
        options.setdefault("control", False)
        config = node_config(state=state, **options)
        settings = config.section(DiscoverySettings)
        changed: dict[str, Any] = {
            "bdns": tuple(dict.fromkeys(resolved((*bdns, *settings.bdns)))),
        }
        if multicast:
            changed["multicast"] = "always"
        if timeout is not None:
            changed["timeout"] = timeout
        return cls(with_settings(config, DiscoverySettings, **changed))

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

    async def discover(self) -> Broker:
        """The nearest broker now; NoBroker says why there is none."""
        with self.node.events(BrokerFound, NoBrokerFound) as ends:
            request = self.node.call(self.node.protocol(Requester).discover)
            async for end in ends:
                if end.id == request:
                    return chosen(end)
        raise LocalProtocolError("the node stopped before its discovery ended")

    async def watch(self) -> AsyncIterator[BrokerMoved]:
        """The broker to use from now on, whenever it is another one."""
        machine = self.node.protocol(Requester)
        with self.node.events(BrokerMoved) as moves:
            self.node.call(machine.watch)
            try:
                async for move in moves:
                    yield move
            finally:
                if self.node.is_running:
                    self.node.call(machine.unwatch)


def chosen(end: BrokerFound | NoBrokerFound) -> Broker:
    """What an application gets."""
    if isinstance(end, NoBrokerFound):
        raise NoBroker(end.reason, end.candidates)
    winner = end.winner
    return Broker(
        winner.name,
        winner.endpoints,
        winner.ping_least or 0.0,
        end.candidates,
        end.phases,
        end.sources,
        end.attempts,
    )


async def discover(*bdns: str, **options: Any) -> Broker:
    """Find the nearest broker once; `options` as of `Finder.open`."""
    async with Finder.open(*bdns, **options) as finder:
        return await finder.discover()
