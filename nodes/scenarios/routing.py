"""Scenarios of routing: each member gets each broadcast once, and every route has an end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from math import log2

from nodes.scenarios.registry import scenario
from nodes.scenarios.topology import (
    QUICK,
    TOPIC_NAMES,
    ZONE,
    add_membership,
    disturb,
    names_for,
    whole,
)
from overlay.host import Host
from overlay.ids import NodeId, Ring, Vid, key_of
from overlay.protocol import Event
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder, SimStage
from protocols.membership.machine import Membership
from protocols.routing import (
    AggregateDone,
    BroadcastArrived,
    BroadcastDone,
    Interest,
    RouteArrived,
    Routed,
    RouteFailed,
    Routing,
    RoutingSettings,
)
from protocols.topology import Topology
from protocols.topology.interface import TOPICS, interests

PATIENT = RoutingSettings(route_timeout=30.0, spread_timeout=30.0)
ROUTES = 3  # of each member in one round
ENDING = 60.0  # seconds, at most, until everything that began has ended


def share(name: NodeId) -> int:
    """What a member adds to a sum, the same at all times, unlike the number of its links."""
    return int(name[1:]) % 7


class Log:
    """What the members of one run were told, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[NodeId, Event]] = []

    def recipe(self, host: Host) -> None:
        """A member that routes, and whose application writes down what it hears."""
        members = add_membership(host).view
        links = host.add(Topology, QUICK, ZONE, members=members)
        router = host.add(Routing, PATIENT, ZONE, members=members, links=links)
        router.offer("share", lambda: share(host.me))
        for kind in Routing.emits:
            host.listen(kind, lambda event: self.heard.append((host.me, event)))

    def of(self, *kinds: type[Event]) -> list[tuple[NodeId, Event]]:
        """All of these kinds, with who heard it."""
        return [(name, event) for name, event in self.heard if isinstance(event, kinds)]

    def audiences(self) -> dict[int, Counter[NodeId]]:
        """How often each member got each broadcast."""
        found: dict[int, Counter[NodeId]] = {}
        for name, event in self.heard:
            if isinstance(event, BroadcastArrived):
                found.setdefault(event.id, Counter())[name] += 1
        return found

    def audience(self, number: int) -> Counter[NodeId]:
        """How often each member got that broadcast."""
        return self.audiences().get(number, Counter())


def start_all(stage: Stage) -> Log:
    """Start everybody at once."""
    log = Log()
    for name in names_for(stage):
        stage.start(name, log.recipe)
    return log


def route(stage: Stage, name: NodeId, key: Vid) -> int:
    """Let a member route its own name to a key."""
    number: int = stage.call(
        name, lambda host: host.protocol(Routing, ZONE).route, key, name.encode()
    )
    return number


def broadcast(stage: Stage, name: NodeId, interest: Interest | None = None) -> int:
    """Let a member tell everybody, or everybody interested, its name."""

    def command(host: Host) -> object:
        router = host.protocol(Routing, ZONE)
        return lambda now: router.broadcast(name.encode(), now, interest=interest)

    number: int = stage.call(name, command)  # type: ignore[arg-type]
    return number


def aggregate(stage: Stage, name: NodeId, gauge: str) -> int:
    """Let a member sum up."""
    number: int = stage.call(name, lambda host: host.protocol(Routing, ZONE).aggregate, gauge)
    return number


def idle(stage: Stage) -> bool:
    """Say whether nothing is under way at any member."""
    routers = [stage.protocol(name, Routing, ZONE) for name in stage.names]
    return all(not router.open_here and not router.in_custody for router in routers)


def all_ended(stage: Stage) -> Until:
    """Wait for it."""
    return Until(lambda: idle(stage), within=ENDING, what="an end of everything that began")


def check_once(log: Log) -> None:
    """No member was told anything twice."""
    told = Counter(
        (name, type(event), event.id)
        for name, event in log.heard
        if isinstance(event, BroadcastArrived | RouteArrived | Routed | RouteFailed | BroadcastDone)
    )
    twice = [what for what, times in told.items() if times > 1]
    assert not twice, f"told twice: {twice}"


def quiet_round(stage: Stage, log: Log) -> Scenario:
    """In a zone at rest: each broadcast reaches each once, each route the responsible member."""
    names = stage.names
    log.heard.clear()
    sent = [broadcast(stage, name) for name in names]
    sums = [aggregate(stage, name, "share") for name in names]
    ring = Ring(names)
    keys = [key_of(f"{stage.rng.random()}") for _ in range(ROUTES * len(names))]
    routes = {route(stage, names[at % len(names)], key): key for at, key in enumerate(keys)}
    yield all_ended(stage)
    check_once(log)
    got = log.audiences()
    for number in sent:
        assert got[number] == Counter(names), f"{got[number]} of {names}"
    done = [event for _, event in log.of(BroadcastDone) if isinstance(event, BroadcastDone)]
    assert [event.missing for event in done] == [0] * len(names)
    assert [event.reached for event in done] == [len(names)] * len(names)
    check_sums(stage, log, sums)
    check_routes(log, ring, routes)


def check_sums(stage: Stage, log: Log, sums: Iterable[int]) -> None:
    """Each sum is what one gets by asking all."""
    shares = [share(name) for name in stage.names]
    found = {
        event.id: event for _, event in log.of(AggregateDone) if isinstance(event, AggregateDone)
    }
    for number in sums:
        event, total = found[number], found[number].aggregate
        assert (event.reached, event.missing, total.count) == (len(shares), 0, len(shares))
        assert (total.total, total.least, total.greatest) == (
            sum(shares),
            min(shares),
            max(shares),
        )
        assert total.distinct == len(set(shares))


def check_routes(log: Log, ring: Ring, routes: dict[int, Vid]) -> None:
    """Each route arrived where it must, in few hops."""
    ends = {event.id: event for _, event in log.of(Routed) if isinstance(event, Routed)}
    hops = 0
    for number, key in routes.items():
        assert number in ends, "a route failed in a zone at rest"
        assert ends[number].by == ring.responsible_for(key)
        hops += ends[number].hops
    assert hops / len(routes) <= log2(len(ring)) + 2, f"{hops} hops of {len(routes)} routes"
    for name, event in log.of(RouteArrived):
        assert isinstance(event, RouteArrived)
        assert name == ring.responsible_for(event.key)


def chatter(stage: Stage) -> None:
    """Some members route and broadcast, whatever becomes of it."""
    for name in stage.rng.sample(stage.names, min(3, len(stage.names))):
        route(stage, name, key_of(f"{stage.rng.random()}"))
    broadcast(stage, stage.rng.choice(stage.names))


@scenario("routing-basic", nodes=16)
def basic(stage: Stage) -> Scenario:
    """A zone at rest."""
    log = start_all(stage)
    yield whole(stage)
    yield from quiet_round(stage, log)


@scenario("routing-alone", nodes=1, long=1)
def alone(stage: Stage) -> Scenario:
    """A zone of one: it is responsible for everything, and its own audience."""
    log = start_all(stage)
    yield from quiet_round(stage, log)


@scenario("routing-forming", nodes=12)
def forming(stage: Stage) -> Scenario:
    """Messages before there are links, while views differ: everything ends, nothing comes twice."""
    log = start_all(stage)
    for _ in range(5):
        chatter(stage)
        yield Pause(stage.rng.uniform(0.0, 0.2))
    yield all_ended(stage)
    check_once(log)
    yield whole(stage)
    yield from quiet_round(stage, log)


@scenario("routing-loss", nodes=10, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """One frame in ten is lost; each broadcast still reaches all, each route its member."""
    log = start_all(stage)
    yield whole(stage)
    stage.loss(0.1)
    yield from quiet_round(stage, log)
    stage.heal()


@scenario(
    "routing-disorder",
    nodes=12,
    faults=(Duplicate(0.3, within=0.2), Reorder(0.3, by=0.05), Delay(0.001, jitter=0.02)),
)
def disorder(stage: Stage) -> Scenario:
    """Frames come twice and overtake each other; nothing is delivered twice."""
    log = start_all(stage)
    yield whole(stage)
    yield from quiet_round(stage, log)


@scenario("routing-crash", nodes=16)
def crash(stage: Stage) -> Scenario:
    """Members die while broadcasts and routes are under way; the living get all the same."""
    log = start_all(stage)
    yield whole(stage)
    log.heard.clear()
    names = stage.names
    victims = stage.rng.sample(names, 3)
    living = [name for name in names if name not in victims]
    numbers = [broadcast(stage, name) for name in living]
    owners = {}
    for _ in range(ROUTES):
        for name in living:
            owners[route(stage, name, key_of(f"{stage.rng.random()}"))] = name
    for victim in victims:
        yield Pause(stage.rng.uniform(0.0, 0.002))
        stage.crash(victim)
    yield all_ended(stage)
    check_once(log)
    for number in numbers:
        got = log.audience(number)
        assert all(got[name] == 1 for name in living), f"{number}: {got} of {living}"
    ends = {event.id for _, event in log.of(Routed) if isinstance(event, Routed)}
    assert set(owners) <= ends, "a route failed though its responsible member changed in time"
    yield whole(stage)
    yield from quiet_round(stage, log)


@scenario("routing-origin-dies", nodes=16)
def origin_dies(stage: Stage) -> Scenario:
    """Whoever began a broadcast dies at once: whoever gets it gets it once, and nothing lingers."""
    log = start_all(stage)
    yield whole(stage)
    log.heard.clear()
    origin = stage.rng.choice(stage.names)
    number = broadcast(stage, origin)
    yield Pause(stage.rng.uniform(0.0, 0.002))
    stage.crash(origin)
    yield Pause(0.01)  # what had left it arrives
    yield all_ended(stage)
    check_once(log)
    got = log.audience(number)
    # The first hops had left: their heads see to the rest without the origin.
    assert all(got[name] == 1 for name in stage.names), f"{got} of {stage.names}"


@scenario("routing-churn", nodes=12)
def churn(stage: Stage) -> Scenario:
    """Members come and go under load; everything ends once, and then the zone is at rest."""
    log = start_all(stage)
    yield whole(stage)
    for _ in range(3):
        chatter(stage)
        yield from disturb(stage, 1)
    yield all_ended(stage)
    yield whole(stage)
    yield from quiet_round(stage, log)


@scenario("routing-partition", nodes=12, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """Everything ends in each half and across; afterwards the zone is one."""
    log = start_all(stage)
    yield whole(stage)
    names = stage.names
    stage.rng.shuffle(names)
    halves = names[: stage.size // 2], names[stage.size // 2 :]
    stage.partition(halves)
    log.heard.clear()
    numbers = {broadcast(stage, half[0]): half for half in halves}
    chatter(stage)
    yield all_ended(stage)
    check_once(log)
    for number, half in numbers.items():
        assert log.audience(number) == Counter(half), f"{log.audience(number)} of {half}"
    for half in halves:
        yield whole(stage, half)
    stage.heal()
    chatter(stage)
    yield whole(stage)
    yield all_ended(stage)
    yield from quiet_round(stage, log)


def take_interest(stage: Stage, names: Collection[NodeId]) -> None:
    """Let every third of them subscribe to some topics."""
    for name in list(names)[::3]:
        words = ",".join(stage.rng.sample(TOPIC_NAMES, 2))
        stage.call(name, lambda host: host.protocol(Membership, ZONE).set_attribute, TOPICS, words)


@scenario("routing-interest", nodes=20)
def interest(stage: Stage) -> Scenario:
    """A broadcast for a topic reaches those who share it, and ranges without any are left out."""
    log = start_all(stage)
    names = stage.names
    take_interest(stage, names)
    yield whole(stage)
    views = [stage.protocol(name, Membership, ZONE).view for name in names]

    def known() -> bool:
        return all(len(view.attributes(name)) for view in views for name in names[::3])

    yield Until(known, within=ENDING, what="topics in all views")
    yield whole(stage)
    for topic in (*TOPIC_NAMES[:3], "nobody's"):
        log.heard.clear()
        before = sum(stage.protocol(name, Routing, ZONE).counts.forwarded for name in names)
        number = broadcast(stage, names[0], Interest(topic))
        yield all_ended(stage)
        sharing = [name for name in names if topic in interests(views[0].attributes(name))]
        assert log.audience(number) == Counter(sharing)
        after = sum(stage.protocol(name, Routing, ZONE).counts.forwarded for name in names)
        assert after - before <= len(sharing) * (log2(len(names)) + 2), "ranges were not left out"


@scenario("routing-clocks", nodes=10, both_worlds=False)
def clocks(stage: Stage) -> Scenario:
    """Clocks jump while messages are under way and lost; everything ends all the same."""
    assert isinstance(stage, SimStage)
    log = start_all(stage)
    yield whole(stage)
    stage.loss(0.3)
    for _ in range(3):
        chatter(stage)
    yield Pause(0.005)
    for name in stage.names:
        stage.sim.jump_clock(name, stage.rng.choice((-3600.0, -1.0, 0.0, 3600.0)))
    stage.heal()
    chatter(stage)
    yield all_ended(stage)
    check_once(log)
    yield whole(stage)
    yield from quiet_round(stage, log)
