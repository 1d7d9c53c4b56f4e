"""How long a zone in the simulator takes to remove a member that was killed or hangs."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bench.membership_zone import LAN, PATIENCE, Zone, measure
from bench.progress import Progress
from bench.report import Options, Report
from overlay.ids import NodeId
from protocols.membership.events import MemberSuspected

WATCHED = 100  # size of the zone in which detection is measured
VICTIMS = 100  # one after the other
OTHER_SIZES, FEW = (10, 1000), 3  # the same for fewer victims in other zones


class Detection(NamedTuple):
    """How long one death after the other took to be seen; seconds, sorted."""

    suspected: list[float]  # by the first
    removed: list[float]  # by the last


def detection(size: int, victims: int, seed: int, *, frozen: bool) -> Detection:
    """Kill members (their links close) or freeze them (they do not), and time the others."""
    zone = Zone(size, seed)
    sim = zone.sim
    suspicions: dict[NodeId, float] = {}

    def suspected(event: MemberSuspected) -> None:
        suspicions.setdefault(event.member, sim.now)

    def listen(name: NodeId) -> None:
        sim.host(name).listen(MemberSuspected, suspected)

    for name in zone.names:
        listen(name)
    zone.settle()
    found = Detection([], [])
    for _ in range(victims):
        victim = zone.rng.choice(zone.names)
        sim.run_for(zone.rng.random() * LAN.probe_period)
        suspicions.clear()
        began = sim.now
        if frozen:
            sim.pause(victim)
        else:
            sim.crash(victim)
        assert sim.run_until(partial(zone.without, victim), PATIENCE), f"{victim} stayed"
        found.suspected.append(suspicions[victim] - began)
        found.removed.append(sim.now - began)
        if frozen:
            sim.resume(victim)
        else:
            sim.restart(victim)
            listen(victim)
        zone.form()
    return Detection(sorted(found.suspected), sorted(found.removed))


def percentile(ordered: list[float], share: float) -> float:
    """The smallest value that this share of all does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report_detection(report: Report, options: Options) -> None:
    """Freeze and kill members of a zone; kill some in a smaller and in a larger one."""
    size, victims = (10, 3) if options.quick else (WATCHED, VICTIMS)
    others = (5, 20) if options.quick else OTHER_SIZES
    progress = Progress("membership, detection", 2 + len(others))
    progress.step(f"{victims} frozen, one after the other, n = {size}")
    frozen = measure(options, _detection, size, victims, True)
    _add_detection(report, "frozen", size, frozen)
    # Nothing but silence tells of them: the harder case.
    half, all_but_one = percentile(frozen.suspected, 0.5), percentile(frozen.removed, 0.99)
    report.require("frozen: first suspicion, p50", half, "s", "at most", 1.5)
    report.require("frozen: removed everywhere, p99", all_but_one, "s", "at most", 8)
    progress.step(f"{victims} killed, one after the other, n = {size}")
    killed = measure(options, _detection, size, victims, False)
    _add_detection(report, "killed", size, killed)
    all_but_one = percentile(killed.removed, 0.99)
    report.require("killed: removed everywhere, p99", all_but_one, "s", "at most", 1)
    for other in others:
        progress.step(f"{FEW} killed, n = {other}")
        _add_detection(report, "killed", other, measure(options, _detection, other, FEW, False))


def _add_detection(report: Report, how: str, size: int, found: Detection) -> None:
    report.add(f"{how}: first suspicion, n = {size}", "s", found.suspected)
    report.add(f"{how}: removed everywhere, n = {size}", "s", found.removed)
    rounds = [seconds / LAN.gossip_period for seconds in found.removed]
    report.add(f"{how}: removed everywhere, n = {size}, rounds of gossip", "rounds", rounds)


def _detection(size: int, victims: int, frozen: bool) -> Detection:
    return detection(size, victims, 1, frozen=frozen)
