"""Scenarios of resource discovery: finds against a central oracle, while everything goes wrong."""

from __future__ import annotations

from nodes.scenarios.discovery_world import simulator
from nodes.scenarios.registry import scenario
from nodes.scenarios.resources_world import EXPIRY, World
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Duplicate, Loss
from protocols.content.machine import Content
from protocols.resources import ModelType, ResourceFound, ResourceGone, Resources

ROUNDS = 6
EVERYTHING = Constraint.parse("system present")


def workload(world: World, rounds: int = ROUNDS) -> Scenario:
    """Finds at all brokers while resources change, come and go."""
    rng = world.stage.rng
    for _ in range(2 * world.stage.size):
        world.register(rng.choice(world.stage.names))
    yield world.settled()
    yield Pause(EXPIRY)  # a find owes only what was there so long before
    for _ in range(rounds):
        for _ in range(rng.randrange(1, 6)):
            world.find(rng.choice(world.stage.names))
            if rng.random() < 0.5:
                yield Pause(rng.choice((0.001, 0.01, 0.1)))
        for _ in range(rng.randrange(4)):
            world.change()
        yield Pause(rng.choice((0.001, 0.01, 0.5, 2.0)))
    yield world.all_ended()


def ending(world: World) -> Scenario:
    """Once all is quiet every broker finds exactly what there is."""
    yield world.settled()
    yield Pause(EXPIRY + 0.1)
    for name in world.stage.names:
        yield from world.exact(name, world.query())
    yield from world.exact(world.stage.names[0], EVERYTHING)


@scenario("resources-similarity", nodes=8, both_worlds=False)
def similarity(stage: Stage) -> Scenario:
    """Nothing goes wrong: every find is complete, and shares what it may."""
    world = World(stage)
    yield from world.start()
    yield from workload(world)
    world.judge()
    assert world.complete == world.judged > 0, (world.complete, world.judged)
    yield from ending(world)
    shared = sum(stage.protocol(name, Resources).counts.covered for name in stage.names)
    assert shared > 0, "no find shared the results of another"


@scenario("resources-normal", nodes=8, both_worlds=False)
def normal(stage: Stage) -> Scenario:
    """The same without sharing."""
    world = World(stage, "normal")
    yield from world.start()
    yield from workload(world)
    world.judge()
    assert world.complete == world.judged > 0
    yield from ending(world)


@scenario("resources-direct", nodes=8, both_worlds=False)
def direct(stage: Stage) -> Scenario:
    """Results go straight to whoever asks."""
    world = World(stage, "direct")
    yield from world.start()
    yield from workload(world)
    world.judge()
    assert world.complete == world.judged > 0
    yield from ending(world)


@scenario(
    "resources-loss",
    nodes=6,
    faults=(Loss(0.1, traffic="links"), Duplicate(0.2, within=0.05, traffic="links")),
)
def loss(stage: Stage) -> Scenario:
    """A tenth of all frames is lost, and many come twice, late."""
    world = World(stage, stage.rng.choice(("similarity", "normal", "direct")))
    yield from world.start()
    yield from workload(world)
    world.judge(owed=False)  # tables lag behind while changes are lost
    yield from ending(world)


@scenario("resources-crash", nodes=8, both_worlds=False)
def crash(stage: Stage) -> Scenario:
    """Brokers crash while finds are under way, and return without anything."""
    world = World(stage, stage.rng.choice(("similarity", "similarity", "normal", "direct")))
    yield from world.start()
    rng = stage.rng
    for _ in range(2 * stage.size):
        world.register(rng.choice(stage.names))
    yield world.settled()
    for _ in range(ROUNDS):
        world.find_everywhere()
        yield Pause(rng.choice((0.0005, 0.001, 0.003, 0.01)))
        victim = rng.choice(world.brokers)
        world.crash(victim)
        world.find_everywhere()
        yield Pause(rng.choice((0.01, 0.5, 3.0)))
        stage.restart(victim)
        world.register(victim)
        world.change()
        world.find_everywhere()
        yield world.all_ended()
        world.judge(owed=False)  # who was cut off is not owed; what was found is right
    yield from ending(world)


@scenario("resources-cut", nodes=7, both_worlds=False)
def cut(stage: Stage) -> Scenario:
    """The network falls apart and heals while finds go on."""
    world = World(stage)
    yield from world.start()
    yield from workload(world, 2)
    world.judge()
    rng = stage.rng
    for _ in range(3):
        some = rng.sample(world.brokers, rng.randrange(1, stage.size))
        world.find_everywhere()
        yield Pause(rng.choice((0.001, 0.01)))
        stage.partition([some, [one for one in world.brokers if one not in some]])
        world.find_everywhere()
        yield Pause(rng.choice((0.5, 4.0)))
        world.change()
        stage.heal()
        world.find_everywhere()
        yield world.all_ended()
        world.judge(owed=False)
    yield from ending(world)


@scenario("resources-watch", nodes=6, both_worlds=False)
def watch(stage: Stage) -> Scenario:
    """Who watches knows, in the end, the last values of each resource that matches."""
    world = World(stage)
    heard: dict[tuple[str, int], dict[str, object]] = {}
    yield from world.start()
    rng = stage.rng
    for _ in range(stage.size):
        world.register(rng.choice(stage.names))
    yield world.settled()
    watches: dict[tuple[str, int], Constraint] = {}
    for name in stage.names:
        _listen(stage, name, heard)
        wanted = world.query()
        number = stage.call(
            name,
            lambda host: host.protocol(Resources).watch,
            *(wanted, ModelType.DYNAMIC_CONTINUOUS),
        )
        watches[name, number] = wanted
    yield Pause(2.0)
    for _ in range(30):
        world.change()
        yield Pause(rng.choice((0.0, 0.01, 0.2)))
    yield world.settled()
    yield Pause(2.0)
    for key, wanted in watches.items():
        told = heard.get(key, {})
        for resource in world.oracle.matching(wanted):
            assert told.get(resource) == world.item_of(resource), (key, resource, str(wanted))
        gone = [one for one in told if one not in world.oracle.present()]
        assert not gone, f"{key} was not told that {gone} are registered no more"


def _listen(stage: Stage, name: str, heard: dict[tuple[str, int], dict[str, object]]) -> None:
    """Keep what that node's watches are told."""

    def found(event: ResourceFound) -> None:
        heard.setdefault((name, event.watch), {})[event.resource.id] = event.resource.item

    def gone(event: ResourceGone) -> None:
        del heard[name, event.watch][event.resource.id]

    host = simulator(stage).host(name)
    host.listen(ResourceFound, found)
    host.listen(ResourceGone, gone)


@scenario("resources-static", nodes=6)
def static(stage: Stage) -> Scenario:
    """Static resources are found at any broker at once, and whoever watches hears of new ones."""
    world = World(stage)
    stage.rng.shuffle(world.brokers)
    for name in world.brokers:
        stage.start(name, world.recipe(name))
    first, *others = world.brokers
    wanted = Constraint.parse("memory >= 2, disk > 100")
    watching = stage.call(
        first, lambda host: host.protocol(Resources).watch, *(wanted, ModelType.STATIC_CONTINUOUS)
    )
    assert watching
    fitting = []
    for index, name in enumerate(others):
        disk = 320 if index % 2 else 80
        description = Constraint.parse(f"system = 'Linux', memory <= 4, disk = {disk}")
        made = stage.call(
            name,
            lambda host: host.protocol(Resources).register,
            *("machine", description, ModelType.STATIC, None, 0.0),
        )
        if disk > 100:
            fitting.append(made)

    def known_at(name: str) -> list[str]:
        content = stage.protocol(name, Content)
        return sorted(one.id for one in content.advertisements(wanted, ModelType.STATIC))

    yield Until(
        lambda: all(known_at(name) == sorted(fitting) for name in world.brokers),
        20,
        "the same static resources at every broker",
    )
    for name in world.brokers:
        found = stage.call(
            name, lambda host: host.protocol(Resources).find_static, wanted, 0, False
        )
        assert sorted(one.id for one in found) == sorted(fitting)
    gone = fitting.pop()
    owner = gone.partition("/")[0]
    stage.call(owner, lambda host: host.protocol(Resources).unregister, "machine")
    yield Until(
        lambda: all(known_at(name) == sorted(fitting) for name in world.brokers),
        20,
        "all brokers without the one that was unregistered",
    )


@scenario("resources-clients", nodes=6, both_worlds=False)
def clients(stage: Stage) -> Scenario:
    """Who has a broker registers and finds through it; a dead client's resources go."""
    world = World(stage)
    names = [f"c{index}" for index in range(3)]
    for name in names:
        world.add_client(name, stage.rng.choice(world.brokers))
    yield from world.start()
    for name in names:
        stage.start(name, world.recipe(name))
    yield Until(
        lambda: all(stage.protocol(name, Content).broker for name in names), 20, "brokers for all"
    )
    for name in (*names, *world.brokers[:2]):
        world.register(name)
    yield world.settled()
    for _ in range(ROUNDS):
        world.find(stage.rng.choice(names))
        world.find(stage.rng.choice(world.brokers))
        yield Pause(stage.rng.choice((0.001, 0.5)))
        world.change()
    yield world.all_ended()
    world.judge()
    assert world.complete == world.judged > 0
    yield Pause(EXPIRY + 0.1)
    for name in (*names, world.brokers[0]):
        yield from world.exact(name, world.query())
    victim = stage.rng.choice(names)
    world.crash(victim)
    yield Pause(EXPIRY + 0.1)
    yield from world.exact(world.brokers[-1], EVERYTHING)
