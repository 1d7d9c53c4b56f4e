"""10,000 nodes in 100 zones form, lose delegates and a zone, and heal after a partition.

The settings are those of a LAN, as for real nodes. The partition is the hard one: it cuts every
zone and the supervisors in two, so each half must remove the other, elect delegates of its own and
agree about all zones, and after it everybody must take everybody back. Invariants of single
steps are not checked here (`check_every=0`; the scenarios do that): each phase ends when every
node has the one right table, which is compared on all nodes.

`python -m bench membership` runs this as one of its cases.
"""

from __future__ import annotations

import resource
from collections.abc import Collection
from time import perf_counter, process_time
from typing import NamedTuple

from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from nodes.zone_recipe import ZoneSetup, supervisor, zone_member
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.sim import Partition, Simulator
from protocols.zones import ZoneEntry, Zones, ZonesSettings

LAN = ZoneSetup()
SUPERVISORS = 4
DELEGATES = ZonesSettings().delegates
PATIENCE = 300.0  # s of the world
LOOK_EVERY = 1.0  # s of the world, for the one right table
CUT = 300.0  # s of the world
PHASES = 6
PEAK_BAR = 6e9  # bytes
WALL_BAR = 900.0  # s


class World:
    """Nodes in zones of one size, and a few supervisors."""

    def __init__(self, nodes: int, zones: int, seed: int = 1) -> None:
        self.sim = Simulator(seed, check_every=0)
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
        """Everybody who lives, supervisors first."""
        return [name for name in (*self.watchers, *self.zone_of) if self.sim.is_running(name)]

    def zones(self, name: NodeId) -> Zones:
        """The zones protocol of one who runs."""
        return self.sim.protocol(name, Zones)

    def members(self, zone: Scope) -> list[NodeId]:
        """The members of a zone that live."""
        return [name for name in self.running() if self.zone_of.get(name) == zone]

    def is_right(self, among: Collection[NodeId] | None = None) -> bool:
        """Whether all of these, or of all, have the one table that is right among them."""
        among = self.running() if among is None else among
        table = self.zones(next(iter(among))).zones()
        if any(self.zones(name).zones() != table for name in among):
            return False
        members: dict[Scope, list[NodeId]] = {}
        for name in among:
            if name in self.zone_of:
                members.setdefault(self.zone_of[name], []).append(name)
        said: dict[Scope, ZoneEntry] = {entry.name: entry for entry in table}
        return said.keys() == members.keys() and all(
            said[zone].size == len(names)
            and len(said[zone].delegates) == min(DELEGATES, len(names))
            and all(self.zones(name).is_delegate for name in said[zone].delegates)
            for zone, names in members.items()
        )

    def settle(self, within: float = PATIENCE) -> float:
        """Seconds of the world until everybody has the one right table."""
        began = self.sim.now
        assert self.sim.run_until(self.is_right, within, every=LOOK_EVERY), "tables stay wrong"
        return self.sim.now - began

    def kill_delegates(self, zones: int) -> None:
        """All of several zones, at one moment."""
        for name in self.running():
            home = self.zone_of.get(name)
            if home in {f"z{zone}" for zone in range(zones)} and self.zones(name).is_delegate:
                self.sim.crash(name)

    def kill_zone(self, zone: Scope) -> None:
        """All its members, at one moment."""
        for name in self.members(zone):
            self.sim.crash(name)

    def halves(self) -> tuple[list[NodeId], list[NodeId]]:
        """Every zone is cut in two, and so are the supervisors."""
        seen: dict[Scope, int] = {}
        halves: tuple[list[NodeId], list[NodeId]] = ([], [])
        for name in self.running():
            zone = self.zone_of.get(name, "")
            seen[zone] = seen.get(zone, 0) + 1
            halves[seen[zone] % 2].append(name)
        return halves


class Scale(NamedTuple):
    """How one world fared; seconds of the world unless they say otherwise."""

    nodes: int
    zones: int
    cut: float  # how long the partition lasted
    formed: float  # after all started at once
    replaced: float  # after all delegates of a tenth of the zones crashed at once
    vanished: float  # after a whole zone crashed
    parted: float  # from the cut until each half has its own right table
    healed: float  # from the end of the cut until everybody has the one right table
    messages: int  # that arrived, in all
    cpu: float  # s of this process
    wall: float  # s
    peak: int  # bytes of memory of this process


def measure(nodes: int = 10_000, zones: int = 100, cut: float = CUT, seed: int = 1) -> Scale:
    """Play it once; run it in a process of its own, since memory and CPU are the process's."""
    progress = Progress("membership at scale", PHASES)
    wall, cpu = perf_counter(), process_time()
    progress.step(f"{nodes:,} nodes in {zones} zones start")
    world = World(nodes, zones, seed)
    sim = world.sim
    formed = world.settle()
    progress.step("delegates crash")
    world.kill_delegates(max(1, zones // 10))
    replaced = world.settle()
    progress.step("a zone crashes")
    world.kill_zone(f"z{zones - 1}")
    vanished = world.settle()
    progress.step("every zone is cut in two")
    halves = world.halves()
    began = sim.now
    handle = sim.faults.add(Partition(halves))
    sim.run_until(lambda: all(map(world.is_right, halves)), cut, every=LOOK_EVERY)
    parted = sim.now - began
    sim.run_for(cut - parted)
    assert all(map(world.is_right, halves)), "a half does not know its own zones"
    progress.step("the halves meet again")
    sim.faults.remove(handle)
    healed = world.settle()
    progress.step("done")
    return Scale(
        nodes, zones, cut, formed, replaced, vanished, parted, healed,
        messages=sim.traffic.messages,
        cpu=process_time() - cpu,
        wall=perf_counter() - wall,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )  # fmt: skip


def enter(report: Report, found: Scale) -> None:
    """Put the figures and the two bars into a report."""
    case = f"{found.nodes:,} nodes in {found.zones} zones"
    cut = f"a partition of {found.cut:g} s through every zone"
    for what, seconds in (
        ("formed", found.formed),
        ("all delegates of a tenth of the zones crashed: replaced", found.replaced),
        ("a whole zone crashed: vanished", found.vanished),
        (f"{cut}: each half right", found.parted),
        (f"{cut}: healed", found.healed),
    ):
        report.add(f"{case}, {what}", "s", [seconds])
    report.add(f"{case}, messages", "messages", [found.messages])
    report.add(f"{case}, CPU", "s", [found.cpu])
    report.require(f"{case}, wall time of the run", found.wall, "s", "at most", WALL_BAR)
    report.require(f"{case}, peak memory", found.peak, "bytes", "at most", PEAK_BAR)


def report_scale(report: Report, options: Options) -> None:
    """Play it in a process of its own, small if only somebody looks whether it runs."""
    if options.quick:
        enter(report, measure(40, 4, 30.0))
    else:
        enter(report, measure_alone(measure))
