"""A zone in the simulator: members with the settings of a LAN, all started at once."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from bench.processes import measure_alone
from bench.report import Options
from overlay.host import Host
from overlay.ids import NodeId
from overlay.sim import Simulator
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership

T = TypeVar("T")

LAN = MembershipSettings()
ZONE = "zone"
SEEDS = 3
SETTLING = 10.0  # s; the last news of the start is passed on
PATIENCE = 120.0  # s of the world; nothing measured here takes as long


class Zone:
    """Members in a simulator, and how they see each other."""

    def __init__(self, size: int, seed: int, *, zones: int = 1) -> None:
        self.sim = Simulator(seed, check_every=0)
        self.rng = Random(seed)
        self.names = [f"n{number}" for number in range(size)]
        self.zone_of = {name: number % zones for number, name in enumerate(self.names)}
        seeds: dict[int, list[NodeId]] = {number: [] for number in range(zones)}
        for name, zone in self.zone_of.items():
            if len(seeds[zone]) < SEEDS:
                seeds[zone].append(name)
        self.sizes = [list(self.zone_of.values()).count(zone) for zone in range(zones)]
        for name, zone in self.zone_of.items():
            self.sim.add_node(name, self._member(seeds[zone]))

    @staticmethod
    def _member(contacts: list[NodeId]) -> Any:
        def add(host: Host) -> None:
            host.add(Membership, LAN, ZONE, zone=ZONE, contacts=contacts)

        return add

    def membership(self, name: NodeId) -> Membership:
        """The instance of a member that runs."""
        return self.sim.protocol(name, Membership, ZONE)

    def complete(self) -> bool:
        """Whether every view has every member of its zone."""
        return all(
            len(self.membership(name).view) == self.sizes[zone]
            for name, zone in self.zone_of.items()
        )

    def without(self, gone: NodeId) -> bool:
        """Whether somebody is out of all other views."""
        others = (name for name in self.names if name != gone)
        return all(gone not in self.membership(name).view for name in others)

    def form(self) -> float:
        """Seconds of the world until all views are complete."""
        began = self.sim.now
        assert self.sim.run_until(self.complete, PATIENCE), "the zone never formed"
        return self.sim.now - began

    def settle(self) -> None:
        """Form, and let the news of that die down."""
        self.form()
        self.sim.run_for(SETTLING)


def measure(options: Options, case: Callable[..., T], *args: Any) -> T:
    """Measure in a process of its own, unless nothing depends on the figures."""
    return case(*args) if options.quick else measure_alone(case, *args)
