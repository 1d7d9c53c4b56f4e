"""How well members agree on the time: in the simulator, and in processes with shifted clocks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.discovery_clock_real import real_errors
from bench.progress import Progress
from bench.report import Options, Report
from overlay.host import Host
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.security.authority import Authority
from overlay.security.datagram import DatagramSigner
from overlay.security.rights import Rights
from overlay.sim import Delay, Exponential, NetworkModel, Simulator
from overlay.wire.datagrams import write_datagram
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.timesync import TimeSettings, TimeSync
from protocols.timesync.filtering import ClockFilter, Sample

ZONE = "zone"
SEEDS = 3
OFFSET, DRIFT = 0.5, 50e-6  # s and s/s, either way
BASE, JITTER = 0.010, 0.005  # s each way
NETWORK = NetworkModel(latency=Exponential(JITTER, BASE))
HEADERS = 28  # bytes of IPv4 and UDP
SETTLED = 1100.0  # s: polls have reached their longest pause
WATCHED = 300.0
ASYMMETRY = 0.040  # s more in one direction


class Settling(NamedTuple):
    """One zone from its start to its settled state."""

    after_5: list[float]  # errors against the root, s
    after_60: list[float]
    settled: list[float]
    sent: list[float]  # bytes/s of each node, settled


class Meter:
    """Counts datagrams as they would be on the wire: signed, with certificate and headers."""

    def __init__(self, envelope: int) -> None:
        self.bytes: dict[NodeId, int] = {}
        self._envelope = envelope
        self._limits = Limits()

    def __call__(self, step: tuple[float, NodeId, str, Any]) -> None:
        """Count one step, if it is a datagram."""
        _, _, kind, detail = step
        if kind == "datagram":
            source, msg = detail
            size = self._size(msg) + self._envelope
            self.bytes[source] = self.bytes.get(source, 0) + size

    def _size(self, msg: Message) -> int:
        return len(write_datagram("", msg, self._limits))


def envelope_bytes() -> int:
    """What signature, certificate and headers add to a body, measured with a real certificate."""
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        authority = Authority.create(Path(folder), "bench")
        signer = DatagramSigner(authority.issue("member-1", Rights(zones=(ZONE,))))
    return len(signer.sign(b"", 0.0, with_certificate=True)) + HEADERS


class Clocks:
    """Members of one zone in a simulator, each with a wrong clock."""

    def __init__(self, size: int, seed: int) -> None:
        self.sim = Simulator(seed, NETWORK, check_every=0)
        self.rng = Random(seed)
        self.names = [f"n{number}" for number in range(size)]

    def start(self) -> None:
        """All at once."""
        for name in self.names:
            offset = self.rng.uniform(-OFFSET, OFFSET)
            drift = self.rng.uniform(-DRIFT, DRIFT)
            self.sim.add_node(name, self._add, offset=offset, drift=drift)

    def _add(self, host: Host) -> None:
        seeds = [name for name in self.names[:SEEDS] if name != host.me]
        base = host.add(Membership, MembershipSettings(), ZONE, zone=ZONE, contacts=seeds)
        host.add(TimeSync, TimeSettings(), members=base.view, where=host.surroundings.udp_of)

    def looks(self, until: float, every: float) -> Iterator[None]:
        """Run to that time of the world, and stop each so often."""
        while self.sim.now < until:
            self.sim.run_for(min(every, until - self.sim.now))
            yield

    def errors(self) -> list[tuple[float, float]]:
        """Of each member that is not the root: how far it is off, and what it states."""
        times, standings = {}, {}
        for name in self.names:
            local = self.sim.clock_of(self.sim.node(name))
            machine = self.sim.protocol(name, TimeSync)
            times[name], standings[name] = machine.overlay_time(local), machine.standing(local)
        return [
            (abs(times[name] - times[standing.root]), standing.error)
            for name, standing in standings.items()
            if standing.root != name
        ]


def settling(size: int, seed: int, envelope: int, *, quick: bool) -> Settling:
    """Start a zone, and measure it after 5 s, after 60 s, and when polls are rare."""
    clocks = Clocks(size, seed)
    clocks.start()
    clocks.sim.run_for(5.0)
    after_5 = [error for _ in clocks.looks(15.0, 0.5) for error, _ in clocks.errors()]
    clocks.sim.run_for(60.0 - clocks.sim.now)
    after_60 = [error for _ in clocks.looks(300.0, 2.0) for error, _ in clocks.errors()]
    start, watched = (300.0, 20.0) if quick else (SETTLED, WATCHED)
    clocks.sim.run_for(start - clocks.sim.now)
    clocks.sim.reader = meter = Meter(envelope)
    settled = [error for _ in clocks.looks(start + watched, 5.0) for error, _ in clocks.errors()]
    sent = [meter.bytes.get(name, 0) / watched for name in clocks.names]
    return Settling(after_5, after_60, settled, sent)


def asymmetric(size: int, seed: int) -> tuple[int, int, float]:
    """A constant asymmetry at half of the members: how often it is inside, and how far they err."""
    clocks = Clocks(size, seed)
    for name in clocks.names[::2]:
        clocks.sim.faults.add(_Late(ASYMMETRY, nodes=(name,)))
    clocks.start()
    clocks.sim.run_for(5.0)
    found = [pair for _ in clocks.looks(120.0, 0.5) for pair in clocks.errors()]
    inside = sum(error <= stated for error, stated in found)
    return inside, len(found), max(error for error, _ in found)


class _Late(Delay):
    """What these nodes send is late; what they hear is not."""

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        return source in (self.nodes or ()) and datagram


def against_ntp(runs: int) -> tuple[float, float]:
    """p99 of our filter after 60 s, and of the least delay of the last eight, on equal samples."""
    ours, plain = [], []
    for seed in range(runs):
        rng = Random(seed)
        clock = ClockFilter(64, 3000.0)
        last: list[Sample] = []
        drift = rng.uniform(-2 * DRIFT, 2 * DRIFT)
        times = [*(0.25 * n for n in range(16)), *range(4, 20), *range(20, 60, 2)]
        for at in times:
            there, back = (BASE + rng.expovariate(1 / JITTER) for _ in range(2))
            sample = Sample(at, drift * at + (there - back) / 2, there + back)
            clock.add(sample)
            last = [*last, sample][-8:]
        least = min(last, key=lambda sample: sample.delay)
        ours.append(abs(clock.estimate(60.0).offset - drift * 60))
        plain.append(abs(least.offset - drift * 60))
    return percentile(ours), percentile(plain)


def percentile(values: list[float], share: float = 0.99) -> float:
    """The value that so many are not above."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report_clock(report: Report, options: Options) -> None:
    """Simulate zones of two sizes, one with asymmetric delays, and run real processes."""
    sizes = (4,) if options.quick else (16, 100)
    progress = Progress("discovery, clock", (len(sizes) + 1) * options.repeats + 2)
    envelope = envelope_bytes()
    report.add("clock: bytes that sign one datagram, with headers", "bytes", [envelope])
    for size in sizes:
        runs = []
        for seed in range(options.repeats):
            progress.step(f"{size} members, seed {seed}")
            runs.append(settling(size, seed, envelope, quick=options.quick))
        _add_settling(report, size, runs)
    inside = total = 0
    worst = []
    for seed in range(options.repeats):
        progress.step(f"asymmetric delays, seed {seed}")
        good, all_, most = asymmetric(sizes[0], seed)
        inside, total = inside + good, total + all_
        worst.append(1e3 * most)
    report.add(f"clock: largest error, {1e3 * ASYMMETRY:.0f} ms asymmetry", "ms", worst)
    name = "clock: asymmetry inside of the stated error"
    report.require(name, 100 * inside / total, "% of samples", "at least", 100)
    progress.step("filters")
    ours, plain = against_ntp(50 if options.quick else 1000)
    report.add("clock: p99 after 60 s, our filter alone", "ms", [1e3 * ours])
    report.add("clock: p99 after 60 s, least delay of eight, same samples", "ms", [1e3 * plain])
    report.add("clock: our filter against least delay of eight", "×", [ours / plain])
    progress.step("processes")
    real = [1e3 * error for error in real_errors(3 if options.quick else 4)]
    report.add("clock: error of real peers on loopback, clocks shifted", "ms", real)
    report.require("clock: largest error of real peers", max(real), "ms", "at most", 1.0)


def _add_settling(report: Report, size: int, runs: list[Settling]) -> None:
    for what, bar in (("after_5", 5.0), ("after_60", 2.0), ("settled", 2.0)):
        errors = [1e3 * error for run in runs for error in getattr(run, what)]
        each = [1e3 * percentile(getattr(run, what)) for run in runs]
        shown = what.replace("_", " ")
        unit = f"{shown} s" if what != "settled" else shown
        report.add(f"clock: |error| p99, {unit}, n = {size}", "ms", each)
        report.add(f"clock: |error| p50, {unit}, n = {size}", "ms", [percentile(errors, 0.5)])
        name = f"clock: |error| p99 of all runs, {unit}, n = {size}"
        report.require(name, percentile(errors), "ms", "at most", bar)
    mean = [sum(run.sent) / len(run.sent) for run in runs]
    report.add(f"clock: sent per node, settled, n = {size}", "bytes/s", mean)
    most = max(max(run.sent) for run in runs)
    name = f"clock: sent by the busiest node, settled, n = {size}"
    report.require(name, most, "bytes/s", "at most", 200)
