"""Scenarios of moving clients: whatever happened, the tables end as if they had never moved."""

from __future__ import annotations

from msgspec.structs import replace

from nodes.scenarios.content_world import ITEMS, random_graph, some_constraint
from nodes.scenarios.discovery_world import simulator
from nodes.scenarios.mobility_world import ALGORITHMS, SWIFT, MobileWorld
from nodes.scenarios.registry import scenario
from overlay.predicates import Constraint, determines, matches
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Duplicate, Exponential, NetworkModel, Reorder
from protocols.mobility import Mobility

WITHOUT_PROXIES = tuple(one for one in ALGORITHMS if one != "proxy")
STEP = 0.4  # s between two events of a story
EVERYTHING = Constraint.parse("x >= 0, y >= 0")


def world_of(
    stage: Stage,
    *,
    extra: int = 0,
    movers: int = 4,
    handover: str = "best-effort",
    algorithms: tuple[str, ...] = ALGORITHMS,
    reanchor: float = SWIFT.reanchor,
) -> MobileWorld:
    """Brokers in a random graph, and clients that move, each by another algorithm."""
    names = [f"b{index}" for index in range(stage.size)]
    moving = replace(SWIFT, reanchor=reanchor)
    world = MobileWorld(stage, random_graph(stage.rng, names, extra), moving=moving)
    for index in range(movers):
        world.start_mover(
            f"m{index}",
            stage.rng.choice(world.brokers),
            algorithm=stage.rng.choice(algorithms),
            handover=handover,
            predictor=stage.rng.choice(("none", "last-direction", "perfect")),
        )
    return world


def wish(world: MobileWorld) -> None:
    """Everybody advertises or subscribes to something."""
    rng = world.stage.rng
    for name in world.stage.names:
        if name.startswith("m") or rng.random() < 0.3:
            world.advertise(name, "p", some_constraint(rng, both=0.7))
        if rng.random() < 0.6:
            world.subscribe(name, "s", some_constraint(rng, both=0.3))


def roam(world: MobileWorld, steps: int) -> Scenario:
    """Clients move, and sometimes change their mind about what they want."""
    rng = world.stage.rng
    for _ in range(steps):
        movers = [name for name in world.stage.names if name.startswith("m")]
        world.stay_or_leave(rng.choice(movers))
        if rng.random() < 0.3:
            there = [one for one in world.stage.names if one in (*world.brokers, *world.client_of)]
            world.churn(there)
        for name in movers:
            if "p" in world.advertised[name]:
                constraint = world.advertised[name]["p"]
                items = [item for item in ITEMS if determines(constraint, item)]
                world.publish(name, "p", rng.choice(items))
        yield Pause(STEP * rng.random())


@scenario("mobility-tree", nodes=6)
def tree(stage: Stage) -> Scenario:
    """Publishers with all algorithms move over a tree of brokers."""
    world = world_of(stage, algorithms=WITHOUT_PROXIES)
    yield Pause(1.0)
    wish(world)
    yield Pause(0.5)
    yield from roam(world, 25)
    yield from world.settle()
    world.check_fresh()
    yield from world.check()


@scenario("mobility-cycles", nodes=6)
def cycles(stage: Stage) -> Scenario:
    """The same over a graph with cycles."""
    world = world_of(stage, extra=4, algorithms=WITHOUT_PROXIES)
    yield Pause(1.0)
    wish(world)
    yield Pause(0.5)
    yield from roam(world, 25)
    yield from world.settle()
    world.check_fresh()
    yield from world.check()


@scenario("mobility-delayed", nodes=8)
def delayed(stage: Stage) -> Scenario:
    """Grafts alone, never built anew, over a tree: what is left is exactly the new placement's."""
    world = world_of(stage, movers=0, reanchor=0.0)
    for index in range(3):
        world.start_mover(
            f"m{index}",
            stage.rng.choice(world.brokers),
            algorithm=stage.rng.choice(("delayed", "prefetching+delayed")),
            handover=stage.rng.choice(("best-effort", "sounded")),
            predictor="perfect",
        )
    yield Pause(1.0)
    for index in range(3):  # nothing covers anything, which would depend on where it was first
        world.advertise(f"m{index}", "p", Constraint.parse(f"x = {index}"))
    for name in stage.names:
        if stage.rng.random() < 0.7:
            world.subscribe(name, "s", some_constraint(stage.rng, both=0.0))
    yield Pause(0.5)
    for _ in range(25):
        mover = f"m{stage.rng.randrange(3)}"
        world.stay_or_leave(mover)
        yield Pause(STEP * stage.rng.random())
    yield from world.settle(1.5)
    before = world.epochs()
    yield from world.settle()
    world.check_fresh()
    yield from world.check()
    assert world.epochs() == before, "a tree was built anew"


@scenario("mobility-proxies", nodes=8)
def proxies(stage: Stage) -> Scenario:
    """Publishers with proxies move among them and beyond, end, and leave nothing behind."""
    world = world_of(stage, movers=3, algorithms=("proxy",))
    yield Pause(1.0)
    wish(world)
    yield from roam(world, 20)
    yield from world.settle(3.0)
    yield from world.check(settled=3.0)
    for index in range(3):
        world.stop(f"m{index}")
        world.client_of.pop(f"m{index}")
    yield Pause(3 * SWIFT.proxy_lease)
    world.check_fresh()


@scenario("mobility-crashes", nodes=6)
def crashes(stage: Stage) -> Scenario:
    """Brokers crash and return while clients move; anchors, proxies and predicted ones, too."""
    world = world_of(stage, extra=3, handover=stage.rng.choice(("sounded", "lossless")))
    yield Pause(1.0)
    wish(world)
    for _ in range(3):
        yield from roam(world, 6)
        gone = stage.rng.choice(world.brokers)
        world.crash(gone)
        yield from roam(world, 5)
        if stage.rng.random() < 0.5:
            yield Pause(3.0)  # long enough to be missed
        world.restart(gone)
    yield from quiet(world)


def quiet(world: MobileWorld) -> Scenario:
    """Everybody is somewhere, all is mended: proxies end, and nothing is left of any way."""
    stage = world.stage
    for name in [one for one in world.of_client if world.of_client[one].algorithm == "proxy"]:
        if name in stage.names:
            world.stop(name)
        world.client_of.pop(name, None)
    yield from world.settle(3 * SWIFT.proxy_lease)
    world.check_order()  # whatever happened, nothing came twice, or after its successors
    world.check_fresh()
    yield from world.check(settled=0.5)


@scenario(
    "mobility-loss",
    nodes=5,
    faults=(Duplicate(0.1, within=0.05), Reorder(0.05, by=0.05)),
    both_worlds=False,
)
def loss(stage: Stage) -> Scenario:
    """Frames are lost, come twice and in another order while clients move."""
    world = world_of(
        stage, extra=stage.rng.choice((0, 2)), handover=stage.rng.choice(("sounded", "lossless"))
    )
    stage.loss(0.1)
    yield Pause(1.5)
    wish(world)
    yield from roam(world, 30)
    stage.heal()
    yield Pause(1.0)
    simulator(stage).faults.clear()
    yield from quiet(world)


@scenario("mobility-partition", nodes=6, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """The network is parted under the movers: some appear where nobody knows them."""
    world = world_of(stage, extra=2, handover=stage.rng.choice(("sounded", "lossless")))
    yield Pause(1.0)
    wish(world)
    for _ in range(2):
        yield from roam(world, 5)
        everybody = list(stage.names)
        stage.rng.shuffle(everybody)
        cut = stage.rng.randrange(1, len(everybody))
        stage.partition([everybody[:cut], everybody[cut:]])
        yield from roam(world, 8)
        stage.heal()
    yield from quiet(world)


@scenario("mobility-lossless", nodes=6, network=NetworkModel(latency=Exponential(0.02, 0.002)))
def lossless(stage: Stage) -> Scenario:
    """Publishers publish without a pause while they move: everything arrives, once, in order."""
    extra = stage.rng.choice((0, 3))
    world = world_of(stage, extra=extra, handover="lossless", reanchor=0.0)
    movers = list(world.of_client)
    for index in range(2):
        world.start_client(f"c{index}", stage.rng.choice(world.brokers))
    yield Pause(1.5)
    for name in stage.names:
        if name not in movers:
            world.subscribe(name, "s", some_constraint(stage.rng, both=0.0))
    for name in movers:
        narrow = some_constraint(stage.rng, both=1.0)
        world.advertise(name, "p", stage.rng.choice((EVERYTHING, narrow)))
    yield Pause(2.0)
    world.delivered.clear()
    due: dict[str, list[tuple[str, int]]] = {}
    for turn in range(120):
        for name in movers:
            items = [item for item in ITEMS if determines(world.advertised[name]["p"], item)]
            item = stage.rng.choice(items)
            sequence = world.publish(name, "p", item)
            for wanting, wishes in world.wanted.items():
                if wishes and matches(item, wishes["s"]):
                    due.setdefault(f"{wanting}/s", []).append((f"{name}/p", sequence))
        if turn % 4 == 0:
            name = stage.rng.choice(movers)
            if name not in world.client_of or stage.rng.random() < 0.5:
                world.movein(name, stage.rng.choice(world.brokers))
            else:
                world.moveout(name)
        yield Pause(0.05)
    for name in movers:
        if name not in world.client_of:
            world.movein(name, stage.rng.choice(world.brokers))
    yield Until(
        lambda: not any(stage.protocol(name, Mobility).is_moving for name in movers),
        10,
        "trees that stand",
    )
    total = sum(len(one) for one in due.values())
    yield Until(lambda: len(world.delivered) >= total, 5, f"{total} deliveries")
    yield Pause(1.0)
    for wanting in due:
        for name in movers:
            came = world.arrived().get(wanting, {}).get(f"{name}/p", [])
            wanted = [number for of, number in due[wanting] if of == f"{name}/p"]
            assert came == wanted, f"{wanting} of {name}: {came}, not {wanted}"


@scenario("mobility-twice", nodes=6, both_worlds=False)
def twice(stage: Stage) -> Scenario:
    """Clients move while their old broker cannot hear them: they are at two brokers at once."""
    world = world_of(stage, extra=2, handover=stage.rng.choice(("best-effort", "lossless")))
    yield Pause(1.0)
    wish(world)
    yield Pause(0.5)
    for _ in range(6):
        mover = stage.rng.choice(list(world.of_client))
        deaf = world.client_of.get(mover)
        if deaf is not None:
            stage.partition([[mover], [deaf]])
        world.movein(mover, stage.rng.choice(world.brokers))
        yield Pause(STEP * 2 * stage.rng.random())
        stage.heal()
    yield from quiet(world)


@scenario("mobility-silent", nodes=4)
def silent(stage: Stage) -> Scenario:
    """The old broker is dead, then the new one never answers: what is held arrives in the end."""
    world = world_of(stage, movers=0, reanchor=0.0)
    world.start_mover("m0", "b1", algorithm=stage.rng.choice(ALGORITHMS), handover="lossless")
    yield Pause(1.0)
    world.advertise("m0", "p", EVERYTHING)
    world.subscribe("b0", "s", EVERYTHING)
    yield Pause(1.0)
    world.crash("b3")
    world.movein("m0", "b3")
    sequences = [world.publish("m0", "p", {"x": turn, "y": 0}) for turn in range(5)]
    unanswered = stage.protocol("m0", Mobility).counts
    yield Until(lambda: unanswered.unanswered > 0, 3 * SWIFT.patience, "word of a silent broker")
    assert not world.delivered, "published at a broker that is dead"
    world.movein("m0", stage.rng.choice(("b0", "b1")))
    sequences += [world.publish("m0", "p", {"x": turn, "y": 1}) for turn in range(5)]
    yield Until(lambda: len(world.delivered) >= 10, 3 * SWIFT.patience, "ten deliveries")
    yield Pause(1.0)
    assert [one.sequence for one in world.delivered] == sequences, "lost, doubled or out of order"
