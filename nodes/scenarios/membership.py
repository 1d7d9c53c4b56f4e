"""Scenarios of a zone's membership: who lives is in every view, who died is in none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodes.scenarios.registry import scenario
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.membership.attributes import Value
from protocols.membership.config import MembershipSettings
from protocols.membership.events import MemberFailed, MemberJoined, MemberLeft, MemberSuspected
from protocols.membership.machine import Membership

ZONE = "z"
SEEDS = 2  # of the first nodes are the contacts of all
REMOVAL = 30.0  # s; within which a dead member must be out of every view, with room to spare
LAN = MembershipSettings()


class Zone:
    """The members that a scenario starts, and what they saw happen to each other."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.names = [f"m{index}" for index in range(stage.size)]
        self.suspected: list[tuple[NodeId, NodeId]] = []  # who heard that whom does not answer
        self.failed: list[tuple[NodeId, NodeId]] = []  # who held whom to be dead
        self.left: list[tuple[NodeId, NodeId]] = []
        self._joined: dict[tuple[Membership, NodeId], int] = {}

    def member(self, attributes: dict[str, Value] | None = None) -> Recipe:
        """A member that knows only the seeds."""
        seeds = self.names[:SEEDS]

        def add(host: Host) -> None:
            membership = host.add(
                Membership, LAN, ZONE, zone=ZONE, contacts=seeds, attributes=attributes
            )
            host.listen(MemberJoined, lambda event: self._check_order(membership, event))
            host.listen(
                MemberSuspected, lambda event: self.suspected.append((host.me, event.member))
            )
            host.listen(MemberFailed, lambda event: self._on_failed(host.me, event))
            host.listen(MemberLeft, lambda event: self.left.append((host.me, event.member)))

        return add

    def _check_order(self, membership: Membership, event: MemberJoined) -> None:
        """Whoever comes back to one observer has a higher incarnation than it ever saw."""
        before = self._joined.get((membership, event.member), -1)
        assert event.incarnation > before, f"{membership.me} saw {event} after {before}"
        self._joined[membership, event.member] = event.incarnation

    def _on_failed(self, observer: NodeId, event: MemberFailed) -> None:
        if not event.restarted:
            self.failed.append((observer, event.member))

    def start(self, names: Sequence[NodeId] | None = None) -> Scenario:
        """Start them all at once, and wait until every view is complete."""
        for name in self.names if names is None else names:
            self.stage.start(name, self.member())
        yield from self.settled()

    def membership(self, name: NodeId) -> Membership:
        """The instance of one who runs."""
        return self.stage.protocol(name, Membership, ZONE)

    def settled(self, within: float = REMOVAL) -> Scenario:
        """Wait until all who run, and nobody else, are in every view, as they know themselves."""
        yield Until(self._agree, within=within, what="complete and equal views")

    def _agree(self) -> bool:
        running = self.stage.names
        members = [self.membership(name) for name in running]
        for observer in members:
            view = observer.view
            if len(view) != len(running):
                return False
            for member in members:
                record = view.record(member.me)
                if record is None or not record.present or record.incarnation != member.incarnation:
                    return False
                if view.attributes(member.me) != member.view.attributes(member.me):
                    return False
        for member in members:
            member.audit()
        return True

    def without(self, gone: NodeId) -> Until:
        """Wait until somebody is in no view of those who run."""
        return Until(
            lambda: all(gone not in self.membership(name).view for name in self.stage.names),
            within=REMOVAL,
            what=f"views without {gone}",
        )

    def set(self, name: NodeId, key: str, value: Value) -> None:
        """Let a member set one of its attributes."""
        self.stage.call(
            name, lambda host: host.protocol(Membership, ZONE).set_attribute, key, value
        )

    def remove(self, name: NodeId, key: str) -> None:
        """Let a member remove one of its attributes."""
        self.stage.call(name, lambda host: host.protocol(Membership, ZONE).remove_attribute, key)

    def removed_but(self, dead: Collection[NodeId]) -> list[tuple[NodeId, NodeId]]:
        """Who was held to be dead, besides those who were."""
        return [(who, whom) for who, whom in self.failed if whom not in dead]


@scenario("membership-basic", nodes=8)
def basic(stage: Stage) -> Scenario:
    """All join at once; one leaves, one crashes and comes back; attributes follow their owner."""
    zone = Zone(stage)
    yield from zone.start()
    first, leaver, victim = zone.names[0], zone.names[-1], zone.names[-2]
    for number, name in enumerate(zone.names):
        zone.set(name, "number", number)
        zone.set(name, "kind", "lab machine")
    yield from zone.settled()
    zone.set(first, "number", 100)
    zone.remove(first, "kind")
    yield from zone.settled()
    assert zone.membership(victim).view.attributes(first) == {"number": 100}
    stage.stop(leaver)
    yield zone.without(leaver)
    assert zone.left, "nobody heard the goodbye"
    before = zone.membership(victim).incarnation
    stage.crash(victim)
    yield zone.without(victim)
    assert zone.removed_but([victim, leaver]) == []
    stage.restart(victim)
    yield from zone.settled()
    assert zone.membership(victim).incarnation > before
    assert zone.membership(first).view.attributes(victim) == {}, "attributes of an earlier life"


@scenario("membership-churn", nodes=8)
def churn(stage: Stage) -> Scenario:
    """Members crash, leave, restart and change attributes; in the end all views are right."""
    zone = Zone(stage)
    yield from zone.start()
    for step in range(8):
        victim = stage.rng.choice(stage.names[SEEDS:])
        if stage.rng.random() < 0.7:
            stage.crash(victim)
        else:
            stage.stop(victim)
        zone.set(stage.rng.choice(stage.names), "step", step)
        yield Pause(stage.rng.uniform(0.0, 2.0))
        for name in zone.names:
            if name not in stage.names and stage.rng.random() < 0.7:
                stage.restart(name)
    yield from zone.settled()


@scenario("membership-restart-storm", nodes=8)
def restart_storm(stage: Stage) -> Scenario:
    """All but one restart again and again, faster than anybody can be found dead."""
    zone = Zone(stage)
    yield from zone.start()
    before = {name: zone.membership(name).incarnation for name in zone.names}
    stayed = stage.rng.choice(zone.names)
    for _ in range(4):
        for name in zone.names:
            if name != stayed:
                stage.crash(name, keep=stage.rng.choice(("all", "none", "power-cut")))
        yield Pause(stage.rng.uniform(0.0, 0.3))
        for name in zone.names:
            if name != stayed:
                stage.restart(name)
        yield Pause(stage.rng.uniform(0.0, 0.3))
    yield from zone.settled()
    for name in zone.names:
        now = zone.membership(name).incarnation
        assert now > before[name] or name == stayed, f"{name} went back: {before[name]} to {now}"
    assert not any(whom == stayed for _, whom in zone.failed), "the one who stayed was removed"


@scenario("membership-flapping", nodes=6)
def flapping(stage: Stage) -> Scenario:
    """One member dies and comes back all the time; the others keep each other."""
    zone = Zone(stage)
    yield from zone.start()
    flapper = zone.names[-1]
    for _ in range(6):
        stage.crash(flapper)
        yield Pause(stage.rng.uniform(0.0, 2.5))
        stage.restart(flapper)
        yield Pause(stage.rng.uniform(0.0, 2.5))
    yield from zone.settled()
    assert zone.removed_but([flapper]) == []


@scenario("membership-seeds-dead", nodes=8)
def seeds_dead(stage: Stage) -> Scenario:
    """All bootstrap addresses die after the start; the zone lives on, and finds them again."""
    zone = Zone(stage)
    yield from zone.start()
    seeds = zone.names[:SEEDS]
    for seed in seeds:
        stage.crash(seed, keep="none")
    yield from zone.settled()
    zone.set(zone.names[-1], "alone", True)
    yield from zone.settled()
    assert zone.removed_but(seeds) == []
    yield Pause(stage.rng.uniform(2, 10))  # whatever was under way to them is lost
    for seed in seeds:  # they know nobody but each other: the others must find them
        stage.restart(seed)
    yield from zone.settled()
    assert zone.membership(seeds[0]).view.attributes(zone.names[-1]) == {"alone": True}
