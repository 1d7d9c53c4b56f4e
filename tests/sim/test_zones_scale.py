"""Many zones at once: they form, lose delegates and whole zones, and heal after a partition."""

from __future__ import annotations

import resource

import pytest

from nodes.zone_recipe import ZoneSetup, supervisor, zone_member
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.sim import Partition, Simulator
from protocols.zones import ZoneEntry, Zones, ZonesSettings

LAN = ZoneSetup()
SUPERVISORS = 4
DELEGATES = ZonesSettings().delegates
PATIENCE = 120.0  # s of the world


class World:
    """Nodes in zones of one size, and a few supervisors."""

    def __init__(self, nodes: int, zones: int) -> None:
        self.sim = Simulator(1, check_every=0)
        self.watchers = [f"s{index}" for index in range(SUPERVISORS)]
        self.zone_of: dict[NodeId, Scope] = {}
        for name in self.watchers:
            self.sim.add_node(name, supervisor(LAN, contacts=self.watchers[:2]))
        for index in range(nodes):
            name, home = f"n{index}", index % zones
            self.zone_of[name] = zone = f"z{home}"
            contacts = [f"n{home}", f"n{home + zones}"]
            recipe = zone_member(zone, LAN, contacts=contacts, strangers=self.watchers[:2])
            self.sim.add_node(name, recipe)

    def running(self) -> list[NodeId]:
        return [name for name in self.zone_of if self.sim.is_running(name)]

    def zones(self, name: NodeId) -> Zones:
        return self.sim.protocol(name, Zones)

    def serving(self, zone: Scope) -> list[NodeId]:
        return [
            name
            for name in self.running()
            if self.zone_of[name] == zone and self.zones(name).is_delegate
        ]

    def is_right(self) -> bool:
        """Whether everybody has the one right table."""
        table = self.zones(self.watchers[0]).zones()
        running = self.running()
        if any(self.zones(name).zones() != table for name in (*self.watchers, *running)):
            return False
        members: dict[Scope, list[NodeId]] = {}
        for name in running:
            members.setdefault(self.zone_of[name], []).append(name)
        said: dict[Scope, ZoneEntry] = {entry.name: entry for entry in table}
        return said.keys() == members.keys() and all(
            said[zone].size == len(names)
            and len(said[zone].delegates) == min(DELEGATES, len(names))
            and all(self.zones(name).is_delegate for name in said[zone].delegates)
            for zone, names in members.items()
        )

    def settle(self, within: float = PATIENCE) -> None:
        assert self.sim.run_until(self.is_right, within, every=5.0)

    def kill_delegates(self, zones: int) -> None:
        """All of several zones, at one moment."""
        for zone in range(zones):
            for name in self.serving(f"z{zone}"):
                self.sim.crash(name)

    def kill_zone(self, zone: Scope) -> None:
        for name in self.running():
            if self.zone_of[name] == zone:
                self.sim.crash(name)

    def halves(self) -> tuple[list[NodeId], list[NodeId]]:
        """Every zone is cut in two, and so are the supervisors."""
        seen: dict[Scope, int] = {}
        halves: tuple[list[NodeId], list[NodeId]] = ([], [])
        for name in (*self.watchers, *self.running()):
            zone = self.zone_of.get(name, "")
            seen[zone] = seen.get(zone, 0) + 1
            halves[seen[zone] % 2].append(name)
        return halves


def test_six_zones_lose_delegates_and_a_whole_zone() -> None:
    world = World(60, 6)
    world.settle()
    world.kill_delegates(2)
    world.settle()
    world.kill_zone("z5")
    world.settle()
    assert [entry.name for entry in world.zones("s0").zones()] == ["z0", "z1", "z2", "z3", "z4"]


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "zones"), [(1000, 20), (10_000, 100)])
def test_many_zones_form_lose_delegates_and_heal(nodes: int, zones: int) -> None:
    world = World(nodes, zones)
    world.settle()
    world.kill_delegates(zones // 10)
    world.settle()
    world.kill_zone(f"z{zones - 1}")
    world.settle()
    handle = world.sim.faults.add(Partition(world.halves()))
    world.sim.run_for(300.0)
    world.sim.faults.remove(handle)
    world.settle(300.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert peak < 6e9
