"""Membership on real sockets: a process for each peer on loopback, with keys, all started at once.

Each process tells the events of its zone as JSON lines with the machine's monotonic clock, so that
moments in two processes can be compared. The figures are about what people wait for: complete views
after the start, the removal of who was killed or frozen, and what an idle zone costs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path

from bench.peer_processes import PeerProcess, Processes, cut_connections
from bench.progress import Progress
from bench.report import Options, Report, machine

NAME = "membership-real"

SIZES = (10, 50, 100)
QUICK_SIZES = (5,)
SEEDS = 3  # peers that all others are told to meet
AT_ONCE = 10  # killed at one moment
SETTLING = 15.0  # s; links of the start that nobody needs are closed by then
IDLE = 20.0  # s, measured
BUSY = 300.0  # s with both cores busy
RECONNECTS = 5.0  # s; as long as a removal after a closed connection takes, and more


def run(options: Options) -> Report:
    """Measure all sizes; the largest one also when peers fail, idle and under load."""
    report = Report(NAME, machine())
    sizes = QUICK_SIZES if options.quick else SIZES
    rounds = 1 if options.quick else options.repeats
    progress = Progress(NAME, len(sizes) * rounds)
    formations: dict[int, list[float]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        for number in range(rounds):
            for size in sizes:
                progress.step(f"{size} peers, round {number + 1}")
                last = number == rounds - 1 and size == sizes[-1]
                with Processes(Path(folder) / f"{size}-{number}", size, SEEDS) as zone:
                    zone.start()
                    formations[size].append(formation(zone))
                    if last:
                        failures(report, zone)
                        idle(report, zone, 3.0 if options.quick else IDLE)
                        busy(report, zone, 5.0 if options.quick else BUSY)
    for size in sizes:
        name = f"complete views after the last is ready, n = {size}"
        case = report.add(name, "s", formations[size])
        if size == sizes[-1]:
            report.require(name, case.median, "s", "at most", 3)
    return report


def formation(zone: Processes) -> float:
    """Seconds from the last process being ready until every view is complete."""
    zone.wait(lambda: all(len(peer.view) == zone.size - 1 for peer in zone.alive()), "all views")
    complete = max(peer.joined_last for peer in zone.alive())
    ready = max(peer.ready for peer in zone.alive())
    return max(0.0, complete - ready)


# -- who fails ------------------------------------------------------------------------------------


def failures(report: Report, zone: Processes) -> None:
    """Kill one, kill several, freeze one, and break the links of one that goes on."""
    several = min(AT_ONCE, zone.size // 4 or 1)
    cases: tuple[tuple[str, int, int, float], ...] = (
        ("SIGKILL of one: removed everywhere", signal.SIGKILL, 1, 1.0),
        (f"SIGKILL of {several} at once: removed everywhere", signal.SIGKILL, several, 1.0),
        ("SIGSTOP of one: removed everywhere", signal.SIGSTOP, 1, 6.0),
    )
    for name, number, count, bar in cases:
        victims = zone.alive()[-count:]  # not the seeds, which come first
        took = removal(zone, victims, number)
        report.add(name, "s", took)
        report.require(name, max(took), "s", "at most", bar)
    removed = reconnecting(zone)
    report.require("removed though it only reconnects", removed, "peers", "at most", 0)
    false = zone.false_removals()
    report.require("others removed meanwhile", false, "removals", "at most", 0)


def removal(zone: Processes, victims: list[PeerProcess], number: int) -> list[float]:
    """Seconds from the signal until each survivor has removed each victim: the last, by victim."""
    began = {}
    for victim in victims:
        began[victim.name] = time.monotonic()
        os.kill(victim.process.pid, number)
        zone.expected_gone[victim.name] = None
    survivors = zone.alive()

    def gone() -> bool:
        return all(name in peer.failed for peer in survivors for name in began)

    zone.wait(gone, "the removal of who failed")
    for victim in victims:
        victim.kill()
    return [max(p.failed[name] for p in survivors) - at for name, at in began.items()]


def reconnecting(zone: Processes) -> int:
    """Cut all connections of one peer, which goes on; returns how many removed it."""
    victim = zone.alive()[-1]
    if not cut_connections(victim.process.pid):
        raise RuntimeError(f"{victim.name} had no connection to cut")
    zone.watch(RECONNECTS)
    return sum(victim.name in peer.removals for peer in zone.alive())


# -- cost -----------------------------------------------------------------------------------------


def idle(report: Report, zone: Processes, seconds: float) -> None:
    """What a peer costs when nothing happens."""
    zone.watch(SETTLING if seconds == IDLE else 1.0)
    before = zone.usage()
    began = time.monotonic()
    zone.watch(seconds)
    passed = time.monotonic() - began
    after = zone.usage()
    cpu = [(after[name].cpu - before[name].cpu) / passed * 100 for name in before]
    sent = [(after[name].sent - before[name].sent) / passed for name in before]
    size = len(before)
    average_cpu, average_sent = sum(cpu) / size, sum(sent) / size
    report.add(f"idle CPU of a peer, n = {size}", "% of a core", cpu)
    report.add(f"idle bytes sent by a peer, n = {size}", "bytes/s", sent)
    report.require("idle CPU of a peer, mean", average_cpu, "% of a core", "at most", 0.5)
    report.require("idle bytes sent by a peer, mean", average_sent, "bytes/s", "at most", 1024)
    memory = [usage.memory / 2**20 for usage in after.values()]
    report.add(f"memory of a peer, n = {size}", "MiB", memory)


def busy(report: Report, zone: Processes, seconds: float) -> None:
    """Removals while both cores are taken by somebody else."""
    before = zone.false_removals()
    with Hogs(os.cpu_count() or 1):
        zone.watch(seconds)
    removed = zone.false_removals() - before
    name = f"false removals in {seconds:g} s with all cores busy"
    report.add(name, "removals", [removed])
    report.require(name, removed, "removals", "at most", 0)


class Hogs(AbstractContextManager["Hogs"]):
    """Processes that do nothing but take time."""

    def __init__(self, count: int) -> None:
        command = [sys.executable, "-c", "while True: pass"]
        self._processes = [subprocess.Popen(command) for _ in range(count)]

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
