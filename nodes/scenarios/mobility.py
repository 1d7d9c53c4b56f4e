"""Scenarios of moving clients: whatever happened, the tables end as if they had never moved."""

from __future__ import annotations

from nodes.scenarios.content_world import random_graph, some_constraint
from nodes.scenarios.mobility_world import ALGORITHMS, MobileWorld
from nodes.scenarios.registry import scenario
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage

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
) -> MobileWorld:
    """Brokers in a random graph, and clients that move, each by another algorithm."""
    names = [f"b{index}" for index in range(stage.size)]
    world = MobileWorld(stage, random_graph(stage.rng, names, extra))
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
            world.churn([name for name in world.stage.names if name in world.client_of])
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
