"""Scenarios of gateways: in the end all gateways of a topic know each other, exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from nodes.scenarios.registry import scenario
from nodes.scenarios.zones import SETTLING, SETUP, SUPERVISORS, ZONES, Overlay
from overlay.host import Host, Recipe
from overlay.ids import NodeId, Ring
from overlay.patterns import covers
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder
from protocols.gateways import (
    Gateways,
    GatewaysSettings,
    RemoteGateway,
    TopicKnown,
    TopicUnknown,
    gateway_key,
    topic_id,
)
from protocols.gateways.interface import PATTERNS
from protocols.membership.machine import Membership

# Shorter than the defaults, so that a story is short; the proportions are the same.
QUICK = GatewaysSettings(confirm=0.3, refresh=1.0, linger=3.0, expire=4.0, ask_timeout=0.5)
TOPICS = [f"plant/{hall}/{sensor}" for hall in ("north", "south") for sensor in range(3)]
PUBLISHES, SUBSCRIBES = 1, 2
REPLACING = 28  # looks, two in a second: a home is found dead, replaced, and its rosters expire


class TopicOverlay(Overlay):
    """Three zones whose members declare topics, and what must follow from that."""

    def __init__(self, stage: Stage, *, supervisors: int = SUPERVISORS) -> None:
        super().__init__(stage, supervisors=supervisors, setup=replace(SETUP, gateways=QUICK))
        self.wanted: dict[NodeId, dict[str, int]] = {}
        self.patterns: dict[NodeId, tuple[str, ...]] = {}
        self.answers: dict[int, TopicKnown | TopicUnknown] = {}

    def recipe(self, name: NodeId, zone: Scope = "") -> Recipe:
        """A member or a supervisor, as in the scenarios of zones, with ears for answers."""
        assemble = super().recipe(name, zone)

        def add(host: Host) -> None:
            assemble(host)
            for kind in (TopicKnown, TopicUnknown):
                host.listen(kind, lambda event: self.answers.update({event.id: event}))

        return add

    def gateways(self, name: NodeId) -> Gateways:
        """The gateways protocol of one who runs."""
        return self.stage.protocol(name, Gateways)

    # -- acts -----------------------------------------------------------------------------------

    def declare(self, name: NodeId, topic: str, flags: int) -> None:
        """Let a member declare a topic, or withdraw it."""
        wanted = self.wanted.setdefault(name, {})
        if flags:
            wanted[topic] = flags
        else:
            wanted.pop(topic, None)
        publishes, subscribes = bool(flags & PUBLISHES), bool(flags & SUBSCRIBES)

        def command(host: Host) -> Callable[[float], None]:
            declare = host.protocol(Gateways).declare
            return lambda now: declare(topic, publishes=publishes, subscribes=subscribes, now=now)

        self.stage.call(name, command)

    def match(self, name: NodeId, *patterns: str) -> None:
        """Let a member subscribe by patterns."""
        self.patterns[name] = patterns
        zone, text = self.zone_of[name], "\n".join(patterns)
        if patterns:
            self.stage.call(
                name, lambda host: host.protocol(Membership, zone).set_attribute, PATTERNS, text
            )
        else:
            self.stage.call(
                name, lambda host: host.protocol(Membership, zone).remove_attribute, PATTERNS
            )

    def crash(self, name: NodeId) -> None:
        """End a node, with what it wanted."""
        self.wanted.pop(name, None)
        self.patterns.pop(name, None)
        self.stage.crash(name, keep=self.stage.rng.choice(("all", "none", "power-cut")))

    def spread_interest(self) -> None:
        """Let some members of each zone publish or subscribe to some topics."""
        rng = self.stage.rng
        for name in [name for name in self.stage.names if name in self.zone_of]:
            for topic in rng.sample(TOPICS, 2):
                self.declare(name, topic, rng.choice((1, 2, 3)))

    # -- what must come true ----------------------------------------------------------------------

    def standing(
        self, topic: str, names: Collection[NodeId]
    ) -> dict[NodeId, tuple[Scope, set[NodeId], set[NodeId]]]:
        """The topic's gateways among these nodes, each with its publishers and subscribers."""
        found = {}
        published = any(self.wanted.get(name, {}).get(topic, 0) & PUBLISHES for name in names)
        for zone in dict.fromkeys(self.zone_of.values()):
            members = [name for name in self.running(zone) if name in names]
            flags = {name: self.wanted.get(name, {}).get(topic, 0) for name in members}
            matching = {
                name
                for name in members
                if any(covers(pattern, topic) for pattern in self.patterns.get(name, ()))
            }
            declared = any(flags.values())
            if declared or (published and matching):
                gateway = Ring(members).responsible_for(gateway_key(topic))
                publishers = {name for name in members if flags[name] & PUBLISHES}
                subscribers = {name for name in members if flags[name] & SUBSCRIBES} | matching
                found[gateway] = (zone, publishers, subscribers)
        return found

    def is_exact(self, names: Collection[NodeId] | None = None) -> bool:
        """Whether these nodes, or all, know the gateways of all topics and nothing else."""
        names = self.stage.names if names is None else names
        topics = dict.fromkeys(TOPICS)
        for wanted in self.wanted.values():
            topics.update(dict.fromkeys(wanted))
        for topic in topics:
            expected = self.standing(topic, names)
            published = any(publishers for _, publishers, _ in expected.values())
            remote = {
                name: RemoteGateway(
                    zone,
                    bool(publishers),
                    any(self.wanted.get(one, {}).get(topic, 0) & SUBSCRIBES for one in subscribers)
                    or (published and any(self._matches(one, topic) for one in subscribers)),
                )
                for name, (zone, publishers, subscribers) in expected.items()
            }
            for name in names:
                if not self._knows(name, topic, expected, remote):
                    return False
            homes = [self.gateways(name).home_of() for name in names]
            told = [set(home[topic]) for home in homes if topic in home]
            if told != ([set(expected)] if expected else []):
                return False
        for name in names:
            self.gateways(name).audit()
        return True

    def _matches(self, name: NodeId, topic: str) -> bool:
        return any(covers(pattern, topic) for pattern in self.patterns.get(name, ()))

    def _knows(
        self,
        name: NodeId,
        topic: str,
        expected: dict[NodeId, tuple[Scope, set[NodeId], set[NodeId]]],
        remote: dict[NodeId, RemoteGateway],
    ) -> bool:
        gateways = self.gateways(name)
        if name not in expected:
            return not gateways.is_gateway(topic) and not gateways.remote_gateways(topic)
        _, publishers, subscribers = expected[name]
        others = {other: known for other, known in remote.items() if other != name}
        return (
            gateways.is_gateway(topic)
            and gateways.remote_gateways(topic) == others
            and set(gateways.local_publishers(topic)) == publishers
            and set(gateways.local_subscribers(topic)) == subscribers
        )

    def exact(self, names: Collection[NodeId] | None = None) -> Until:
        """Wait until all gateways know each other and nothing else."""
        return Until(lambda: self.is_exact(names), SETTLING, "gateways that know each other")

    def ask(self, name: NodeId, topic: str | int) -> int:
        """Let a node ask for a topic by its name or id."""
        asked = self.stage.call(name, lambda host: host.protocol(Gateways).ask_topic, topic)
        assert isinstance(asked, int)
        return asked

    def home(self, topic: str) -> NodeId:
        """Who is the home of a topic now."""
        (home,) = [name for name in self.stage.names if topic in self.gateways(name).home_of()]
        return home


@scenario("gateways-interest", nodes=12)
def interest(stage: Stage) -> Scenario:
    """Interest appears with a zone's first publisher or subscriber, and goes with the last."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    topic = stage.rng.choice([one for one in TOPICS if overlay.standing(one, stage.names)])
    zones = {zone for zone, _, _ in overlay.standing(topic, stage.names).values()}
    asked = {
        overlay.ask(name, by): topic
        for name in ("s0", *(stage.rng.choice(overlay.members[zone]) for zone in ZONES))
        for by in (topic, topic_id(topic))
    }
    nothing = overlay.ask("b1", "plant/nowhere")
    yield Until(lambda: {*asked, nothing} <= set(overlay.answers), SETTLING, "all answers")
    assert isinstance(overlay.answers[nothing], TopicUnknown)
    for question in asked:
        answer = overlay.answers[question]
        assert isinstance(answer, TopicKnown)
        assert (answer.name, set(answer.zones)) == (topic, zones)
    names = list(overlay.wanted)
    stage.rng.shuffle(names)
    for name in names:
        for topic in list(overlay.wanted[name]):
            overlay.declare(name, topic, 0)
        if stage.rng.random() < 0.3:
            yield overlay.exact()
    yield overlay.exact()
    bare = Until(
        lambda: all(overlay.gateways(name).lines_held == 0 for name in stage.names),
        SETTLING,
        "nodes that remember nothing",
    )
    yield bare


@scenario("gateways-single-zone", nodes=12)
def single_zone(stage: Stage) -> Scenario:
    """A zone alone registers nothing; when another one appears, everything is as it should."""
    overlay = TopicOverlay(stage, supervisors=0)
    members = dict(overlay.members)
    overlay.zone_of = dict.fromkeys(members["a"], "a")
    overlay.strangers = ["a0", "a1"]
    yield from overlay.start()
    overlay.spread_interest()
    yield Pause(3 * QUICK.refresh)
    for name in stage.names:
        gateways = overlay.gateways(name)
        assert gateways.delegate is None, "it registers, and nobody else is there"
        assert not gateways.home_of()
    for name in members["b"]:
        overlay.zone_of[name] = "b"
        stage.start(name, overlay.recipe(name, "b"))
    yield overlay.settled()
    for name in members["b"]:
        overlay.declare(name, stage.rng.choice(TOPICS), SUBSCRIBES)
    yield overlay.exact()


@scenario("gateways-gateway-crash", nodes=12)
def gateway_crash(stage: Stage) -> Scenario:
    """Gateways die, one in each of two zones: their ring successors take their place."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    for _ in range(2):
        topic = stage.rng.choice([one for one in TOPICS if overlay.standing(one, stage.names)])
        overlay.crash(stage.rng.choice(list(overlay.standing(topic, stage.names))))
        if stage.rng.random() < 0.5:
            yield overlay.exact()
    yield overlay.exact()
    for name in overlay.zone_of:
        if name not in stage.names:
            stage.restart(name)
            overlay.declare(name, stage.rng.choice(TOPICS), PUBLISHES)
    yield overlay.exact()


@scenario("gateways-home-crash", nodes=12)
def home_crash(stage: Stage) -> Scenario:
    """Homes die: nobody drops a gateway, and the ring successor goes on."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    for _ in range(2):
        known = [one for one in TOPICS if overlay.standing(one, stage.names)]
        topic = stage.rng.choice(known)
        home = overlay.home(topic)
        known_to = {
            name: list(overlay.gateways(name).remote_gateways(topic))
            for name in overlay.standing(topic, stage.names)
        }
        overlay.crash(home)
        # What only the home itself declared ends with it, and rightly so.
        stay = overlay.standing(topic, stage.names)
        for _ in range(REPLACING):
            yield Pause(0.5)
            for name in [name for name in stay if name in known_to]:
                now = overlay.gateways(name).remote_gateways(topic)
                lost = [one for one in known_to[name] if one in stay and one not in now]
                assert not lost, f"{name} lost {lost} for {topic!r} when home {home} died"
        assert not stay or overlay.home(topic) != home
        overlay.declare(stage.rng.choice([*overlay.running("a")]), topic, SUBSCRIBES)
        yield overlay.exact()
    for name in [*overlay.zone_of, *overlay.supervisors]:
        if name not in stage.names:
            stage.restart(name)
    yield overlay.exact()


@scenario("gateways-delegates-crash", nodes=12)
def delegates_crash(stage: Stage) -> Scenario:
    """All delegates of a zone die at once; the next ones register everything again."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    zone = stage.rng.choice(ZONES)
    for victim in overlay.serving(zone):
        overlay.crash(victim)
    for name in overlay.running(zone):
        overlay.declare(name, stage.rng.choice(TOPICS), stage.rng.choice((0, 1, 2, 3)))
    yield overlay.exact()
    for name in overlay.members[zone]:
        if name not in stage.names:
            stage.restart(name)
    yield overlay.exact()


@scenario("gateways-split", nodes=12, both_worlds=False)
def split(stage: Stage) -> Scenario:
    """Every zone is split and healed: each half has its gateways, then there is one again."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    halves: tuple[list[NodeId], list[NodeId]] = ([], [])
    for zone in ZONES:
        names = list(overlay.members[zone])
        stage.rng.shuffle(names)
        halves[0].extend(names[::2])
        halves[1].extend(names[1::2])
    halves[0].extend(overlay.supervisors[::2])
    halves[1].extend(overlay.supervisors[1::2])
    stage.partition(halves)
    if stage.rng.random() < 0.5:
        for half in halves:
            yield overlay.exact(half)
    else:
        yield Pause(stage.rng.uniform(0.0, 10.0))
    name = stage.rng.choice(list(overlay.zone_of))
    overlay.declare(name, stage.rng.choice(TOPICS), stage.rng.choice((0, 3)))
    stage.heal()
    yield overlay.exact()


@scenario("gateways-zone-apart", nodes=12, both_worlds=False)
def zone_apart(stage: Stage) -> Scenario:
    """A zone is cut off for a while, and changes its mind meanwhile."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    overlay.spread_interest()
    yield overlay.exact()
    alone = stage.rng.choice(ZONES)
    here = overlay.members[alone]
    stage.partition([here, [name for name in stage.names if name not in here]])
    yield Pause(stage.rng.uniform(0.0, 20.0))
    for name in here:
        for topic in stage.rng.sample(TOPICS, 2):
            overlay.declare(name, topic, stage.rng.choice((0, 1, 2)))
    stage.heal()
    yield overlay.exact()


@scenario("gateways-patterns", nodes=12)
def patterns(stage: Stage) -> Scenario:
    """Patterns come before their topics and after them, and go before and after them."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    rng = stage.rng
    members = {zone: rng.sample(overlay.members[zone], 2) for zone in ZONES}
    overlay.match(members["b"][0], "plant/*/1", "other/**")
    overlay.declare(members["a"][0], "plant/north/1", PUBLISHES)
    overlay.declare(members["a"][1], "plant/north/2", PUBLISHES)
    yield overlay.exact()
    overlay.match(members["c"][0], "plant/**")
    yield overlay.exact()
    overlay.declare(members["c"][1], "plant/south/1", PUBLISHES | SUBSCRIBES)
    overlay.declare(members["a"][0], "plant/north/1", 0)
    yield overlay.exact()
    victims = [rng.choice(overlay.serving("c"))]
    if rng.random() < 0.5:
        victims = overlay.serving("c")
    for victim in victims:
        overlay.crash(victim)
    yield overlay.exact()
    for name in list(overlay.patterns):
        overlay.match(name)
    yield overlay.exact()


@scenario(
    "gateways-churn",
    nodes=12,
    faults=(Duplicate(0.2, within=1.0), Reorder(0.2, by=0.1), Delay(0.001, jitter=0.02)),
)
def churn(stage: Stage) -> Scenario:
    """Members come, go and change their mind, while frames are lost, copied and overtaken."""
    overlay = TopicOverlay(stage)
    yield from overlay.start()
    rng = stage.rng
    overlay.spread_interest()
    stage.loss(0.2)
    for _ in range(12):
        running = [name for name in stage.names if name in overlay.zone_of]
        dead = [name for name in overlay.zone_of if name not in stage.names]
        for name in rng.sample(running, 3):
            overlay.declare(name, rng.choice(TOPICS), rng.choice((0, 0, 1, 2, 3)))
        if rng.random() < 0.3:
            overlay.match(rng.choice(running), rng.choice(("plant/*/1", "plant/south/**")))
        if dead and rng.random() < 0.6:
            stage.restart(rng.choice(dead))
        elif rng.random() < 0.5:
            overlay.crash(rng.choice(running))
        yield Pause(rng.uniform(0.0, 2.0))
    for name in overlay.zone_of:
        if name not in stage.names:
            stage.restart(name)
    stage.heal()
    yield overlay.exact()
