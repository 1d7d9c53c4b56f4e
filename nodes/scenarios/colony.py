"""Scenarios of colonies: every request ends in time, and tables are the union of what is there."""

from __future__ import annotations

from nodes.scenarios.colony_world import QUICK, Asked, World, requests, service
from nodes.scenarios.registry import scenario
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder
from protocols.colony import Terms, Wish
from protocols.colony.interface import MODES

PER_MODE = 4  # requests


@scenario("colony-basic", nodes=12)
def basic(stage: Stage) -> Scenario:
    """In every mode exactly what somebody can serve is found, and no broker is asked twice."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3)
    for name in world.computers[::5]:
        world.unwilling[name] = None
    yield world.settled()
    for mode in MODES:
        for fanout in (1, 3):
            asked = requests(world, PER_MODE, terms=Terms(mode=mode, fanout=fanout))
            yield world.ended(asked)
            world.check_ends(asked)
            world.check_right(asked)
            assert all(one.ends[0].complete for one in asked), "nothing had to time out"
    world.check_no_loop()
    yield Until(  # a client has enough before all who were asked have answered
        lambda: all(not world.colony(name).searches for name in world.brokers),
        within=QUICK.within,
        what="brokers without open searches",
    )


@scenario("colony-figure-1", nodes=7)
def figure_1(stage: Stage) -> Scenario:
    """The paper's example: S4 is found next door, S5 by way of the root."""
    world = World(stage)
    world.unit("P1", "", leads=True)
    world.unit("P2", "P1", leads=True)
    world.unit("P3", "P1", leads=True)
    for name, leader, offers in FIGURE_1:
        world.offers[name] = [service(*one) for one in offers]
        world.unit(name, leader, leads=False)
    yield world.settled()
    asked = world.ask("C1", [Wish((service(*S4),)), Wish((service(*S5),))], Terms("exhaustive"))
    yield world.ended([asked])
    assert asked.servants(0) == ["C2"]
    assert asked.servants(1) == ["C3"]
    assert sorted(key[0] for key in world.arrivals) == ["C2", "C3", "P1", "P2", "P2", "P3"]


S4 = ("CPU", "time > 5")
S5 = ("disk", "size > 10")
FIGURE_1 = (
    ("C1", "P2", ()),
    ("C2", "P2", (("CPU", "time < 10"),)),
    ("C3", "P3", (("disk", "size < 100"),)),
    ("C4", "P3", (("printer",),)),
)


@scenario("colony-instances", nodes=14, both_worlds=False)
def instances(stage: Stage) -> Scenario:
    """Several computers for one service, conjunctions that one computer serves, T_r and all."""
    world = World(stage)
    world.tree(stage.size // 4, stage.size - stage.size // 4)
    yield world.settled()
    rng = stage.rng
    for mode in MODES:
        wishes = [
            Wish((*world.random_wish().services, *world.random_wish().services)),
            Wish(world.random_wish().services, rng.randint(1, 4)),
        ]
        asked = world.ask(rng.choice(world.computers), wishes, Terms(mode))
        every = world.ask(rng.choice(world.computers), wishes, Terms("exhaustive", replies=0))
        yield world.ended([asked, every])
        world.check_ends([asked, every])
        world.check_right([asked, every])
        for one in (asked, every):
            assert all(len(set(one.servants(i))) == len(one.servants(i)) for i in range(2))
        assert len(asked.servants(0)) <= 1
        assert len(asked.servants(1)) <= wishes[1].instances
    world.check_no_loop()


@scenario("colony-thousand", nodes=9, both_worlds=False)
def thousand(stage: Stage) -> Scenario:
    """A request of a thousand services."""
    world = World(stage)
    world.tree(3, stage.size - 3)
    yield world.settled()
    asked = world.ask(world.computers[0], [world.random_wish() for _ in range(1000)])
    yield world.ended([asked])
    world.check_ends([asked])
    world.check_right([asked])
    world.check_no_loop()


@scenario("colony-churn", nodes=15, both_worlds=False)
def churn(stage: Stage) -> Scenario:
    """Computers and brokers leave, crash and return in mid-request."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3, leaders=("P0",))
    yield world.settled()
    rng = stage.rng
    asked: list[Asked] = []
    for _ in range(8):
        asked += requests(world, 3, terms=Terms(rng.choice(MODES)))
        victim = rng.choice([*world.computers, *world.brokers[1:]])
        yield Pause(rng.uniform(0, 0.01))
        if victim not in stage.names:
            stage.restart(victim)
        elif rng.random() < 0.5:
            world.crash(victim)
        else:
            stage.stop(victim)
            for key in [key for key in world.asked if key[0] == victim]:
                del world.asked[key]
        yield Pause(rng.uniform(0, 0.6))
    yield world.ended(asked)
    world.check_ends(asked)
    yield world.settled()
    yield from _all_is_found(world)


def _all_is_found(world: World) -> Scenario:
    """Tables are right again, so what is there is found."""
    asked = requests(world, 6)
    yield world.ended(asked)
    world.check_ends(asked)
    world.check_right(asked)


@scenario("colony-leader-crash", nodes=13, both_worlds=False)
def leader_crash(stage: Stage) -> Scenario:
    """A leader dies: its individuals turn to the grandparent, and home when it returns."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3)
    yield world.settled()
    victims = [
        name
        for name in world.brokers[1:]
        if any(world.colony(other).leader == name for other in stage.names)
    ]
    if not victims:
        return
    victim = stage.rng.choice(victims)
    orphans = [name for name in stage.names if world.colony(name).leader == victim]
    grandparent = world.colony(victim).leader
    asked = requests(world, 5)
    world.crash(victim)
    yield world.ended(asked)
    world.check_ends(asked)
    yield world.settled()
    assert all(world.colony(name).leader == grandparent for name in orphans)
    yield from _all_is_found(world)
    stage.restart(victim)
    yield Until(
        lambda: all(world.colony(name).leader == victim for name in orphans),
        within=20,
        what="everybody at home",
    )
    yield world.settled()
    yield from _all_is_found(world)


@scenario("colony-root-crash", nodes=13, both_worlds=False)
def root_crash(stage: Stage) -> Scenario:
    """The root dies; those below it turn to a leader that they were told of."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3, leaders=("P1",))
    yield world.settled()
    world.crash("P0")
    yield world.settled()
    yield from _all_is_found(world)


@scenario("colony-loss", nodes=10, faults=(Duplicate(0.2, within=0.2), Reorder(0.1, by=0.03)))
def loss(stage: Stage) -> Scenario:
    """One frame in ten is lost, others come twice or late: requests end, tables get right."""
    world = World(stage)
    stage.loss(0.1)
    world.tree(stage.size // 3, stage.size - stage.size // 3)
    yield world.settled(90.0)
    asked: list[Asked] = []
    for _ in range(10):
        asked += requests(world, 2, terms=Terms(stage.rng.choice(MODES)))
        yield Pause(stage.rng.uniform(0, 0.5))
    yield world.ended(asked)
    world.check_ends(asked)
    stage.heal()
    yield world.settled()
    yield from _all_is_found(world)


@scenario("colony-reliable", nodes=10, faults=(Delay(0.001, jitter=0.01),))
def reliable(stage: Stage) -> Scenario:
    """One frame in five is lost and brokers restart: who can serve is found all the same."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3)
    yield world.settled()
    clients = list(world.computers)
    stage.loss(0.2)
    terms = Terms(within=60.0, reliable=True)
    for _ in range(3):
        asked = requests(world, 3, clients=clients, terms=terms)
        yield Pause(stage.rng.uniform(0.0, 0.3))
        world.crash(stage.rng.choice(world.brokers), restarts=True)
        yield world.ended(asked)
        world.check_ends(asked)
        world.check_right(asked)
        yield world.settled(90.0)
    stage.heal()


@scenario("colony-vanishing-servant", nodes=9, both_worlds=False)
def vanishing_servant(stage: Stage) -> Scenario:
    """A servant accepts and vanishes: its client asks again without it."""
    world = World(stage)
    for index in range(3):
        world.unit(f"P{index}", f"P{index - 1}" if index else "", leads=True)
    world.offers["C0"] = []
    world.unit("C0", "P0", leads=False)
    for index in range(1, max(3, stage.size - 3)):
        world.offers[f"C{index}"] = [service("cpu")]
        world.unit(f"C{index}", f"P{index % 3}", leads=False)
    yield world.settled()
    gone: list[str] = []
    for _ in range(2):
        asked = world.ask("C0", [Wish((service("cpu"),))], Terms(without=tuple(gone)))
        yield world.ended([asked])
        (servant,) = asked.servants()
        assert servant not in gone
        gone.append(servant)
        world.crash(servant)
    asked = world.ask("C0", [Wish((service("cpu"),))], Terms(without=tuple(gone)))
    yield world.ended([asked])
    assert bool(asked.found) == (stage.size > 6)
    yield world.settled()


@scenario("colony-merge", nodes=12, both_worlds=False)
def merge(stage: Stage) -> Scenario:
    """Two colonies become one, and two again; then everybody leaves and returns."""
    world = World(stage)
    world.tree(stage.size // 3, stage.size - stage.size // 3)
    yield world.settled()
    other = stage.rng.choice(world.brokers[1:])
    stage.call(other, lambda host: host.protocol(type(world.colony(other))).delog)
    yield Until(lambda: not world.colony(other).leader, within=1, what="a split")
    yield Until(lambda: world.wrong().startswith("roots"), within=5, what="two roots")
    yield Pause(3)
    outside = [name for name in stage.names if other not in (name, *world.colony(name).path)]
    asked = world.ask(outside[0], [world.random_wish()])
    yield world.ended([asked])
    assert all(name in outside for name in asked.servants()), "nobody of the other colony"
    leader = stage.rng.choice([name for name in world.brokers if name in outside])
    stage.call(other, lambda host: host.protocol(type(world.colony(other))).follow, leader)
    yield world.settled()
    yield from _all_is_found(world)


@scenario("colony-cycle", nodes=6, both_worlds=False)
def cycle(stage: Stage) -> Scenario:
    """Leaders that were told to follow each other in a circle: refused, with a clear error."""
    world = World(stage)
    count = max(2, stage.size // 2)
    names = [f"P{index}" for index in range(count)]
    for index, name in enumerate(names):
        world.unit(name, names[(index + 1) % count], leads=True)
        if stage.rng.random() < 0.5:
            yield Pause(stage.rng.uniform(0, 0.05))
    for index in range(stage.size - count):
        world.unit(f"C{index}", stage.rng.choice(names), leads=False)

    def told() -> int:
        return sum("cycle" in refused.reason for _, refused in world.refusals)

    yield Until(lambda: told() > 0, within=10, what="a refusal that says why")
    yield world.settled()
    yield Pause(4 * QUICK.home_every)
    assert not world.wrong()
    assert told() <= 3 * count, "each reason is told once"
