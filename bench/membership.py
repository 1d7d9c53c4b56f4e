"""What the membership of a zone costs, how fast it learns, and whom it removes by mistake.

In the simulator, with the settings of a LAN (0.5 to 1.5 ms one way). All members of a zone start
at once and know three of them. Bytes are those of the encoded frames that arrive, without the
headers of ZeroMQ and TCP. CPU is compared with as many nodes in zones of a tenth of the size: more
nodes alone, whatever they do, make a simulation slower than a processor's caches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from time import process_time
from typing import Any, NamedTuple, TypeVar

import msgspec

from bench.processes import measure_alone
from bench.report import Options, Report, machine
from overlay.host import Host
from overlay.ids import NodeId
from overlay.sim import Delay, Loss, Simulator
from protocols.membership.config import MembershipSettings
from protocols.membership.events import MemberFailed, MemberSuspected
from protocols.membership.machine import Membership

T = TypeVar("T")

NAME = "membership"

LAN = MembershipSettings()
ZONE = "zone"
SEEDS = 3
SIZES = (10, 100, 1000)
SETTLING = 10.0  # s; the last news of the start is passed on
IDLE = 20.0  # s of the world, measured
PATIENCE = 120.0  # s of the world; nothing measured here takes as long
WATCHED = 100  # size of the zone in which detection is measured
VICTIMS = 100  # one after the other
SLOW_BY = 2.0  # s
SLOW_ONE_IN = 10
PAUSE_BETWEEN = 5.0  # s on average between two freezes of a slow member
LOSSY, LOSSY_SECONDS = 200, 600.0
ROUGH = 30  # members on the rough networks, for so many node-hours each:
ROUGH_HOURS = {"0.2": 100.0, "freezing": 100.0, "late": 50.0}


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


# -- cost -----------------------------------------------------------------------------------------


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


def cpu_in_small_zones(size: int, zones: int, seed: int, seconds: float) -> float:
    """CPU seconds per second of the world for as many nodes, in smaller zones."""
    zone = Zone(size, seed, zones=zones)
    zone.settle()
    return _cpu(zone.sim, seconds)


def _cpu(sim: Simulator, seconds: float) -> float:
    began = process_time()
    sim.run_for(seconds)
    return (process_time() - began) / seconds


# -- detection ------------------------------------------------------------------------------------


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


# -- mistakes -------------------------------------------------------------------------------------


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


# -- the report -----------------------------------------------------------------------------------


def measure(options: Options, case: Callable[..., T], *args: Any) -> T:
    """Measure in a process of its own, unless nothing depends on the figures."""
    return case(*args) if options.quick else measure_alone(case, *args)


def run(options: Options) -> Report:
    """Measure everything, each case in a process of its own."""
    report = Report(NAME, machine())
    _report_costs(report, options)
    _report_detection(report, options)
    _report_mistakes(report, options)
    return report


def _report_costs(report: Report, options: Options) -> None:
    sizes, idle = ((5, 10, 20), 2.0) if options.quick else (SIZES, IDLE)
    costs: dict[int, list[Cost]] = {
        size: [measure(options, cost, size, seed, idle) for seed in range(options.repeats)]
        for size in sizes
    }
    for size, repeats in costs.items():
        case = f"n = {size}"
        formation = [one.formation for one in repeats]
        report.add(f"all views complete, {case}", "s", formation)
        rounds = [seconds / LAN.gossip_period for seconds in formation]
        report.add(f"all views complete, {case}, rounds of gossip", "rounds", rounds)
        report.add(
            f"received while joining, {case}", "bytes/node", [c.formation_bytes for c in repeats]
        )
        report.add(f"messages, idle, {case}", "1/node/s", [c.messages for c in repeats])
        report.add(f"sent, idle, {case}", "bytes/node/s", [c.sent for c in repeats])
        report.add(f"CPU, idle, {case}", "s/s", [c.cpu for c in repeats])
    _, middle, large = sizes
    for what, unit in (("messages", "1/node/s"), ("sent", "bytes/node/s")):
        small_one, large_one = (report.results[f"{what}, idle, n = {n}"] for n in (middle, large))
        name = f"{what} ({unit}), n = {large} against n = {middle}"
        report.require(name, large_one.median / small_one.median, "×", "at most", 1.5)
    split = [
        measure(options, cpu_in_small_zones, large, large // middle, seed, idle)
        for seed in range(options.repeats)
    ]
    case = f"CPU, idle, n = {large} in zones of {middle}"
    ratio = report.results[f"CPU, idle, n = {large}"].median / report.add(case, "s/s", split).median
    name = f"CPU per node, one zone of {large} against zones of {middle}"
    report.require(name, ratio, "×", "at most", 1.5)


def _report_detection(report: Report, options: Options) -> None:
    size, victims = (10, 3) if options.quick else (WATCHED, VICTIMS)
    for frozen in (True, False):
        found = measure(options, _detection, size, victims, frozen)
        how = "frozen" if frozen else "killed"
        report.add(f"{how}: first suspicion, n = {size}", "s", found.suspected)
        report.add(f"{how}: removed everywhere, n = {size}", "s", found.removed)
        if frozen:  # nothing but silence tells: the harder case
            half = percentile(found.suspected, 0.5)
            report.require("frozen: first suspicion, p50", half, "s", "at most", 1.5)
            report.require(
                "frozen: removed everywhere, p99",
                percentile(found.removed, 0.99),
                "s",
                "at most",
                8,
            )
        else:
            report.require(
                "killed: removed everywhere, p99",
                percentile(found.removed, 0.99),
                "s",
                "at most",
                1,
            )
    for size in (10, 20) if options.quick else (10, 1000):
        found = measure(options, _detection, size, 3, False)
        report.add(f"killed: removed everywhere, n = {size}", "s", found.removed)


def _detection(size: int, victims: int, frozen: bool) -> Detection:
    return detection(size, victims, 1, frozen=frozen)


def _report_mistakes(report: Report, options: Options) -> None:
    size, seconds = (10, 20.0) if options.quick else (LOSSY, LOSSY_SECONDS)
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
        removed = measure(options, false_removals, size, hours * 3600 / size, 1, network)
        rate = removed * 100 / hours
        name = f"false removals, {case}, n = {size}, {hours:g} node-hours"
        report.add(name, "1/(100 node-hours)", [rate])
        report.require(name, rate, "1/(100 node-hours)", "at most", 1)
