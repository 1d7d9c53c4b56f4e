"""Zones under any order, loss and repetition of messages, while views change as they like."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis.stateful import initialize, rule
from hypothesis.strategies import DataObject, booleans, data, floats, integers, sampled_from

from overlay.ids import NodeId
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined
from protocols.zones import (
    MANAGEMENT,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    Zones,
    ZonesSettings,
)
from tests.property.chaos import Chaos
from tests.property.network import Network
from tests.unit.zones.node import FixedMembership

HOMES = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "s1": "", "s2": ""}
TIMES = ZonesSettings(
    settle=0.5, dismiss_after=0.5, vanish_after=4.0, table_period=1.0, roster_period=1.0,
    seek_period=1.0, ask_timeout=0.3, ask_tries=4, page_members=1, max_open=3, barred=5.0,
)  # fmt: skip


class ZonesUnderChaos(Chaos):
    """Views are told the truth late or never; messages come in any order, twice, or not."""

    @initialize(seed=integers(0, 99))
    def start(self, seed: int) -> None:
        self.network = Network()
        self.bases: dict[NodeId, FixedMembership] = {}
        self.managements: dict[NodeId, FixedMembership] = {}
        self.zones: dict[NodeId, Zones] = {}
        self.asked: dict[int, NodeId] = {}
        for born, (name, home) in enumerate(HOMES.items()):
            self.bases[name] = base = FixedMembership(home or "none", name, born)
            self.managements[name] = FixedMembership(MANAGEMENT, name, born)
            rng = Random(f"{seed}/{name}")
            self.zones[name] = self.network.add(
                name,
                lambda effects, name=name, rng=rng, base=base, home=home: Zones(  # type: ignore[misc]
                    name, effects, rng, TIMES, base=base if home else None, contacts=["s1", "a1"]
                ),
            )
            self.follow(name)

    def follow(self, name: NodeId) -> None:
        """Do what the recipe does."""
        zones = self.zones[name]
        if zones.wants_management and not zones.in_management:
            management = self.managements[name]
            for key, value in zones.presentation().items():
                management.set_attribute(key, value, self.network.now)
            zones.enter_management(management, self.network.now)
        elif zones.in_management and not zones.wants_management:
            zones.leave_management(self.network.now)
        self.network.settle(name)
        if zones.in_management:  # a membership tells its own node, too, what that node set
            self.network.tell(name, AttributesChanged(MANAGEMENT, name, ("size", "summary")))

    def tell(self, observer: NodeId, subject: NodeId, view: FixedMembership, zone: str) -> None:
        """One node learns how another one is."""
        truth = (self.bases if zone != MANAGEMENT else self.managements)[subject]
        record = truth.record(subject)
        assert record is not None
        fresh = subject not in view
        view.put(subject, record.born, **truth.attributes(subject))
        if fresh:
            self.network.tell(observer, MemberJoined(zone, subject, record.born))
        keys = tuple(truth.attributes(subject)) or ("roles",)
        self.network.tell(observer, AttributesChanged(zone, subject, keys))
        self.follow(observer)

    def inside(self) -> list[NodeId]:
        return [name for name, zones in self.zones.items() if zones.in_management]

    @rule(choices=data())
    def learn(self, choices: DataObject) -> None:
        """Somebody hears of a member of its zone, or of the management zone."""
        observer = choices.draw(sampled_from(list(HOMES)))
        mates = [
            name for name, home in HOMES.items() if home and home == HOMES[observer] != observer
        ]
        managers = self.inside() if observer in self.inside() else []
        options = [(mate, HOMES[observer]) for mate in mates if mate != observer]
        options += [(manager, MANAGEMENT) for manager in managers if manager != observer]
        if options:
            subject, zone = choices.draw(sampled_from(options))
            views = self.managements if zone == MANAGEMENT else self.bases
            self.tell(observer, subject, views[observer], zone)

    @rule(choices=data())
    def lose_sight(self, choices: DataObject) -> None:
        """Somebody holds another one to be dead, rightly or not."""
        observer = choices.draw(sampled_from(list(HOMES)))
        management = choices.draw(booleans())
        view = (self.managements if management else self.bases)[observer]
        others = [name for name in view.members() if name != observer]
        if others:
            subject = choices.draw(sampled_from(others))
            view.drop(subject)
            self.network.tell(observer, MemberFailed(view.zone, subject))
            self.follow(observer)

    @rule(seconds=floats(0.0, 3.0))
    def time_passes(self, seconds: float) -> None:
        self.network.pass_time(seconds)
        for name in HOMES:
            self.follow(name)

    @rule(name=sampled_from(list(HOMES)), zone=sampled_from(["a", "b", "c"]))
    def ask(self, name: NodeId, zone: str) -> None:
        waiting = sum(asker == name for asker in self.asked.values()) - self.ended(name)
        if waiting == 0:  # forwarded ones may take the rest of the room
            self.network.run(0.0)
            zones = self.zones[name]
            if zones.open_questions < TIMES.max_open:
                self.asked[zones.ask_members(zone, self.network.now)] = name
                self.network.settle(name)

    def ended(self, name: NodeId) -> int:
        return sum(
            who == name and isinstance(event, ZoneMembersKnown | ZoneMembersUnknown)
            for who, event in self.network.heard
        )

    def teardown(self) -> None:
        """Every question ends once; told the truth, all have one and the same directory."""
        if not hasattr(self, "network"):
            return
        for _ in range(6):
            for observer, home in HOMES.items():
                for subject in HOMES:
                    if subject != observer and home and HOMES[subject] == home:
                        self.tell(observer, subject, self.bases[observer], home)
            inside = self.inside()
            for observer in inside:
                view = self.managements[observer]
                for subject in [name for name in view.members() if name not in inside]:
                    view.drop(subject)
                    self.network.tell(observer, MemberFailed(MANAGEMENT, subject))
                for subject in inside:
                    if subject != observer:
                        self.tell(observer, subject, view, MANAGEMENT)
            self.network.run(3.0)
            for name in HOMES:
                self.follow(name)
        ends = [
            event.id
            for _, event in self.network.heard
            if isinstance(event, ZoneMembersKnown | ZoneMembersUnknown)
        ]
        assert sorted(ends) == sorted(self.asked)
        tables = {name: zones.zones() for name, zones in self.zones.items()}
        assert len(set(tables.values())) == 1, tables
        (table, *_) = tables.values()
        assert [(entry.name, entry.size) for entry in table] == [("a", 2), ("b", 2)]
        for zones in self.zones.values():
            zones.audit()


ZonesUnderChaos.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestZonesUnderChaos = ZonesUnderChaos.TestCase
