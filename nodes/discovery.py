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
import trio

from nodes.discovery_recipe import requester, resolved, with_settings
from nodes.node import Node
from nodes.settings import node_config
from overlay.errors import ConfigError, LocalProtocolError, OverlayError
from overlay.ids import NodeId
from overlay.net.addresses import Endpoint, parse_endpoint
from overlay.protocol import LinkUp
from protocols.discovery import (
    BrokerFound,
    BrokerMoved,
    Candidate,
    DiscoverySettings,
    NoBrokerFound,
    Phases,
    Requester,
)
from protocols.discovery.pinging import LOSSY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from nodes.settings import NodeConfig


LINKED_WITHIN = 2.0  # s to open a link to the winner: five round trips, and a datagram may be lost


class NoBroker(OverlayError):
    """No broker was found; `candidates` are those who answered, but no ping, or took no link."""

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
        """The nearest broker now, and linked to it; NoBroker says why there is none."""
        return await find(self.node)

    async def watch(self) -> AsyncIterator[BrokerMoved]:
        """The broker to use from now on, whenever it is another one."""
        machine = self.node.protocol(Requester)
        with self.node.events(BrokerMoved) as moves:
            self.node.call(machine.watch)
            try:
                async for move in moves:
                    self.node.link(move.new.name)
                    yield move
            finally:
                if self.node.is_running:
                    self.node.call(machine.unwatch)


async def find(node: Node) -> Broker:
    """Let a node with a requester find the nearest broker that a link can be opened to."""
    with node.events(BrokerFound, NoBrokerFound) as ends:
        request = node.call(node.protocol(Requester).discover)
        async for end in ends:
            if end.id == request:
                return await _connected(node, end)
    raise LocalProtocolError("the node stopped before its discovery ended")


async def _connected(node: Node, end: BrokerFound | NoBrokerFound) -> Broker:
    """Link to the best; one that answers datagrams and takes no links makes room for the next.

    Where pings are lost a link takes its time, which says nothing about a broker.
    """
    if isinstance(end, NoBrokerFound):
        raise NoBroker(end.reason, end.candidates)
    heard = [one for one in end.candidates if one.answered]
    lossy = sum(one.answered for one in heard) < LOSSY * sum(one.pinged for one in heard)
    refused: list[Candidate] = []
    for index, one in enumerate(end.candidates):
        if one.ping_least is None:
            break  # those who answered come first
        if await _link(node, one) or (lossy and endpoints_of(one)):
            if refused:
                one = msgspec.structs.replace(one, verdict="the nearest that takes a link")
            return Broker(
                one.name,
                one.endpoints,
                one.ping_least or 0.0,
                (one, *refused, *end.candidates[index + 1 :]),
                end.phases,
                end.sources,
                end.attempts,
            )
        verdict = f"{one.verdict}, but takes no links"
        refused.append(msgspec.structs.replace(one, verdict=verdict))
    raise NoBroker("brokers answered pings, but none of them takes a link", tuple(refused))


def endpoints_of(broker: Candidate) -> list[str]:
    """Those that can be used, of what a broker told; that where it answered pings first."""
    found: list[Endpoint] = []
    for told in broker.endpoints:
        try:
            found.append(parse_endpoint(told))
        except ConfigError:
            continue  # whoever told that must not stop us
    found.sort(key=lambda endpoint: endpoint.host != broker.address.host)
    return [str(endpoint) for endpoint in found if endpoint.transport == "tcp"]


async def _link(node: Node, broker: Candidate) -> bool:
    places = endpoints_of(broker)
    if not places:
        return False
    with node.events(LinkUp) as ups, trio.move_on_after(LINKED_WITHIN):
        node.learn(broker.name, places)
        if node.link(broker.name):
            return True
        async for up in ups:
            if up.peer == broker.name:
                return True
    return False


async def discover(*bdns: str, **options: Any) -> Broker:
    """Find the nearest broker once; `options` as of `Finder.open`."""
    async with Finder.open(*bdns, **options) as finder:
        return await finder.discover()
