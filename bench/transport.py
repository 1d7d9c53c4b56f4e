"""Typed messages between two nodes, beside raw pyzmq doing the same work in the same run.

Each end is a process of its own on tcp loopback. The raw ends send and receive one message per
blocking call, with copying; ours send typed messages one by one through `Effects.send`, the call
that a protocol uses, under a window that the receiver acknowledges. The sides take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Any, NamedTuple

from bench.progress import Progress
from bench.report import Options, Report, machine
from overlay.security.authority import Authority
from overlay.security.rights import Rights

NAME = "transport"

# Messages for each size: about a second of raw PUSH/PULL.
COUNTS = {"100 B": (100, 1_000_000), "1 KiB": (1024, 500_000)}
COUNTS |= {"64 KiB": (65_536, 16_000), "1 MiB": (1 << 20, 1_500)}
RATE = 1_000  # messages/s of the latency runs
LATENCY_SECONDS = 10
LATENCY_BYTES = 100
END_WITHIN = 120  # s: a run that takes longer hangs

BARS = {"100 B": 2.0, "1 KiB": 1.2, "64 KiB": 0.9, "1 MiB": 1.0}
CURVE_BARS = {"100 B": 2.5, "64 KiB": 0.75, "1 MiB": 0.9}
P50_BAR, P99_BAR = 2.2, 3.0


class Side(NamedTuple):
    """One of the things compared."""

    name: str
    options: Mapping[str, Any]


PUSH_PULL = Side("raw PUSH/PULL", {"side": "raw", "pattern": "push-pull"})
DEALER_ROUTER = Side("raw DEALER/ROUTER", {"side": "raw", "pattern": "dealer-router"})
OURS = Side("our nodes", {"side": "ours"})
SIDES = (PUSH_PULL, DEALER_ROUTER, OURS)


class Ends:
    """Starts a receiver, then a sender that is told where, and returns what the receiver found."""

    def __init__(self, keys: Path) -> None:
        self._keys = keys

    def run(self, side: Side, **options: Any) -> dict[str, Any]:
        """Measure once."""
        common = {"keys": str(self._keys), **side.options, **options}
        ends = [self._start(common | {"role": "receiver"})]
        overtime = Timer(END_WITHIN, _kill, (ends,))
        overtime.start()
        try:
            where = _line(ends[0])
            ends.append(self._start(common | {"role": "sender"} | where))
            found = _line(ends[0])
            if any(end.wait() for end in ends):
                raise RuntimeError(f"an end of {side.name} failed: see above")
            return found
        finally:
            overtime.cancel()
            _kill(ends)
            for end in ends:
                end.communicate()

    def _start(self, options: Mapping[str, Any]) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "bench.transport_ends", json.dumps(options)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _kill(ends: list[subprocess.Popen[str]]) -> None:
    for end in ends:
        end.kill()


def _line(end: subprocess.Popen[str]) -> dict[str, Any]:
    assert end.stdout is not None
    line = end.stdout.readline()
    if not line:
        raise RuntimeError(f"an end died or took over {END_WITHIN} s: see above")
    found: dict[str, Any] = json.loads(line)
    return found


def run(options: Options) -> Report:
    """Measure throughput, plain and with CURVE, then latency."""
    report = Report(NAME, machine())
    sizes = {
        label: (size, count // 50 if options.quick else count)
        for label, (size, count) in COUNTS.items()
    }
    seconds = 1 if options.quick else LATENCY_SECONDS
    progress = Progress(NAME, options.repeats * (len(sizes) * 5 + len(SIDES)))
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        keys = Path(folder) / "keys"
        authority = Authority.create(keys, "bench")
        for name in ("sender", "receiver"):
            authority.issue(name, Rights(zones=("*",)), 1).save(keys)
        ends = Ends(keys)
        for curve, sides in ((False, SIDES), (True, (PUSH_PULL, OURS))):
            for label, (size, count) in sizes.items():
                _throughput(report, ends, progress, label, size, count, curve, sides, options)
        _latency(report, ends, progress, seconds, options)
    return report


def _throughput(
    report: Report,
    ends: Ends,
    progress: Progress,
    label: str,
    size: int,
    count: int,
    curve: bool,
    sides: tuple[Side, ...],
    options: Options,
) -> None:
    rates: dict[str, list[float]] = {side.name: [] for side in sides}
    what = f"{label}, CURVE" if curve else label
    for _ in range(options.repeats):
        for side in sides:
            progress.step(f"{what}: {side.name}")
            found = ends.run(side, size=size, count=count, curve=curve, latency=False)
            rates[side.name].append(count / found["seconds"])
    for name, values in rates.items():
        report.add(f"{what}, {name}", "messages/s", values)
    ratios = [a / b for a, b in zip(rates[OURS.name], rates[PUSH_PULL.name], strict=True)]
    case = report.add(f"{what}, ours to raw PUSH/PULL", "×", ratios)
    bar = (CURVE_BARS if curve else BARS).get(label)
    if bar is not None:
        report.require(
            f"{what}: throughput against raw PUSH/PULL", case.median, "×", "at least", bar
        )


def _latency(
    report: Report, ends: Ends, progress: Progress, seconds: int, options: Options
) -> None:
    tails: dict[str, dict[str, list[float]]] = {"p50": {}, "p99": {}}
    for _ in range(options.repeats):
        for side in SIDES:
            progress.step(f"latency: {side.name}")
            found = ends.run(
                side, size=LATENCY_BYTES, count=seconds * RATE, curve=False, latency=True, rate=RATE
            )
            delays = sorted(found["delays"])
            for tail, share in (("p50", 0.50), ("p99", 0.99)):
                at = delays[int(share * (len(delays) - 1))] / 1000
                tails[tail].setdefault(side.name, []).append(at)
    for tail, bar in (("p50", P50_BAR), ("p99", P99_BAR)):
        for name, values in tails[tail].items():
            report.add(f"one-way latency {tail}, {name}", "µs", values)
        # Each figure is small and noisy: a ratio of medians, not a median of ratios.
        ratio = median(tails[tail][OURS.name]) / median(tails[tail][PUSH_PULL.name])
        report.require(f"one-way latency {tail} against raw PUSH/PULL", ratio, "×", "at most", bar)
