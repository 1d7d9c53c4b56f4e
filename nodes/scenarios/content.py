"""Scenarios of content-based routing: whatever happened, publications find who wants them."""

from __future__ import annotations

from nodes.scenarios.content_world import ContentWorld, random_graph
from nodes.scenarios.discovery_world import simulator
from nodes.scenarios.registry import scenario
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage
from overlay.sim import Duplicate, Exponential, NetworkModel, OneWay, Reorder
from protocols.content import Content

EVERYTHING = Constraint.parse("x >= 0, y >= 0")
STEP = 0.3  # s between two events of a story


def names_of(stage: Stage) -> list[str]:
    """The brokers' names."""
    return [f"b{index}" for index in range(stage.size)]


def with_clients(stage: Stage, *, extra: int = 0, clients: int = 3) -> ContentWorld:
    """Brokers in a random graph, and some clients."""
    world = ContentWorld(stage, random_graph(stage.rng, names_of(stage), extra))
    for index in range(clients):
        world.start_client(f"c{index}", stage.rng.choice(world.brokers))
    return world


@scenario("content-tree", nodes=5)
def tree(stage: Stage) -> Scenario:
    """Entries come and go over a tree of brokers."""
    world = with_clients(stage)
    yield Pause(1.0)
    for _ in range(25):
        world.churn()
        yield Pause(STEP * stage.rng.random())
    yield from world.check()


@scenario("content-cycles", nodes=6)
def cycles(stage: Stage) -> Scenario:
    """The same over a graph with cycles, where brokers crash and return."""
    world = with_clients(stage, extra=4)
    yield Pause(1.0)
    for _ in range(4):
        for _ in range(8):
            world.churn()
            yield Pause(STEP * stage.rng.random())
        gone = stage.rng.choice(world.brokers)
        world.crash(gone)
        for _ in range(6):
            world.churn()
            yield Pause(STEP)
        if stage.rng.random() < 0.5:
            yield Pause(4.0)  # long enough to be missed
        world.restart(gone)
    yield from world.check()


@scenario(
    "content-loss",
    nodes=5,
    faults=(Duplicate(0.1, within=0.05), Reorder(0.05, by=0.05)),
    both_worlds=False,
)
def loss(stage: Stage) -> Scenario:
    """Frames are lost, come twice and in another order; then no more are lost."""
    world = with_clients(stage, extra=stage.rng.choice((0, 0, 3)))
    stage.loss(0.1)
    for _ in range(40):
        world.churn()
        yield Pause(STEP * stage.rng.random())
    stage.heal()
    yield from quiet_check(stage, world)


def quiet_check(stage: Stage, world: ContentWorld) -> Scenario:
    """Check without the faults that a publication would not survive: it is sent once."""
    yield Pause(2.0)
    simulator(stage).faults.clear()
    yield from world.check()


@scenario("content-one-way", nodes=6, both_worlds=False)
def one_way(stage: Stage) -> Scenario:
    """Some links carry one way alone: they count as broken, and others are used."""
    world = with_clients(stage, extra=5)
    yield Pause(1.5)
    for _ in range(10):
        world.churn()
    broken = stage.rng.sample(world.edges, 2)
    for edge in broken:
        deaf, dumb = stage.rng.sample(edge, 2)
        simulator(stage).faults.add(OneWay(dumb, deaf))
    for _ in range(10):
        world.churn()
        yield Pause(STEP)
    world.edges = [edge for edge in world.edges if edge not in broken]
    yield from world.check()


@scenario("content-partition", nodes=6)
def partition(stage: Stage) -> Scenario:
    """The brokers are parted, entries come and go on both sides, and the parts meet again."""
    world = with_clients(stage, extra=3)
    yield Pause(1.0)
    for _ in range(2):
        for _ in range(8):
            world.churn()
            yield Pause(STEP)
        everybody = list(stage.names)
        stage.rng.shuffle(everybody)
        cut = stage.rng.randrange(1, len(everybody))
        stage.partition([everybody[:cut], everybody[cut:]])
        for _ in range(10):
            world.churn()
            yield Pause(STEP)
        stage.heal()
    yield from world.check()


@scenario("content-clients", nodes=4)
def clients(stage: Stage) -> Scenario:
    """Clients crash, return, leave and turn to other brokers."""
    world = with_clients(stage, extra=1, clients=6)
    yield Pause(1.0)
    for _ in range(30):
        world.churn()
        yield Pause(STEP * stage.rng.random())
        act, name = stage.rng.random(), f"c{stage.rng.randrange(6)}"
        if name not in stage.names:
            world.restart(name)
            world.client_of[name] = world.first_broker[name]
        elif act < 0.15:
            world.crash(name)
        elif act < 0.25:
            world.stop(name)
        elif act < 0.5:
            world.attach(name, stage.rng.choice(world.brokers))
    yield from world.check()


@scenario(
    "content-order",
    nodes=6,
    network=NetworkModel(latency=Exponential(0.04, 0.005)),
    both_worlds=False,
)
def order(stage: Stage) -> Scenario:
    """Links come and go under a stream of publications: they arrive in order, and none twice."""
    world = with_clients(stage, extra=5, clients=2)
    yield Pause(1.5)
    publishers = stage.rng.sample(list(stage.names), 3)
    for name in publishers:
        world.advertise(name, "p", EVERYTHING)
    for name in stage.names:
        world.subscribe(name, "s", Constraint.parse("x >= 0"))
    yield Pause(1.0)
    world.delivered.clear()
    for turn in range(300):
        for name in publishers:
            world.publish(name, "p", {"x": turn, "y": 0})
        if turn % 40 == 10:  # one link is unlinked and linked again: the trees move at once
            one, other = stage.rng.choice(world.edges)
            stage.call(one, lambda host: host.protocol(Content).unlink, other)
        elif turn % 40 == 30:
            stage.call(one, lambda host: host.protocol(Content).link, other)
        yield Pause(0.02)
    yield Pause(1.0)
    world.check_order()
    came = len(world.delivered)
    assert came > 0.5 * 300 * len(publishers) * len(stage.names), f"only {came} arrived"
    yield from world.check()
