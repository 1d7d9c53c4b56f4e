"""Gateways under any order, loss and repetition of messages, while views change as they like."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis.stateful import initialize, rule
from hypothesis.strategies import DataObject, booleans, data, floats, integers, sampled_from

from overlay.ids import NodeId, Ring
from overlay.patterns import covers
from protocols.gateways import (
    Gateways,
    GatewaysSettings,
    RemoteGateway,
    TopicKnown,
    TopicUnknown,
    gateway_key,
    topic_id,
)
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined
from protocols.zones.events import DelegateAppointed, ZoneAppeared
from protocols.zones.interface import MANAGEMENT, ZoneEntry
from tests.property.chaos import Chaos
from tests.property.network import Network
from tests.unit.gateways.node import FixedDirectory
from tests.unit.zones.node import FixedMembership

HOMES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "s1": ""}
TOPICS = ("t/1", "t/2", "u/1")
PATTERNS = ("t/*", "**", "")
TIMES = GatewaysSettings(
    batch_delay=0.01, confirm=0.2, refresh=0.5, linger=1.0, expire=2.0, page_lines=1,
    ask_timeout=0.3, ask_tries=4, max_open=3,
)  # fmt: skip


class GatewaysUnderChaos(Chaos):
    """Views are told the truth late or never; messages come in any order, twice, or not."""

    @initialize(seed=integers(0, 99))
    def start(self, seed: int) -> None:
        self.network = Network()
        self.bases: dict[NodeId, FixedMembership] = {}
        self.managements: dict[NodeId, FixedMembership] = {}
        self.directories: dict[NodeId, FixedDirectory] = {}
        self.gateways: dict[NodeId, Gateways] = {}
        self.wanted: dict[NodeId, dict[str, int]] = {name: {} for name in HOMES}
        self.patterns: dict[NodeId, str] = dict.fromkeys(HOMES, "")
        self.delegates = {"a": "a1", "b": "b1"}
        self.asked: dict[int, NodeId] = {}
        for name, home in HOMES.items():
            self.bases[name] = base = FixedMembership(home or "none", name)
            self.managements[name] = FixedMembership(MANAGEMENT, name)
            if home:
                self.managements[name].put(name, 100, zone=home)
            self.directories[name] = zones = FixedDirectory(name, home)
            rng = Random(f"{seed}/{name}")
            self.gateways[name] = self.network.add(
                name,
                lambda effects, name=name, rng=rng, base=base, home=home, zones=zones: Gateways(  # type: ignore[misc]
                    name, effects, rng, TIMES, base=base if home else None, zones=zones
                ),
            )

    # -- the truth, and who is told of it ---------------------------------------------------------

    def inside(self) -> list[NodeId]:
        return ["s1", *self.delegates.values()]

    def tell_office(self, name: NodeId) -> None:
        """A node learns who stand for the zones, perhaps itself, and which zones there are."""
        directory = self.directories[name]
        directory.management = self.managements[name] if name in self.inside() else None
        home = HOMES[name]
        if home:
            directory.delegates = (self.delegates[home],)
            self.network.tell(name, DelegateAppointed(home, self.delegates[home]))
        for zone, delegate in self.delegates.items():
            directory.table[zone] = entry = ZoneEntry(zone, 1, (delegate,))
            self.network.tell(name, ZoneAppeared(entry))

    def tell(self, observer: NodeId, subject: NodeId, zone: str) -> None:
        """One node learns of another one, and of what it says."""
        views = self.managements if zone == MANAGEMENT else self.bases
        view, said = views[observer], views[subject].attributes(subject)
        fresh = subject not in view
        if subject != observer:
            view.put(subject, 100, **said)
        if fresh:
            self.network.tell(observer, MemberJoined(zone, subject, 100))
        self.network.tell(observer, AttributesChanged(zone, subject, ("zone", "patterns")))

    def mates(self, observer: NodeId) -> list[tuple[NodeId, str]]:
        """Whom a node may hear of, and in which zone."""
        home = HOMES[observer]
        found = [(name, home) for name, zone in HOMES.items() if home and zone == home]
        if self.directories[observer].management is not None:
            found += [(name, MANAGEMENT) for name in self.inside()]
        return [(name, zone) for name, zone in found if name != observer]

    def lose_sight_of(self, observer: NodeId, subject: NodeId, zone: str) -> None:
        view = (self.managements if zone == MANAGEMENT else self.bases)[observer]
        if subject in view and subject != observer:
            view.drop(subject)
            self.network.tell(observer, MemberFailed(zone, subject))

    # -- rules ------------------------------------------------------------------------------------

    @rule(choices=data())
    def learn(self, choices: DataObject) -> None:
        observer = choices.draw(sampled_from(list(HOMES)))
        self.tell_office(observer)
        options = self.mates(observer)
        if options:
            self.tell(observer, *choices.draw(sampled_from(options)))

    @rule(choices=data())
    def lose_sight(self, choices: DataObject) -> None:
        observer = choices.draw(sampled_from(list(HOMES)))
        options = self.mates(observer)
        if options:
            self.lose_sight_of(observer, *choices.draw(sampled_from(options)))

    @rule(zone=sampled_from(["a", "b"]), choices=data())
    def elect(self, zone: str, choices: DataObject) -> None:
        members = [name for name, home in HOMES.items() if home == zone]
        before = self.delegates[zone]
        self.delegates[zone] = choices.draw(sampled_from(members))
        for name in (before, self.delegates[zone]):
            self.tell_office(name)

    @rule(
        name=sampled_from([name for name, home in HOMES.items() if home]),
        topic=sampled_from(TOPICS),
        flags=integers(0, 3),
    )
    def declare(self, name: NodeId, topic: str, flags: int) -> None:
        self.wanted[name][topic] = flags
        publishes, subscribes = bool(flags & 1), bool(flags & 2)
        self.gateways[name].declare(
            topic, publishes=publishes, subscribes=subscribes, now=self.network.now
        )
        self.network.settle(name)

    @rule(
        name=sampled_from([name for name, home in HOMES.items() if home]),
        pattern=sampled_from(PATTERNS),
    )
    def subscribe_by_pattern(self, name: NodeId, pattern: str) -> None:
        self.patterns[name] = pattern
        self.bases[name].put(name, 100, patterns=pattern)
        self.network.tell(name, AttributesChanged(HOMES[name], name, ("patterns",)))

    @rule(seconds=floats(0.0, 1.0))
    def all_is_well_for_a_while(self, seconds: float) -> None:
        self.network.run(seconds)

    @rule(name=sampled_from(list(HOMES)), topic=sampled_from(TOPICS), by_id=booleans())
    def ask(self, name: NodeId, topic: str, by_id: bool) -> None:
        gateways = self.gateways[name]
        if gateways.open_questions < TIMES.max_open:
            question = topic_id(topic) if by_id else topic
            self.asked[gateways.ask_topic(question, self.network.now)] = name
            self.network.settle(name)

    # -- the end ----------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Every question ends once; told the truth, all gateways know each other exactly."""
        if not hasattr(self, "network"):
            return
        for name in HOMES:
            self.tell_office(name)
        for _ in range(2):
            for observer in HOMES:
                view = self.managements[observer]
                for other in [one for one in view.members() if one not in self.inside()]:
                    self.lose_sight_of(observer, other, MANAGEMENT)
                for subject, zone in self.mates(observer):
                    self.tell(observer, subject, zone)
            self.network.run(1.0)
        for _ in range(3):  # delegates' patterns travel as attributes
            for observer in self.inside():
                for subject in self.inside():
                    self.tell(observer, subject, MANAGEMENT)
            self.network.run(3.0)
        self.network.run(5.0)
        ends = [
            event.id
            for _, event in self.network.heard
            if isinstance(event, TopicKnown | TopicUnknown)
        ]
        assert sorted(ends) == sorted(self.asked)
        for topic in TOPICS:
            self.check(topic)
        for gateways in self.gateways.values():
            gateways.audit()

    def check(self, topic: str) -> None:
        published = any(wanted.get(topic, 0) & 1 for wanted in self.wanted.values())
        expected: dict[NodeId, RemoteGateway] = {}
        for zone in ("a", "b"):
            members = [name for name, home in HOMES.items() if home == zone]
            flags = 0
            for name in members:
                flags |= self.wanted[name].get(topic, 0)
                pattern = self.patterns[name]
                if published and pattern and covers(pattern, topic):
                    flags |= 2
            if flags:
                gateway = Ring(members).responsible_for(gateway_key(topic))
                expected[gateway] = RemoteGateway(zone, bool(flags & 1), bool(flags & 2))
        for name, gateways in self.gateways.items():
            assert gateways.is_gateway(topic) == (name in expected), (name, topic)
            others = {one: known for one, known in expected.items() if one != name}
            known = gateways.remote_gateways(topic)
            assert known == (others if name in expected else {}), (name, topic)
        home = Ring(self.inside()).responsible_for(topic_id(topic))
        for name, gateways in self.gateways.items():
            told = set(gateways.home_of().get(topic, {}))
            assert told == (set(expected) if name == home else set()), (name, topic)


GatewaysUnderChaos.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestGatewaysUnderChaos = GatewaysUnderChaos.TestCase
