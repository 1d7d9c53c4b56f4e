"""Membership on real sockets: a process for each peer on loopback, with keys, all started at once.

Each process tells the events of its zone as JSON lines with the machine's monotonic clock, so that
moments in two processes can be compared. The figures are about what people wait for: complete views
after the start, what an idle zone costs, and the removal of who was killed or frozen. All of it
happens in a network of its own, where the system allows it: then the bytes with all headers are
those of these peers alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.connections import cut_connections
from bench.membership_peers import add_peers
from bench.membership_script import add_failures, add_idle, formation
from bench.overlay_peers import OverlayPeers
from bench.own_network import enter
from bench.peer_processes import Processes
from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from nodes.settings import SET_VARIABLE

SMALL = (10, 50)
LARGE = 100
QUICK_SIZE = 5
SEEDS = 3  # peers that all others are told to meet
BUSY = 300.0  # s with both cores busy
RECONNECTS = 5.0  # s; as long as a removal after a closed connection takes, and more
WITHIN = {"SIGKILL": 1.0, "SIGSTOP": 6.0}  # s


def report_small(report: Report, options: Options) -> None:
    """Measure small zones, without bars."""
    if not options.quick:
        report.take(measure_alone(_measure, options, SMALL))


def report_real(report: Report, options: Options) -> None:
    """Measure the zone that has to hold the bars."""
    report.take(measure_alone(_measure, options, (QUICK_SIZE if options.quick else LARGE,)))


def report_busy(report: Report, options: Options) -> None:
    """The same zone, while somebody else takes all cores; other load only makes it harder."""
    report.take(measure_alone(_measure_busy, options))


def _enter(report: Report) -> str:
    """Move this process into a network of its own; why not, if that cannot be had."""
    obstacle = enter()
    if obstacle:
        report.notes.append(f"bytes with all headers are of the whole machine: {obstacle}")
    else:
        os.environ.pop(SET_VARIABLE, None)  # nobody else is here: beacons are on, as for everybody
    return obstacle


def _measure(options: Options, sizes: Sequence[int]) -> Report:
    """The same in a process of its own, which moves into a network of its own."""
    report = Report("membership", {})
    obstacle = _enter(report)
    judge = sizes != SMALL
    rounds = 1 if options.quick else options.repeats
    progress = Progress("membership, real", len(sizes) * rounds)
    formations: dict[int, list[float]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        for number in range(rounds):
            for size in sizes:
                progress.step(f"{size} peers, round {number + 1}")
                peers = OverlayPeers()
                with Processes(peers, Path(folder) / f"{size}-{number}", size, SEEDS) as zone:
                    zone.start()
                    formations[size].append(formation(zone))
                    if number == rounds - 1:
                        _look_closer(report, zone, peers, options, judge=judge)
        if options.peers and obstacle:
            report.notes.append(f"{', '.join(options.peers)} are skipped: {obstacle}")
        else:
            add_peers(report, options, Path(folder), sizes, SEEDS)
    for size in sizes:
        name = f"complete views after the last is ready, n = {size}"
        case = report.add(name, "s", formations[size])
        if judge:
            report.require(name, case.median, "s", "at most", 3)
    return report


def _measure_busy(options: Options) -> Report:
    report = Report("membership", {})
    _enter(report)
    size = QUICK_SIZE if options.quick else LARGE
    progress = Progress("membership, busy", 1)
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        progress.step(f"{size} peers")
        with Processes(OverlayPeers(), Path(folder) / "busy", size, SEEDS) as zone:
            zone.start()
            formation(zone)
            busy(report, zone, 5.0 if options.quick else BUSY)
    return report


def _look_closer(
    report: Report, zone: Processes, peers: OverlayPeers, options: Options, *, judge: bool
) -> None:
    """The cost of an idle zone, and failures; with bars, where they are to hold."""
    idle = add_idle(report, zone, quick=options.quick, sent_by=peers.bytes_sent)
    failures = add_failures(report, zone)
    if not judge:
        return
    report.require("idle CPU of a peer, mean", idle.cpu, "% of a core", "at most", 0.5)
    report.require("idle bytes of frames sent by a peer, mean", idle.sent, "B/s", "at most", 1024)
    name = "idle bytes sent by a peer, with all headers, mean"
    report.require(name, idle.passed, "B/s", "at most", 1024)
    for name, slowest in failures.items():
        report.require(name, slowest, "s", "at most", WITHIN[name.split()[0]])
    removed = reconnecting(zone)
    report.require("removed though it only reconnects", removed, "peers", "at most", 0)
    report.require("others removed meanwhile", zone.false_removals(), "removals", "at most", 0)


def reconnecting(zone: Processes) -> int:
    """Cut all connections of one peer, which goes on; returns how many removed it."""
    victim = zone.alive()[-1]
    if not cut_connections(victim.process.pid):
        raise RuntimeError(f"{victim.name} had no connection to cut")
    zone.watch(RECONNECTS)
    return sum(victim.name in peer.removals for peer in zone.alive())


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
