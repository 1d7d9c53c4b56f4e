"""Brokers, BDNs and clients with distances between them: the ground of discovery's scenarios."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Event, UdpAddress
from overlay.scenario import Stage, Until
from overlay.sim import Delay, SimStage, Simulator
from overlay.sim.traffic import UDP_PORT
from protocols.discovery import (
    Bdn,
    BdnSettings,
    Broker,
    BrokerFound,
    BrokerMoved,
    BrokerSettings,
    DiscoverySettings,
    NoBrokerFound,
    Requester,
    Usage,
)
from protocols.discovery.interface import Clock, own_clock

BDN = f"bdn:{UDP_PORT}"
SETTLED = 2.0  # s for advertisements, links and the first probes
SLACK = 0.05  # s that choosing and pinging may take besides two round trips
TICK = 0.002  # s between two looks of a scenario at its world
LATENCY = 0.003  # s of a round trip that the simulated LAN itself has, at most


@dataclass(frozen=True)
class Between(Delay):
    """A delay between two sites, each way."""

    a: Collection[NodeId] = ()
    b: Collection[NodeId] = ()

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Only between the two."""
        there = source in self.a and target in self.b
        return (there or (source in self.b and target in self.a)) and super().touches(
            source, target, now, datagram=datagram
        )


def simulator(stage: Stage) -> Simulator:
    """These scenarios need distances, which only a simulator has."""
    assert isinstance(stage, SimStage)
    return stage.sim


def bdn(config: BdnSettings | None = None) -> Recipe:
    """A BDN."""
    return lambda host: _add_bdn(host, config or BdnSettings())


def _add_bdn(host: Host, config: BdnSettings) -> None:
    host.add(Bdn, config)


def broker(
    config: BrokerSettings,
    usage: Usage | None = None,
    clock: Clock = own_clock,
) -> Recipe:
    """A broker; with a clock of its own it may lie about when it answered."""

    def add(host: Host) -> None:
        host.add(
            Broker,
            config,
            usage=lambda: usage or Usage(cpu=0.1, memory_total=1 << 30, memory_used=1 << 28),
            clock=clock,
        )

    return add


class Client:
    """A node that looks for brokers, and what it was told."""

    def __init__(
        self, stage: Stage, name: NodeId, config: DiscoverySettings, *, offset: float = 0.0
    ) -> None:
        self.stage = stage
        self.name = name
        self.ends: list[BrokerFound | NoBrokerFound] = []
        self.moves: list[BrokerMoved] = []

        def add(host: Host) -> None:
            host.add(Requester, config)
            for event in (BrokerFound, NoBrokerFound):
                host.listen(event, self.ends.append)
            host.listen(BrokerMoved, self.moves.append)

        self.config = config
        self.recipe: Recipe = add
        simulator(stage).add_node(name, add, offset=offset)

    def discover(self) -> Until:
        """Begin; what to wait for."""
        before = len(self.ends)
        self.stage.call(self.name, lambda host: host.protocol(Requester).discover)
        return Until(
            lambda: len(self.ends) > before,
            within=self.config.timeout + 0.02,  # conditions are looked at each 10 ms
            what="an end of the discovery",
        )

    @property
    def found(self) -> BrokerFound:
        """The last end, which must be a good one."""
        end = self.ends[-1]
        assert isinstance(end, BrokerFound), end
        return end

    @property
    def failed(self) -> NoBrokerFound:
        """The last end, which must be a bad one."""
        end = self.ends[-1]
        assert isinstance(end, NoBrokerFound), end
        return end

    @property
    def requester(self) -> Requester:
        """Its machine."""
        return self.stage.protocol(self.name, Requester)


def place(stage: Stage, client: NodeId, distances: Mapping[NodeId, float]) -> None:
    """Put brokers at these round trips from a client."""
    for name, rtt in distances.items():
        simulator(stage).faults.add(Between(rtt / 2, a=(client,), b=(name,)))


def linked(names: Sequence[NodeId], topology: str) -> dict[NodeId, tuple[NodeId, ...]]:
    """Whom each broker links to: nobody, the first one, or the one before it."""
    links: dict[NodeId, tuple[NodeId, ...]] = dict.fromkeys(names, ())
    for before, name in pairwise(names):
        if topology != "unconnected":
            links[name] = (names[0] if topology == "star" else before,)
    return links


def start_brokers(
    stage: Stage, distances: Mapping[NodeId, float], topology: str, *, client: NodeId = "client"
) -> None:
    """Brokers at these distances; of a line only the first one is known to the BDN (§9)."""
    names = list(distances)
    for name, links in linked(names, topology).items():
        bdns = (BDN,) if topology != "linear" or name == names[0] else ()
        stage.start(name, broker(BrokerSettings(bdns=bdns, links=links)))
    place(stage, client, distances)


def random_distances(stage: Stage, count: int, apart: float) -> dict[NodeId, float]:
    """Round trips of brokers b0, b1, … in a random order, at least so far apart."""
    trips = [0.005 + apart * (index + stage.rng.random() * 0.5) for index in range(count)]
    stage.rng.shuffle(trips)
    return {f"b{index}": trip for index, trip in enumerate(trips)}


def nearest(distances: Mapping[NodeId, float]) -> NodeId:
    """Whom to find."""
    return min(distances, key=lambda name: distances[name])


def check_bar(found: BrokerFound, distances: Mapping[NodeId, float]) -> None:
    """No more than two of the slowest round trips and 50 ms after the last wanted response."""
    pinged = [distances[one.name] for one in found.candidates if one.pinged]
    most = found.phases.last_response + 2 * (max(pinged) + LATENCY) + SLACK
    assert found.phases.total <= most, f"{found.phases} is over {most}"


def address_of(name: NodeId) -> UdpAddress:
    """Where a simulated node gets datagrams."""
    return UdpAddress(name, UDP_PORT)


def events_of(stage: Stage, name: NodeId, *kinds: type[Event]) -> list[Event]:
    """A list that grows as a node emits these."""
    heard: list[Event] = []
    for kind in kinds:
        simulator(stage).host(name).listen(kind, heard.append)
    return heard
