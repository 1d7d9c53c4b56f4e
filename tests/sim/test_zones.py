"""Zones in the simulator: how fast delegates are replaced, and what all of it costs."""

from __future__ import annotations

from collections import Counter

import pytest

from nodes.scenarios.running import run_scenario
from nodes.zone_recipe import ZoneSetup, supervisor, zone_member
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.sim import Simulator
from overlay.sim.trace import TraceLine
from protocols.membership.machine import Membership
from protocols.zones import MANAGEMENT, Zones
from protocols.zones.messages import MESSAGES

ZONES = ("a", "b", "c")
EACH = 8
LAN = ZoneSetup()


class Overlay:
    """Three zones and two supervisors, with the settings of a LAN."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulator(seed, check_every=10)
        for name in ("s0", "s1"):
            self.sim.add_node(name, supervisor(LAN, contacts=["s0", "s1"]))
        for zone in ZONES:
            for index in range(EACH):
                recipe = zone_member(zone, LAN, contacts=[f"{zone}0"], strangers=["s0", "s1"])
                self.sim.add_node(f"{zone}{index}", recipe)
        assert self.sim.run_until(self.is_formed, 30, every=0.1)
        self.sim.run_for(15)  # the last news of the start is passed on

    def zones(self, name: NodeId) -> Zones:
        return self.sim.protocol(name, Zones)

    def names(self, zone: Scope) -> list[NodeId]:
        names = [f"{zone}{index}" for index in range(EACH)]
        return [name for name in names if self.sim.is_running(name)]

    def serving(self, zone: Scope) -> list[NodeId]:
        return [name for name in self.names(zone) if self.zones(name).is_delegate]

    def is_formed(self) -> bool:
        tables = [
            tuple((entry.name, entry.size) for entry in self.zones(name).zones())
            for name in self.sim.nodes
        ]
        return set(tables) == {tuple((zone, EACH) for zone in ZONES)}

    def is_back(self, zone: Scope) -> bool:
        """Whether two new delegates are in the management zone, in the eyes of a supervisor."""
        entries = {entry.name: entry for entry in self.zones("s0").zones()}
        told = entries[zone].delegates
        return len(told) == 2 and sorted(told) == sorted(self.serving(zone))


@pytest.mark.parametrize("count", [1, 2])
def test_delegates_that_are_killed_are_replaced_within_two_seconds(count: int) -> None:
    overlay = Overlay(count)
    for victim in overlay.serving("b")[:count]:
        overlay.sim.crash(victim)
    assert overlay.sim.run_until(lambda: overlay.is_back("b"), 2.0)


def test_a_delegate_that_hangs_is_replaced_within_seven_seconds() -> None:
    overlay = Overlay(3)
    victim, other = overlay.serving("b")
    overlay.sim.pause(victim)

    def replaced() -> bool:
        serving = [name for name in overlay.serving("b") if name != victim]
        told = {entry.name: entry.delegates for entry in overlay.zones("s0").zones()}["b"]
        return len(serving) == 2 and other in serving and sorted(told) == sorted(serving)

    assert overlay.sim.run_until(replaced, 7.0)
    overlay.sim.resume(victim)
    assert overlay.sim.run_until(lambda: overlay.is_back("b"), 30.0)
    assert other in overlay.serving("b")


def test_an_idle_overlay_says_little_about_zones() -> None:
    overlay = Overlay(4)
    said: Counter[str] = Counter()
    kinds = tuple(MESSAGES)

    def read(step: TraceLine) -> None:
        _, _, kind, detail = step
        if kind == "frame":
            for batch in detail[1][1::2]:
                said.update(type(one).__name__ for one in batch if isinstance(one, kinds))

    overlay.sim.reader = read
    overlay.sim.run_for(100)
    # A member asks for the table each 10 s, four delegates tell two supervisors as often.
    assert sum(said.values()) / len(overlay.sim.nodes) / 100 < 0.3, said
    assert said["MembersPage"] == 0, "nothing changed, and a roster was fetched"


def test_an_instance_that_was_stopped_leaves_nothing_behind() -> None:
    overlay = Overlay(5)
    inside = [name for zone in ZONES for name in overlay.serving(zone)]
    for name, node in overlay.sim.nodes.items():
        assert (f"membership@{MANAGEMENT}" in node.effects) == (name in inside or name[0] == "s")
    (name, _) = overlay.serving("a")
    host = overlay.sim.host(name)
    before = overlay.sim.protocol(name, Membership, MANAGEMENT)
    base = overlay.sim.protocol(name, Membership, "a")
    overlay.sim.call(name, base.set_attribute, "delegate", False)  # it wants to be left alone
    assert overlay.sim.run_until(lambda: not overlay.zones(name).is_delegate, 10.0)
    assert before.stopped
    assert f"membership@{MANAGEMENT}" not in overlay.sim.nodes[name].effects
    assert all(instance.scope != MANAGEMENT for instance in host.instances)
    assert overlay.sim.run_until(lambda: overlay.is_back("a"), 10.0)
    overlay.sim.call(name, base.remove_attribute, "delegate")
    for other in overlay.names("a"):
        if other != name:
            overlay.sim.crash(other)
    # Nobody is left to confirm its suspicions: they take their full time.
    assert overlay.sim.run_until(lambda: overlay.serving("a") == [name], 30.0)
    assert overlay.sim.protocol(name, Membership, MANAGEMENT) is not before


def test_the_same_seed_gives_the_same_trace_with_and_without_the_codec() -> None:
    hashes = {
        run_scenario("zones-restart-storm", 7, wire=wire).trace_hash
        for wire in (False, False, True)
    }
    assert len(hashes) == 1
