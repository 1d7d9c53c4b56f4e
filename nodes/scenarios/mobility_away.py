"""Scenarios of subscribers that are away and come back: nothing lost, nothing twice, in order."""

from __future__ import annotations

from msgspec.structs import replace

from nodes.scenarios.away_world import KEEPING, AwayWorld
from nodes.scenarios.content_world import random_graph
from nodes.scenarios.discovery_world import simulator
from nodes.scenarios.registry import scenario
from overlay.scenario import Pause, Scenario, Stage
from overlay.sim import Duplicate, Exponential, Loss, NetworkModel, Reorder
from protocols.mobility.box import COUNT

SUBSCRIBERS = ("s0", "s1")
PUBLISHERS = ("p0", "p1")
STEP = 0.1  # s between two publications of each publisher


def stage_of(stage: Stage, keeping: object = None, extra: int = 0) -> AwayWorld:
    """Brokers in a random graph, two publishers, and two subscribers that nobody moved yet."""
    names = [f"b{index}" for index in range(stage.size)]
    world = AwayWorld(stage, random_graph(stage.rng, names, extra), keeping or KEEPING)  # type: ignore[arg-type]
    world.start_publishers(PUBLISHERS, [stage.rng.choice(names) for _ in PUBLISHERS])
    for name in SUBSCRIBERS:
        world.start_subscriber(name, stage.rng.choice(names))
    return world


def under_load(world: AwayWorld, seconds: float) -> Scenario:
    """Publications for so long."""
    for _ in range(max(1, round(seconds / STEP))):
        world.publish_some()
        yield Pause(STEP)


@scenario("mobility-away-moves", nodes=4, network=NetworkModel(latency=Exponential(0.02, 0.002)))
def moves(stage: Stage) -> Scenario:
    """Subscribers move, leave and return under load: everything comes, once and in order."""
    rng = stage.rng
    world = stage_of(stage, extra=rng.choice((0, 0, 2)))
    yield from world.settled()
    for _ in range(8):
        name = rng.choice(SUBSCRIBERS)
        if rng.random() < 0.3:
            world.leave(name)
            yield from under_load(world, rng.random() * 2)
        world.move(name, rng.choice(world.brokers))
        yield from under_load(world, rng.choice((0.1, 0.3, 1.0, 2.0)))
    yield from world.check_all()
    yield from world.check_nothing_left()


@scenario("mobility-away-crashes", nodes=4)
def crashes(stage: Stage) -> Scenario:
    """Subscribers die without a word, and return elsewhere knowing where they were."""
    rng = stage.rng
    world = stage_of(stage)
    yield from world.settled()
    for _ in range(4):
        name = rng.choice(SUBSCRIBERS)
        stage.crash(name)
        yield from under_load(world, rng.choice((0.2, 1.0, 2.5)))
        stage.restart(name)
        world.arrive(name, rng.choice(world.brokers))
        yield from under_load(world, rng.choice((0.2, 2.0)))
    yield from world.check_all()
    yield from world.check_nothing_left()


@scenario("mobility-away-loss", nodes=4, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """Links of subscribers lose, double and mix up frames; all links do while nobody publishes."""
    rng = stage.rng
    world = stage_of(stage)
    yield from world.settled()
    faults = simulator(stage).faults
    bad = (Loss, Duplicate, Reorder)
    for _ in range(3):
        for rule in bad:
            faults.add(rule(p=0.15, nodes=SUBSCRIBERS))
        yield from under_load(world, 1.0)
        world.leave(rng.choice(SUBSCRIBERS))
        yield from under_load(world, 1.0)
        yield Pause(0.5)  # brokers pass the last ones on
        for rule in bad:
            faults.add(rule(p=0.15))
        for name in SUBSCRIBERS:
            world.move(name, rng.choice(world.brokers))
            yield Pause(rng.random())
        yield Pause(2.0)
        faults.clear()
        yield from world.settled()
    yield from world.check_all()
    yield from world.check_nothing_left()


@scenario("mobility-away-two-brokers", nodes=5, both_worlds=False)
def two_brokers(stage: Stage) -> Scenario:
    """Subscribers turn to one broker after the other, faster than any of them can fetch."""
    rng = stage.rng
    world = stage_of(stage)
    yield from world.settled()
    simulator(stage).faults.add(Reorder(0.3, by=0.1, nodes=SUBSCRIBERS))
    for _ in range(4):
        for name in SUBSCRIBERS:
            for broker in rng.sample(world.brokers, rng.choice((2, 3))):
                world.move(name, broker)
                if rng.random() < 0.7:
                    yield Pause(rng.choice((0.0, 0.002, 0.05, 0.2)))
        yield from under_load(world, rng.choice((0.3, 1.5)))
    yield from world.check_all()
    yield from world.check_nothing_left()


@scenario("mobility-away-both-move", nodes=4)
def both_move(stage: Stage) -> Scenario:
    """Publishers and subscribers move at the same time, all with lossless handover."""
    rng = stage.rng
    world = stage_of(stage)
    yield from world.settled()
    for _ in range(6):
        world.move(rng.choice(SUBSCRIBERS), rng.choice(world.brokers))
        mover = rng.choice(PUBLISHERS)
        if rng.random() < 0.5:
            world.move_out(mover)
            yield from under_load(world, rng.random())
        if rng.random() < 0.5:
            world.move(rng.choice(SUBSCRIBERS), rng.choice(world.brokers))
        world.move_in(mover, rng.choice(world.brokers))
        yield from under_load(world, rng.choice((0.1, 0.5, 2.0)))
    for name in PUBLISHERS:
        if name not in world.client_of:
            world.move_in(name, rng.choice(world.brokers))
    yield from world.check_all()
    yield from world.check_nothing_left()


@scenario("mobility-away-broker-crash", nodes=4)
def broker_crash(stage: Stage) -> Scenario:
    """The old broker dies with what it kept: its subscriber is told of a gap, and goes on."""
    rng = stage.rng
    world = stage_of(stage)
    homes = {world.client_of[name] for name in PUBLISHERS}
    spare = [name for name in world.brokers if name not in homes]
    yield from world.settled()
    old, *others = rng.sample(spare, len(spare))
    world.move("s0", old)
    yield from under_load(world, 2.0)
    world.leave("s0")
    yield from under_load(world, 1.0)
    stage.crash(old, "none")
    yield Pause(3.0)  # brokers notice
    world.move("s0", rng.choice([*others, *homes]))
    yield from under_load(world, rng.choice((0.5, 6.0)))
    if rng.random() < 0.5:
        stage.restart(old)
    yield Pause(8.0)
    told = world.gaps("s0")
    world.check_order()
    assert len(told) == 1, f"s0 was told {told}"
    before = len(world.numbers("s0", "p0"))
    yield from under_load(world, 0.5)
    yield Pause(1.0)
    world.check_order()
    assert len(world.numbers("s0", "p0")) >= before  # the graph may be parted


@scenario("mobility-away-durable", nodes=3)
def durable(stage: Stage) -> Scenario:
    """Brokers with a disk die and return: what they kept comes, and a gap for what they missed."""
    rng = stage.rng
    world = stage_of(stage, replace(KEEPING, storage="sqlite"))
    yield from world.settled()
    world.leave("s0")
    yield from under_load(world, 1.0)
    yield Pause(1.0)
    keeping = [name for name in world.brokers if any(world.keeper(name).boxes())]
    for name in keeping:
        stage.crash(name)
    yield Pause(rng.choice((0.1, 3.0)))
    for name in keeping:
        stage.restart(name)
    yield Pause(3.0)
    before = {name: list(items) for name, items in world.published.items()}
    world.move("s0", rng.choice(world.brokers))
    world.move("s1", rng.choice(world.brokers))
    yield from world.settled()
    yield Pause(3.0)
    yield from under_load(world, 1.0)
    yield Pause(6.0)
    world.check_order()
    for name in SUBSCRIBERS:
        assert world.gaps(name), f"{name} was told of no gap"
        for publisher, items in before.items():
            came = world.numbers(name, publisher)
            assert came[: len(items)] == items, f"{name} got {came} of {publisher}, not {items}"
            assert came == world.published[publisher], f"{name} got {came} of {publisher}"
    yield from world.check_nothing_left()


@scenario("mobility-away-bounds", nodes=3)
def bounds(stage: Stage) -> Scenario:
    """More is published than is kept: what is lost is counted, in its place."""
    rng = stage.rng
    most = rng.choice((5, 20))
    world = stage_of(stage, replace(KEEPING, max_kept=most))
    yield from world.settled()
    for _ in range(2):
        world.leave("s0")
        yield from under_load(world, rng.choice((0.2, 3.0)))
        yield Pause(0.5)
        world.move("s0", rng.choice(world.brokers))
        yield Pause(6.0)
    world.check_order()
    lost = sum(gap.lost for gap in world.gaps("s0"))
    assert all(gap.reason == COUNT for gap in world.gaps("s0"))
    came = sum(len(world.numbers("s0", name)) for name in PUBLISHERS)
    assert came + lost == sum(map(len, world.published.values())), f"{came} came, {lost} are lost"
    yield from world.check_nothing_left()
