"""The hash table in the simulator: values that expire, watches, and seeds that once failed."""

from __future__ import annotations

import pytest

from nodes.scenarios.dht_federation import Federation
from nodes.scenarios.dht_world import QUICK, Store
from nodes.scenarios.running import run_scenario
from overlay.scenario import Stage
from overlay.sim import SimStage, Simulator
from protocols.dht import Dht, Kind, Operation, Outcome, Status

ONCE_FAILED = [
    ("dht-pauses", 9),  # an operation of a candidate declared its own ballot over
    ("dht-churn", 21),  # a server that knew nobody founded a table of its own
    ("dht-partition", 4),  # a leader that was refused went on to change its group
    ("dht-zone-lost", 3),  # a zone that came back founded a table before it met the others
    ("dht-storm", 29),  # who led no more went on to ask itself, by a route that came late
    ("dht-zone-apart", 16),  # who was replaced while it was cut off was never told, nor asked
    ("dht-clients", 4),  # who had not heard of replicas for long did not ask them
]


@pytest.mark.parametrize(("scenario", "seed"), ONCE_FAILED)
def test_seeds_that_once_failed(scenario: str, seed: int) -> None:
    result = run_scenario(scenario, seed)
    assert result.passed, result.failure


class Zone:
    """Five servers in order."""

    def __init__(self, seed: int = 1) -> None:
        self.sim = Simulator(seed)
        stage: Stage = SimStage(self.sim, nodes=5)
        self.stage = stage
        self.store = Store(stage, QUICK)
        for name in self.store.members:
            stage.start(name, self.store.recipe(name))
        assert self.sim.run_until(lambda: not self.store.problem(), 30.0)

    def do(self, name: str, operation: Operation) -> Outcome:
        outcomes: list[Outcome] = []
        self.sim.call(name, self.sim.protocol(name, Dht).submit, operation, outcomes.append)
        assert self.sim.run_until(lambda: bool(outcomes), 10.0, every=0.01)
        return outcomes[0]


def test_a_value_ends_with_its_time_and_leaves_nothing_behind() -> None:
    zone = Zone()
    zone.do("n0", Operation(Kind.PUT, b"k", b"v", ttl=3.0))
    zone.do("n0", Operation(Kind.PUT, b"stays", b"v"))
    assert zone.do("n1", Operation(Kind.GET, b"k")) == Outcome(Status.DONE, True, b"v")
    zone.sim.run_for(3.0)
    assert zone.do("n2", Operation(Kind.GET, b"k")) == Outcome(Status.DONE)
    assert zone.do("n3", Operation(Kind.PUT_IF_ABSENT, b"k", b"w", ttl=0.5)).applied
    zone.sim.run_for(10.0)
    held = [
        key
        for name in zone.store.members
        for shard in zone.store.dht(name).shards().values()
        for key in shard.shelf.records
    ]
    assert held == [b"stays"] * 3
    assert not zone.store.problem()


def test_a_watcher_hears_each_value_also_of_the_next_leader() -> None:
    zone = Zone()
    heard: list[bytes | None] = []
    where = zone.store.dht("n0").where(b"k")
    names = [name for name in zone.store.members if name not in where.members] or ["n0"]
    watcher = names[0]
    zone.do(watcher, Operation(Kind.GET, b"k"))
    zone.sim.call(watcher, zone.store.dht(watcher).watch, b"k", heard.append)
    zone.sim.run_for(1.0)
    assert heard == [None]
    zone.do("n1", Operation(Kind.PUT, b"k", b"1"))
    zone.do("n1", Operation(Kind.PUT_IF_ABSENT, b"k", b"2"))  # changes nothing
    zone.sim.run_for(1.0)
    assert heard == [None, b"1"]
    leader = zone.store.dht(watcher).where(b"k").leader
    assert leader is not None
    if leader != watcher:
        zone.store.crash(leader)
        zone.store.members.remove(leader)
    assert zone.sim.run_until(lambda: not zone.store.problem(), 30.0)
    other = next(name for name in zone.store.members if name != watcher)
    zone.do(other, Operation(Kind.REMOVE, b"k"))
    zone.sim.run_for(4.0)
    assert heard == [None, b"1", None]


def test_stale_reads_answer_without_asking_anybody() -> None:
    zone = Zone()
    zone.do("n0", Operation(Kind.PUT, b"k", b"v"))
    members = zone.store.dht("n0").where(b"k").members or ()
    name = members[-1] if members else "n0"
    zone.sim.run_for(2.0)
    delivered = zone.sim.traffic.messages
    outcomes: list[Outcome] = []
    operation = Operation(Kind.GET, b"k", stale_ok=True)
    zone.sim.call(name, zone.store.dht(name).submit, operation, outcomes.append)
    zone.sim.run_for(0.0)
    assert outcomes == [Outcome(Status.DONE, True, b"v")]
    assert zone.sim.traffic.messages == delivered


def test_who_has_a_stale_upper_tier_ring_is_told_where_keys_lie() -> None:
    sim = Simulator(3)
    stage: Stage = SimStage(sim, nodes=9)
    store = Federation(stage)
    for name in store.members:
        stage.start(name, store.recipe(name))
    assert sim.run_until(lambda: not store.problem(), 60.0)
    stale = store.dht("a1")
    stale._core.tier = (("a", 1), ("nowhere", 7))
    stale._parts.routes.clear()
    for key in (b"apple", b"pear", b"plum", b"quince", b"fig"):
        outcomes: list[Outcome] = []
        sim.call("a1", stale.submit, Operation(Kind.PUT, key, b"v"), outcomes.append)
        assert sim.run_until(lambda: bool(outcomes), 10.0, every=0.01)  # noqa: B023
        assert outcomes == [Outcome(Status.DONE, True)]


def test_a_lost_majority_is_refused_until_a_person_accepts_the_loss() -> None:
    zone = Zone()
    for number in range(40):
        zone.do("n0", Operation(Kind.PUT, b"%d" % number, b"v"))
    zone.store.crash("n1")
    zone.store.crash("n2")  # with their memory: some shards keep one replica of three
    for name in ("n1", "n2"):
        zone.store.members.remove(name)
    zone.sim.run_for(20.0)
    assert zone.store.problem()
    lost = {name: zone.store.dht(name).without_majority for name in zone.store.members}
    assert sum(lost.values()) > 0
    outcomes = [zone.do("n0", Operation(Kind.GET, b"%d" % number)) for number in range(40)]
    assert any(one.status is not Status.DONE for one in outcomes)
    accepted = [
        zone.sim.call(name, zone.store.dht(name).accept_loss) for name in zone.store.members
    ]
    assert accepted == [lost[name] for name in zone.store.members]
    assert zone.sim.run_until(lambda: not zone.store.problem(), 30.0)
    outcomes = [zone.do("n0", Operation(Kind.GET, b"%d" % number)) for number in range(40)]
    assert outcomes == [Outcome(Status.DONE, True, b"v")] * 40  # each had a survivor
    assert not any(zone.store.dht(name).accept_loss(zone.sim.now) for name in zone.store.members)


def test_who_was_only_out_of_reach_gives_way_when_its_loss_was_accepted() -> None:
    zone = Zone()
    zone.do("n0", Operation(Kind.PUT, b"k", b"old"))
    members = zone.store.dht("n0").where(b"k").members
    survivor, apart = members[0], members[1:]
    rest = [name for name in zone.store.members if name not in apart]
    zone.stage.partition([rest, list(apart)])
    zone.sim.run_for(20.0)
    zone.sim.call(survivor, zone.store.dht(survivor).accept_loss)
    zone.sim.run_for(10.0)
    assert zone.do(survivor, Operation(Kind.PUT, b"k", b"new")).status is Status.DONE
    zone.stage.heal()
    assert zone.sim.run_until(lambda: not zone.store.problem(), 60.0), zone.store.problem()
    for name in zone.store.members:
        assert zone.do(name, Operation(Kind.GET, b"k")).value == b"new"
