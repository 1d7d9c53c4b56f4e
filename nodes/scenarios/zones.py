"""Scenarios of zones: each has somebody to stand for it, and all know the same zones."""

from __future__ import annotations

from collections.abc import Collection

from nodes.scenarios.registry import scenario
from nodes.zone_recipe import ZoneSetup, supervisor, zone_member
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.zones import (
    MANAGEMENT,
    DelegateAppointed,
    ZoneEntry,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    Zones,
    ZonesSettings,
)
from protocols.zones.directory import assign

# Shorter than the defaults, so that a story is short; the proportions are the same.
QUICK_MEMBERSHIP = MembershipSettings(
    probe_period=0.5, suspicion_min=1.0, suspicion_max=4.0, join_retry_max=4.0, knock_period=1.0
)
QUICK = ZonesSettings(
    settle=1.0,
    dismiss_after=1.0,
    publish_pause=0.5,
    seek_period=3.0,
    vanish_after=15.0,
    table_period=2.0,
    roster_period=3.0,
    ask_timeout=0.5,
)
SETUP = ZoneSetup(zones=QUICK, membership=QUICK_MEMBERSHIP, management=QUICK_MEMBERSHIP)
DETECTION = 8.0  # s; suspicion_max, two probe periods, and an appointment
SETTLING = 60.0  # s
ZONES = ("a", "b", "c")
SUPERVISORS = 3


class Overlay:
    """Three zones, some supervisors, and what their nodes heard."""

    def __init__(
        self, stage: Stage, *, supervisors: int = SUPERVISORS, setup: ZoneSetup = SETUP
    ) -> None:
        self.stage = stage
        self.setup = setup
        self.supervisors = [f"s{index}" for index in range(supervisors)]
        self.strangers = ["s0", "a0"] if supervisors else ["a0", "b1"]  # whom all are told of
        each = max(2, stage.size // len(ZONES))
        self.members = {zone: [f"{zone}{index}" for index in range(each)] for zone in ZONES}
        self.zone_of = {name: zone for zone in ZONES for name in self.members[zone]}
        self.known: dict[int, ZoneMembersKnown] = {}
        self.unknown: dict[int, ZoneMembersUnknown] = {}
        self.appointed: list[NodeId] = []  # who took office, as they said themselves

    # -- nodes ----------------------------------------------------------------------------------

    def recipe(self, name: NodeId, zone: Scope = "") -> Recipe:
        """A member of that zone or a supervisor; both know two nodes that may die."""
        if zone:
            seeds = self.members.get(zone, [name])[:2]
            assemble = zone_member(zone, self.setup, contacts=seeds, strangers=self.strangers)
        else:
            assemble = supervisor(self.setup, contacts=self.strangers)

        def add(host: Host) -> None:
            assemble(host)
            host.listen(ZoneMembersKnown, lambda event: self.known.update({event.id: event}))
            host.listen(ZoneMembersUnknown, lambda event: self.unknown.update({event.id: event}))
            host.listen(DelegateAppointed, lambda event: self._on_appointed(host.me, event))

        return add

    def _on_appointed(self, me: NodeId, event: DelegateAppointed) -> None:
        if event.delegate == me:
            self.appointed.append(me)

    def start(self) -> Scenario:
        """Start everybody at once, and wait until all agree."""
        for name in self.supervisors:
            self.stage.start(name, self.recipe(name))
        for name, zone in self.zone_of.items():
            self.stage.start(name, self.recipe(name, zone))
        yield self.settled()

    def zones(self, name: NodeId) -> Zones:
        """The zones protocol of one who runs."""
        return self.stage.protocol(name, Zones)

    def running(self, zone: Scope) -> list[NodeId]:
        """The members of a zone that run."""
        return [name for name in self.stage.names if self.zone_of.get(name) == zone]

    def serving(self, zone: Scope) -> list[NodeId]:
        """Those of them who say to be delegates."""
        return [name for name in self.running(zone) if self.zones(name).is_delegate]

    # -- what must come true ----------------------------------------------------------------------

    def expected(self, names: Collection[NodeId]) -> tuple[ZoneEntry, ...] | None:
        """The one right table among these nodes; None while delegates are not as they should."""
        watchers = [name for name in names if name in self.supervisors]
        table = []
        for zone in sorted(set(self.zone_of.values())):
            members = [name for name in self.running(zone) if name in names]
            if not members:
                continue
            delegates = [name for name in members if self.zones(name).is_delegate]
            if len(delegates) != min(QUICK.delegates, len(members)):
                return None
            view = self.stage.protocol(members[0], Membership, zone).view
            if len(view) != len(members):
                return None
            records = {name: view.record(name) for name in delegates}
            senior = sorted(
                delegates, key=lambda name: (record.born if (record := records[name]) else 0, name)
            )
            watch = assign(zone, watchers, QUICK.supervisors)
            table.append(
                ZoneEntry(zone, len(members), tuple(senior), watch, f"delegate:{len(delegates)}")
            )
        return tuple(table)

    def agree(self, names: Collection[NodeId] | None = None) -> bool:
        """Whether these nodes, or all, have the right directory and know their delegates."""
        names = self.stage.names if names is None else names
        table = self.expected(names)
        if table is None:
            return False
        said = {entry.name: entry for entry in table}
        for name in names:
            zones = self.zones(name)
            if zones.zone and set(zones.delegates) != set(said[zones.zone].delegates):
                return False
            if zones.in_management != (zones.is_delegate or not zones.zone):
                return False
        if not all(self._same(self.zones(name).zones(), table) for name in names):
            return False
        for name in names:
            self.zones(name).audit()
        return True

    @staticmethod
    def _same(one: tuple[ZoneEntry, ...], other: tuple[ZoneEntry, ...]) -> bool:
        """Seniority in the management zone may be another one: a node enters it later."""
        return [(e.name, e.size, set(e.delegates), e.supervisors, e.summary) for e in one] == [
            (e.name, e.size, set(e.delegates), e.supervisors, e.summary) for e in other
        ]

    def settled(self, names: Collection[NodeId] | None = None) -> Until:
        """Wait until all agree."""
        return Until(lambda: self.agree(names), SETTLING, "directories that are right and equal")

    def attended(self, zone: Scope) -> bool:
        """Whether a zone that has members has a delegate, or a supervisor that knows them."""
        if not self.running(zone):
            return True
        for name in self.serving(zone):
            if self.zones(name).in_management:
                return True
        return any(
            name in self.stage.names and self.zones(name).knows_members_of(zone)
            for name in self.supervisors
        )

    def all_attended(self) -> Until:
        """Wait, one detection time at most, until somebody stands for every zone."""
        return Until(
            lambda: all(map(self.attended, ZONES)), DETECTION, "somebody to stand for each zone"
        )

    def replaced(self, zone: Scope) -> Until:
        """Wait, one detection time at most, until a zone has all its delegates."""
        wanted = min(QUICK.delegates, len(self.running(zone)))
        return Until(
            lambda: len(self.serving(zone)) == wanted, DETECTION, f"{wanted} delegates of {zone!r}"
        )

    def ask(self, name: NodeId, zone: Scope) -> int:
        """Let a node ask who is in a zone."""
        asked = self.stage.call(name, lambda host: host.protocol(Zones).ask_members, zone)
        assert isinstance(asked, int)
        return asked

    def told(self, *questions: int) -> Until:
        """Wait for the ends of questions, which must be answers."""

        def ended() -> bool:
            for question in questions:
                assert question not in self.unknown, self.unknown[question]
            return all(question in self.known for question in questions)

        return Until(ended, SETTLING, "members of zones")

    def members_told(self, question: int) -> list[NodeId]:
        """Who was told to be in the zone."""
        return sorted(member.name for member in self.known[question].members)


@scenario("zones-forming", nodes=12)
def forming(stage: Stage) -> Scenario:
    """Three zones start at once; each gets delegates, and everybody learns of all zones."""
    overlay = Overlay(stage)
    yield from overlay.start()
    asked = {
        overlay.ask(name, zone): zone
        for zone in ZONES
        for name in (overlay.members["a"][-1], overlay.members["b"][0], "s0")
    }
    yield overlay.told(*asked)
    for question, zone in asked.items():
        assert overlay.members_told(question) == sorted(overlay.members[zone])
    before = {name: overlay.zones(name).delegates for name in overlay.zone_of}
    newcomer = "a-new"
    overlay.zone_of[newcomer] = "a"
    stage.start(newcomer, overlay.recipe(newcomer, "a"))
    yield overlay.settled()
    for name, delegates in before.items():
        assert overlay.zones(name).delegates == delegates, "a newcomer displaced a delegate"


@scenario("zones-delegate-crash", nodes=12)
def delegate_crash(stage: Stage) -> Scenario:
    """A delegate dies: the other goes on, and a member of the zone takes its place in time."""
    overlay = Overlay(stage)
    yield from overlay.start()
    for zone in ZONES[:2]:
        victim, other = stage.rng.sample(overlay.serving(zone), 2)
        stage.crash(victim)
        assert overlay.attended(zone)
        yield overlay.replaced(zone)
        assert other in overlay.serving(zone), "the delegate that lived was displaced"
        question = overlay.ask(overlay.running("c")[-1], zone)
        yield overlay.told(question)
    yield overlay.settled()
    for name in overlay.zone_of:
        if name not in stage.names:
            stage.restart(name)
    yield overlay.settled()


@scenario("zones-all-delegates-crash", nodes=12)
def all_delegates_crash(stage: Stage) -> Scenario:
    """All delegates of a zone die at once: supervisors know it, and the next ones get back in."""
    overlay = Overlay(stage)
    yield from overlay.start()
    zone = stage.rng.choice(ZONES)
    other = stage.rng.choice([name for name in ZONES if name != zone])

    def supervised() -> bool:
        return any(overlay.zones(name).knows_members_of(zone) for name in overlay.supervisors)

    yield Until(supervised, SETTLING, "a supervisor that knows the zone")
    for victim in overlay.serving(zone):
        stage.crash(victim)
    assert overlay.attended(zone), "nobody stands for a zone with members"
    question = overlay.ask(overlay.running(other)[-1], zone)
    yield overlay.replaced(zone)
    yield overlay.told(question)
    yield overlay.settled()
    question = overlay.ask(overlay.running(other)[-1], zone)
    yield overlay.told(question)
    assert overlay.members_told(question) == sorted(overlay.running(zone))


@scenario("zones-no-supervisors", nodes=12)
def no_supervisors(stage: Stage) -> Scenario:
    """Nobody whom the configuration names lives any more: what delegates published is enough."""
    overlay = Overlay(stage, supervisors=0)
    yield from overlay.start()
    for name in overlay.strangers:
        stage.crash(name, keep="none")
    yield overlay.settled()
    yield Pause(2 * QUICK.publish_pause)
    for victim in overlay.serving("c"):
        stage.crash(victim)
    yield overlay.all_attended()
    yield overlay.settled()


@scenario("zones-zone-crash", nodes=12)
def zone_crash(stage: Stage) -> Scenario:
    """A whole zone dies: it vanishes everywhere; when it comes back, so does its entry."""
    overlay = Overlay(stage)
    yield from overlay.start()
    zone = stage.rng.choice(ZONES)
    for name in overlay.members[zone]:
        stage.crash(name)

    def vanished() -> bool:
        names = [entry.name for one in stage.names for entry in overlay.zones(one).zones()]
        return zone not in names

    bound = DETECTION + QUICK.vanish_after + 2 * QUICK.table_period
    yield Until(vanished, bound, f"an end of zone {zone!r} in every directory")
    yield overlay.settled()
    question = overlay.ask(overlay.supervisors[-1], zone)
    yield Until(lambda: question in overlay.unknown, SETTLING, "no answer")
    for name in overlay.members[zone]:
        stage.restart(name)
    yield overlay.settled()


@scenario("zones-supervisor-crash", nodes=12)
def supervisor_crash(stage: Stage) -> Scenario:
    """Supervisors die, one after the other; the next take over their zones."""
    overlay = Overlay(stage)
    yield from overlay.start()
    for victim in overlay.supervisors[:-1]:
        stage.crash(victim)
        yield overlay.settled()
        left = overlay.supervisors[-1]
        for zone in ZONES:
            watch = overlay.zones(left).zones()[ZONES.index(zone)].supervisors

            def informed(zone: Scope = zone, watch: tuple[NodeId, ...] = watch) -> bool:
                return all(overlay.zones(name).knows_members_of(zone) for name in watch)

            yield Until(informed, SETTLING, f"supervisors that know {zone!r}")
    for victim in overlay.supervisors[:-1]:
        stage.restart(victim)
    yield overlay.settled()


@scenario("zones-partition", nodes=12, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """Zones cannot reach each other for a while: each side has its zones, then all again."""
    overlay = Overlay(stage)
    yield from overlay.start()
    alone = stage.rng.choice(ZONES)
    here = [*overlay.members[alone], *overlay.supervisors[:1]]
    there = [name for name in stage.names if name not in here]
    stage.partition([here, there])
    yield overlay.settled(here)
    yield overlay.settled(there)
    victim = stage.rng.choice(overlay.serving(alone))
    stage.crash(victim)
    yield overlay.replaced(alone)
    stage.heal()
    yield overlay.settled()


@scenario("zones-split", nodes=12, both_worlds=False)
def split(stage: Stage) -> Scenario:
    """Every zone is split: each half has delegates of its own; healed, the senior ones stay."""
    overlay = Overlay(stage)
    yield from overlay.start()
    halves: tuple[list[NodeId], list[NodeId]] = ([], [])
    for zone in ZONES:
        names = list(overlay.members[zone])
        stage.rng.shuffle(names)
        halves[0].extend(names[::2])
        halves[1].extend(names[1::2])
    halves[0].extend(overlay.supervisors[::2])
    halves[1].extend(overlay.supervisors[1::2])
    stage.partition(halves)
    for half in halves:
        yield overlay.settled(half)
    stage.heal()
    yield overlay.settled()


@scenario("zones-restart-storm", nodes=12)
def restart_storm(stage: Stage) -> Scenario:
    """All but one node per zone restart again and again; then everything is as it was."""
    overlay = Overlay(stage)
    yield from overlay.start()
    stay = {stage.rng.choice(overlay.members[zone]) for zone in ZONES}
    for _ in range(3):
        victims = [name for name in stage.names if name not in stay]
        for name in victims:
            stage.crash(name, keep=stage.rng.choice(("all", "none", "power-cut")))
        yield Pause(stage.rng.uniform(0.0, 0.5))
        for name in victims:
            stage.restart(name)
        yield Pause(stage.rng.uniform(0.0, 3.0))
    yield overlay.all_attended()
    yield overlay.settled()


@scenario("zones-loss", nodes=12, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """One frame in five is lost, while zones form and while delegates go."""
    stage.loss(0.2)
    overlay = Overlay(stage)
    yield from overlay.start()
    zone = stage.rng.choice(ZONES)
    stage.crash(stage.rng.choice(overlay.serving(zone)))
    question = overlay.ask(overlay.running(zone)[0], "a" if zone != "a" else "b")
    yield overlay.told(question)
    stage.heal()
    yield overlay.settled()


@scenario("zones-growing", nodes=12)
def growing(stage: Stage) -> Scenario:
    """A zone appears, grows, empties by goodbyes and vanishes; the others hardly notice."""
    overlay = Overlay(stage)
    yield from overlay.start()
    before = len(overlay.appointed)
    fresh = [f"d{index}" for index in range(4)]
    overlay.members["d"] = fresh
    for name in fresh:
        overlay.zone_of[name] = "d"
        stage.start(name, overlay.recipe(name, "d"))
        if stage.rng.random() < 0.5:
            yield overlay.settled()
    yield overlay.settled()
    for name in stage.rng.sample(fresh, len(fresh)):
        stage.stop(name)
        yield Pause(stage.rng.uniform(0.0, 2.0))
    yield overlay.settled()
    others = [name for name in overlay.appointed[before:] if name not in fresh]
    assert others == [], "a delegate of another zone changed"
    assert stage.protocol("s0", Membership, MANAGEMENT).view.members()
