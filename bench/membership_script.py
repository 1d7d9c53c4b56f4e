"""What is done to real peers, whoever wrote them: left alone, killed and frozen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from statistics import mean
from typing import NamedTuple

from bench.own_network import bytes_on_loopback
from bench.peer_processes import PeerProcess, Processes
from bench.report import Report

AT_ONCE = 10  # killed at one moment
SETTLING, IDLE = 15.0, 20.0  # s; links of the start that nobody needs are closed; then measured
QUICK_SETTLING, QUICK_IDLE = 1.0, 3.0


def formation(zone: Processes) -> float:
    """Seconds from the last process being ready until every view is complete."""
    zone.wait(lambda: all(len(peer.view) == zone.size - 1 for peer in zone.alive()), "all views")
    complete = max(peer.joined_last for peer in zone.alive())
    ready = max(peer.ready for peer in zone.alive())
    return max(0.0, complete - ready)


def add_failures(report: Report, zone: Processes, whose: str = "") -> dict[str, float]:
    """Kill one, kill several, freeze one: the slowest removal of each, by the case's name."""
    several = min(AT_ONCE, zone.size // 4 or 1)
    slowest = {}
    for what, number, count in (
        ("SIGKILL of one", signal.SIGKILL, 1),
        (f"SIGKILL of {several} at once", signal.SIGKILL, several),
        ("SIGSTOP of one", signal.SIGSTOP, 1),
    ):
        victims = zone.alive()[-count:]  # not the seeds, which come first
        took = removal(zone, victims, number)
        name = f"{whose}{what}: removed everywhere, n = {zone.size}"
        report.add(name, "s", took)
        slowest[name] = max(took)
    return slowest


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


def add_idle(
    report: Report,
    zone: Processes,
    *,
    quick: bool,
    whose: str = "",
    sent_by: Callable[[str], int] | None = None,
) -> Idle:
    """What a peer costs when nothing happens; `sent_by` reads a peer's own count of bytes."""
    zone.watch(QUICK_SETTLING if quick else SETTLING)
    peers = zone.alive()
    sent_before = _sent(peers, sent_by)  # asking costs CPU: so outside of what is measured
    before = Reading(peers)
    zone.watch(QUICK_IDLE if quick else IDLE)
    after = Reading(peers)
    sent_after = _sent(peers, sent_by)
    seconds = after.taken - before.taken
    cpu = [
        (late.cpu - early.cpu) / seconds * 100
        for early, late in zip(before.usage, after.usage, strict=True)
    ]
    sent = [
        (late - early) / (asked_late - asked_early)
        for (asked_early, early), (asked_late, late) in zip(sent_before, sent_after, strict=True)
    ]
    passed = (after.passed - before.passed) / seconds / len(peers)
    case = f"n = {zone.size}"
    report.add(f"{whose}idle CPU of a peer, {case}", "% of a core", cpu)
    report.add(f"{whose}idle bytes sent by a peer, with all headers, {case}", "bytes/s", [passed])
    if sent:
        report.add(f"{whose}idle bytes of frames sent by a peer, {case}", "bytes/s", sent)
    memory = [usage.memory / 2**20 for usage in after.usage]
    report.add(f"{whose}memory of a peer, {case}", "MiB", memory)
    return Idle(mean(cpu), passed, mean(sent or [0.0]))


class Idle(NamedTuple):
    """The mean of all peers."""

    cpu: float  # % of a core
    passed: float  # bytes in a second, with all headers
    sent: float  # bytes of frames in a second; 0 where nobody counts


class Reading:
    """What peers took until one moment."""

    def __init__(self, peers: list[PeerProcess]) -> None:
        self.usage = [peer.usage() for peer in peers]
        self.passed = bytes_on_loopback()
        self.taken = time.monotonic()


def _sent(
    peers: list[PeerProcess], sent_by: Callable[[str], int] | None
) -> list[tuple[float, int]]:
    """When each peer was asked, and how many bytes it had sent; nothing where nobody counts."""
    return [(time.monotonic(), sent_by(peer.name)) for peer in peers] if sent_by else []
