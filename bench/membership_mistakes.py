"""Whom a zone in the simulator removes by mistake: networks that lose, members that are slow."""

from __future__ import annotations

from dataclasses import dataclass

from bench.membership_zone import Zone, measure
from bench.progress import Progress
from bench.report import Options, Report
from overlay.ids import NodeId
from overlay.sim import Delay, Loss
from protocols.membership.events import MemberFailed

SLOW_BY = 2.0  # s
SLOW_ONE_IN = 10
PAUSE_BETWEEN = 5.0  # s on average between two freezes of a slow member
LOSSY, LOSSY_SECONDS = 200, 600.0
ROUGH = 30  # members on the rough networks, for so many node-hours each:
ROUGH_HOURS = {"0.2": 100.0, "freezing": 100.0, "late": 50.0}


@dataclass(frozen=True)
class Late(Delay):
    """Whatever reaches these members is handled late."""

    late: tuple[NodeId, ...] = ()

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Only what reaches them."""
        return target in self.late


def false_removals(size: int, seconds: float, seed: int, network: str) -> int:
    """How many members that live were removed, by anybody, on a bad network."""
    zone = Zone(size, seed)
    zone.settle()
    removed: set[tuple[NodeId, int]] = set()

    def failed(event: MemberFailed) -> None:
        removed.add((event.member, zone.membership(event.member).incarnation))

    for name in zone.names:
        zone.sim.host(name).listen(MemberFailed, failed)
    slow = tuple(zone.names[::SLOW_ONE_IN])
    if network == "freezing":
        for name in slow:
            freeze_again(zone, name)
    elif network == "late":
        zone.sim.faults.add(Late(0.0, SLOW_BY, late=slow))
    else:
        zone.sim.faults.add(Loss(float(network)))
    zone.sim.run_for(seconds)
    return len(removed)


def freeze_again(zone: Zone, name: NodeId) -> None:
    """Freeze a member after a while, and once more when it goes on."""
    sim = zone.sim

    def freeze() -> None:
        sim.pause(name)
        sim.at(sim.now + SLOW_BY, thaw)

    def thaw() -> None:
        sim.resume(name)
        freeze_again(zone, name)

    sim.at(sim.now + zone.rng.expovariate(1 / PAUSE_BETWEEN), freeze)


def report_mistakes(report: Report, options: Options) -> None:
    """Count removals of the living on four bad networks."""
    progress = Progress("membership, mistakes", 4)
    size, seconds = (10, 20.0) if options.quick else (LOSSY, LOSSY_SECONDS)
    progress.step(f"5 % loss, n = {size}")
    removed = measure(options, false_removals, size, seconds, 1, "0.05")
    name = f"false removals, 5 % loss, {seconds / 60:g} min, n = {size}"
    report.add(name, "removals", [removed])
    report.require(name, removed, "removals", "at most", 0)
    size = 10 if options.quick else ROUGH
    for network, case in (
        ("0.2", "20 % loss"),
        ("freezing", f"10 % freeze for {SLOW_BY:g} s at random"),
        ("late", f"10 % handle each frame up to {SLOW_BY:g} s late"),
    ):
        hours = 0.05 if options.quick else ROUGH_HOURS[network]
        progress.step(f"{case}, n = {size}")
        removed = measure(options, false_removals, size, hours * 3600 / size, 1, network)
        rate = removed * 100 / hours
        name = f"false removals, {case}, n = {size}, {hours:g} node-hours"
        report.add(name, "1/(100 node-hours)", [rate])
        report.require(name, rate, "1/(100 node-hours)", "at most", 1)
