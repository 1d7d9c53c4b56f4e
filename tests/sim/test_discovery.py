"""Discovery by the numbers, in the simulator: loss, choice, and a thousand brokers."""

from __future__ import annotations

import pytest

from nodes.scenarios.discovery_world import (
    BDN,
    Client,
    bdn,
    broker,
    nearest,
    random_distances,
    start_brokers,
)
from overlay.sim import Exponential, Loss, NetworkModel, SimStage, Simulator
from protocols.discovery import (
    Bdn,
    Broker,
    BrokerFound,
    BrokerSettings,
    DiscoverySettings,
    NoBrokerFound,
)


def one_discovery(
    seed: int,
    *,
    topology: str = "star",
    count: int = 5,
    apart: float = 0.004,
    loss: float = 0.0,
    config: DiscoverySettings | None = None,
    jitter: float = 0.0,
) -> tuple[BrokerFound | NoBrokerFound, dict[str, float], Simulator]:
    """How it ended, and where the brokers were."""
    model = NetworkModel(latency=Exponential(jitter, 0.0005)) if jitter else None
    sim = Simulator(seed, model, check_every=0 if count > 100 else 1)
    stage = SimStage(sim, nodes=count)
    distances = random_distances(stage, count, apart)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, topology)
    client = Client(stage, "client", config or DiscoverySettings(bdns=(BDN,)))
    sim.run_for(3.0)
    if loss:
        sim.faults.add(Loss(loss, traffic="datagrams"))
    end = client.discover()
    assert sim.run_until(end.condition, 4.001, every=0.001), "past its timeout"
    return client.ends[-1], distances, sim


@pytest.mark.parametrize("topology", ["unconnected", "star", "linear"])
def test_half_of_all_datagrams_may_be_lost(topology: str) -> None:
    right = 0
    for seed in range(40):
        end, distances, _ = one_discovery(seed, topology=topology, apart=0.008, loss=0.5)
        right += isinstance(end, BrokerFound) and end.winner.name == nearest(distances)
    assert right >= 36


@pytest.mark.parametrize(("apart", "share"), [(0.002, 0.99), (0.0005, 0.9)])
def test_the_nearest_is_chosen(apart: float, share: float) -> None:
    """With queues that add 0.2 ms each way on the average."""
    right = 0
    for seed in range(100):
        end, distances, _ = one_discovery(seed, apart=apart, jitter=0.0002)
        right += isinstance(end, BrokerFound) and end.winner.name == nearest(distances)
    assert right >= share * 100


def test_a_thousand_linked_brokers() -> None:
    """A request costs a few messages per broker, and the requester keeps a hundred responses."""
    sim = Simulator(1, check_every=0)
    stage = SimStage(sim, nodes=1000)
    stage.start("bdn", bdn())
    names = [f"b{index}" for index in range(1000)]
    for index, name in enumerate(names):
        links = (names[(index - 1) // 4],) if index else ()  # a tree
        stage.start(name, broker(BrokerSettings(bdns=(BDN,), links=links, link_lease=3600.0)))
    client = Client(stage, "client", DiscoverySettings(bdns=(BDN,)))
    bdn_machine = stage.protocol("bdn", Bdn)
    assert sim.run_until(lambda: len(bdn_machine.brokers()) == 1000, 60)
    sim.run_for(5.0)
    before = sim.traffic.messages
    end = client.discover()
    assert sim.run_until(end.condition, 4.001, every=0.001)
    sim.run_for(1.0)
    assert client.found.responses == 100
    counts = [stage.protocol(name, Broker).counts for name in names]
    assert sum(count.answered for count in counts) == 1000, "every broker was reached"
    assert sum(count.forwarded for count in counts) <= 1100
    assert sim.traffic.messages - before <= 4000


def test_the_bdn_injects_at_two_of_a_thousand() -> None:
    end, _, sim = one_discovery(
        1, topology="star", count=60, config=DiscoverySettings(bdns=(BDN,), max_responses=60)
    )
    assert isinstance(end, BrokerFound)
    assert end.responses == 60
    assert sim.protocol("bdn", Bdn).counts.injections == 2
