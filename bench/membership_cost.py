"""What an idle zone costs in the simulator, and how soon all know all: flat in n, and as log n."""

from __future__ import annotations

from itertools import pairwise
from math import log
from time import process_time
from typing import Any, NamedTuple

import msgspec

from bench.membership_zone import LAN, SETTLING, Zone, measure
from bench.progress import Progress
from bench.report import Options, Report
from overlay.ids import NodeId
from overlay.sim import Simulator

SIZES = (10, 100, 1000)
IDLE = 20.0  # s of the world, measured
FORMATIONS = 9  # seeds; the last view to be complete is a matter of chance


class Cost(NamedTuple):
    """What one size of zone took."""

    formation: float  # s
    formation_bytes: float  # per node
    messages: float  # per node and second, idle
    sent: float  # bytes per node and second, idle
    cpu: float  # of the idle zone, s per second of the world


class Meter:
    """Reads the frames that arrive."""

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self._encode = msgspec.msgpack.Encoder().encode

    def __call__(self, step: tuple[float, NodeId, str, Any]) -> None:
        """Count one step, if it is a frame."""
        _, _, kind, detail = step
        if kind == "frame":
            _, sections = detail
            self.bytes += len(self._encode(sections))
            self.messages += sum(len(batch) for batch in sections[1::2])


def cost(size: int, seed: int, seconds: float) -> Cost:
    """Form a zone of that size, and watch it do nothing."""
    zone = Zone(size, seed)
    zone.sim.reader = forming = Meter()
    formation = zone.form()
    zone.sim.reader = None
    zone.sim.run_for(SETTLING)
    cpu = _cpu(zone.sim, seconds)
    zone.sim.reader = idle = Meter()
    zone.sim.run_for(seconds)
    share = size * seconds
    return Cost(formation, forming.bytes / size, idle.messages / share, idle.bytes / share, cpu)


def formation(size: int, seed: int) -> float:
    """Seconds until all know all."""
    return Zone(size, seed).form()


def cpu_in_small_zones(size: int, zones: int, seed: int, seconds: float) -> float:
    """CPU seconds per second of the world for as many nodes, in smaller zones."""
    zone = Zone(size, seed, zones=zones)
    zone.settle()
    return _cpu(zone.sim, seconds)


def _cpu(sim: Simulator, seconds: float) -> float:
    began = process_time()
    sim.run_for(seconds)
    return (process_time() - began) / seconds


def report_cost(report: Report, options: Options) -> None:
    """Measure all sizes, then compare the largest with the one before."""
    sizes, idle = ((5, 10, 20), 2.0) if options.quick else (SIZES, IDLE)
    progress = Progress("membership, cost", (len(sizes) + 1) * options.repeats)
    costs: dict[int, list[Cost]] = {size: [] for size in sizes}
    for seed in range(options.repeats):
        for size in sizes:
            progress.step(f"{size} members, seed {seed}")
            costs[size].append(measure(options, cost, size, seed, idle))
    for size, repeats in costs.items():
        _add_costs(report, size, repeats)
    _, middle, large = sizes
    split = []
    for seed in range(options.repeats):
        progress.step(f"{large} members in zones of {middle}, seed {seed}")
        split.append(measure(options, cpu_in_small_zones, large, large // middle, seed, idle))
    _compare_convergence(report, sizes, options)
    _compare_traffic(report, middle, large)
    _compare_cpu(report, middle, large, split)


def _add_costs(report: Report, size: int, repeats: list[Cost]) -> None:
    case = f"n = {size}"
    formation = [one.formation for one in repeats]
    report.add(f"all views complete, {case}", "s", formation)
    rounds = [seconds / LAN.gossip_period for seconds in formation]
    report.add(f"all views complete, {case}, rounds of gossip", "rounds", rounds)
    joining = [one.formation_bytes for one in repeats]
    report.add(f"received while joining, {case}", "bytes/node", joining)
    report.add(f"messages, idle, {case}", "1/node/s", [one.messages for one in repeats])
    report.add(f"sent, idle, {case}", "bytes/node/s", [one.sent for one in repeats])
    report.add(f"CPU, idle, {case}", "s/s", [one.cpu for one in repeats])


def _compare_convergence(report: Report, sizes: tuple[int, int, int], options: Options) -> None:
    """Time that grows as log n takes equal steps for equal factors; a round at least counts."""
    small, middle, large = sizes
    times = []
    for size in sizes:
        seeds = range(2 if options.quick else FORMATIONS)
        all_of_them = [measure(options, formation, size, seed) for seed in seeds]
        case = report.add(f"all views complete, n = {size}, {len(seeds)} seeds", "s", all_of_them)
        times.append(case.median)
    steps = [later - earlier for earlier, later in pairwise(times)]
    per_factor = [
        step / log(to / of) for step, (of, to) in zip(steps, pairwise(sizes), strict=True)
    ]
    least = LAN.gossip_period / log(middle / small)
    name = f"all views complete: what {middle} to {large} adds, against {small} to {middle}"
    report.require(name, per_factor[1] / max(per_factor[0], least), "×", "at most", 1.5)


def _compare_traffic(report: Report, middle: int, large: int) -> None:
    for what, unit in (("messages", "1/node/s"), ("sent", "bytes/node/s")):
        small_one, large_one = (report.results[f"{what}, idle, n = {n}"] for n in (middle, large))
        name = f"{what} ({unit}), n = {large} against n = {middle}"
        report.require(name, large_one.median / small_one.median, "×", "at most", 1.5)


def _compare_cpu(report: Report, middle: int, large: int, split: list[float]) -> None:
    """The bar is on zones of two sizes among as many nodes; the raw ratio stands beside it.

    More nodes alone, whatever they do, make a simulation slower than a processor's caches.
    """
    small_one, large_one = (report.results[f"CPU, idle, n = {n}"] for n in (middle, large))
    raw = (large_one.median / large) / (small_one.median / middle)
    report.add(f"CPU per node, n = {large} against n = {middle}, raw", "×", [raw])
    in_small_zones = report.add(f"CPU, idle, n = {large} in zones of {middle}", "s/s", split)
    ratio = large_one.median / in_small_zones.median
    name = f"CPU per node, one zone of {large} against zones of {middle}"
    report.require(name, ratio, "×", "at most", 1.5)
