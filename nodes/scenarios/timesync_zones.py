"""Zones agree on one time by themselves, and a zone that comes late takes the time that is."""

from __future__ import annotations

from math import inf

from nodes.scenarios.registry import scenario
from nodes.scenarios.timesync import BRISK, CLOSE, JITTERY
from nodes.scenarios.zones import SETUP
from nodes.zone_recipe import supervisor, zone_member
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import SimStage
from protocols.membership.machine import Membership
from protocols.timesync import TimeSync
from protocols.zones import Zones

ZONES = ("a", "b", "c")
SUPERVISOR = "s0"
AGREED = 90.0  # s, from clocks half a second off, with delegates to be elected before
FAR = 2 * CLOSE  # s: each zone measures the way to another one by itself


class Overlay:
    """Three zones and a supervisor, each node with a clock of its own."""

    def __init__(self, stage: Stage) -> None:
        assert isinstance(stage, SimStage)
        self.stage = stage
        self.sim = stage.sim
        each = max(1, stage.size // len(ZONES))
        self.members = {zone: [f"{zone}{index}" for index in range(each)] for zone in ZONES}
        self._told: dict[NodeId, float] = {}

    def recipe(self, zone: Scope, seeds: list[NodeId]) -> Recipe:
        """A member of that zone, or a supervisor, with the time service."""
        if zone:
            assemble = zone_member(zone, SETUP, contacts=seeds, strangers=["a0", "b0"])
        else:
            assemble = supervisor(SETUP, contacts=["a0", "b0"])

        def add(host: Host) -> None:
            assemble(host)
            host.add(
                TimeSync,
                BRISK,
                members=host.protocol(Membership, zone).view if zone else None,
                zones=host.protocol(Zones),
                where=host.surroundings.udp_of,
            )

        return add

    def start(self, name: NodeId, zone: Scope, *, offset: float | None = None) -> None:
        """Start one; its clock is half a second off, unless told otherwise."""
        wrong = self.stage.rng.uniform(-0.5, 0.5) if offset is None else offset
        drift = self.stage.rng.uniform(-50e-6, 50e-6)
        seeds = self.members.get(zone, [name])[:2]
        self.sim.add_node(name, self.recipe(zone, seeds), offset=wrong, drift=drift)

    def start_all(self) -> None:
        """Everybody at once."""
        for zone, names in self.members.items():
            for name in names:
                self.start(name, zone)
        self.start(SUPERVISOR, "")

    def times(self) -> dict[NodeId, float]:
        """Overlay time on all who run; it never goes back."""
        found = {}
        for name in self.stage.names:
            node = self.sim.node(name)
            found[name] = self.sim.protocol(name, TimeSync).overlay_time(self.sim.clock_of(node))
            assert found[name] >= self._told.get(name, -inf), f"{name} went back"
        self._told |= found
        return found

    def spread(self) -> float:
        """How far apart they are."""
        times = self.times().values()
        return max(times) - min(times)

    def roots(self) -> set[NodeId]:
        """Whose time they have."""
        return {self.sim.protocol(name, TimeSync).standing(0.0).root for name in self.stage.names}

    def agree(self) -> bool:
        """Whether all have one time from one root."""
        return self.spread() <= FAR and len(self.roots()) == 1

    def agreed(self) -> Scenario:
        """Wait for it, and see that it stays so."""
        yield Until(self.agree, within=AGREED, what="one time for all zones")
        for _ in range(10):
            yield Pause(1.0)
            assert self.spread() <= FAR, f"{self.spread()} s apart, roots {self.roots()}"

    def against_world(self) -> float:
        """Overlay time of the supervisor, against the simulated world's."""
        return self.times()[SUPERVISOR] - self.sim.now


@scenario("time-zones", nodes=6, long=9, network=JITTERY, both_worlds=False)
def zones(stage: Stage) -> Scenario:
    """All zones have one time; the death of the leading delegates, or a new zone, moves nobody."""
    overlay = Overlay(stage)
    overlay.start_all()
    yield from overlay.agreed()
    before, began = overlay.against_world(), overlay.sim.now
    for name in overlay.members["a"][1:]:
        stage.crash(name)  # a zone half as large leads no more
    yield Pause(10)
    yield from overlay.agreed()
    overlay.start("00", "0", offset=stage.rng.choice((-20.0, 20.0)))
    yield from overlay.agreed()
    moved = abs(overlay.against_world() - before)
    drift = 3e-4 * (overlay.sim.now - began)
    assert moved < 0.03 + drift, f"time moved by {moved} s"
