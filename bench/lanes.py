"""The two lanes of a link: what bulk costs by its own lane, and how long small messages wait.

The ends are those of the transport benchmark, on tcp loopback. A flood is a sender of 1 MiB
messages that keeps 32 MiB under way on the same link, by its bulk lane or by the only other one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.progress import Progress
from bench.report import Options, Report, machine
from bench.transport import LATENCY_BYTES, RATE, Ends, Side

NAME = "lanes"

COUNTS = {"1 KiB": (1024, 300_000), "64 KiB": (65_536, 16_000), "1 MiB": (1 << 20, 1_500)}
LANES = {"control": False, "bulk": True}
FLOODS: dict[str, dict[str, Any]] = {
    "alone": {},
    "beside a flood by the bulk lane": {"beside": {"bulk": True}},
    "behind a flood by its own lane": {"beside": {"bulk": False}},
}
LATENCY_SECONDS = 4
OURS = Side("our nodes", {"side": "ours"})
BULK_BAR = 0.9  # of the rate by the other lane, for messages that are worth a lane
OVERTAKING_BAR = 0.5  # of the wait behind a flood in the same lane


def run(options: Options) -> Report:
    """Measure throughput by either lane, then latency beside a flood."""
    report = Report(NAME, machine())
    progress = Progress(NAME, options.repeats * (len(COUNTS) * len(LANES) + len(FLOODS)))
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as folder:
        ends = Ends(Path(folder))
        for label, (size, count) in COUNTS.items():
            count = count // 50 if options.quick else count
            _throughput(report, ends, progress, label, size, count, options.repeats)
        _latency(report, ends, progress, 1 if options.quick else LATENCY_SECONDS, options.repeats)
    return report


def _throughput(
    report: Report, ends: Ends, progress: Progress, label: str, size: int, count: int, repeats: int
) -> None:
    rates: dict[str, list[float]] = {lane: [] for lane in LANES}
    for _ in range(repeats):
        for lane, bulk in LANES.items():
            progress.step(f"{label}: {lane} lane")
            found = ends.run(OURS, size=size, count=count, bulk=bulk, curve=False, latency=False)
            rates[lane].append(count / found["seconds"])
    for lane, values in rates.items():
        report.add(f"{label}, {lane} lane", "messages/s", values)
    ratios = [a / b for a, b in zip(rates["bulk"], rates["control"], strict=True)]
    case = report.add(f"{label}, bulk to control lane", "×", ratios)
    if size >= 65_536:
        report.require(f"{label}: bulk lane's throughput", case.median, "×", "at least", BULK_BAR)


def _latency(report: Report, ends: Ends, progress: Progress, seconds: int, repeats: int) -> None:
    medians: dict[str, float] = {}
    tails: dict[str, list[tuple[float, float]]] = {name: [] for name in FLOODS}
    for _ in range(repeats):
        for name, beside in FLOODS.items():
            progress.step(f"latency {name}")
            count = seconds * RATE
            found = ends.run(
                OURS,
                size=LATENCY_BYTES,
                count=count,
                curve=False,
                latency=True,
                rate=RATE,
                **beside,
            )
            delays = sorted(found["delays"])
            p50, p99 = (delays[int(share * (len(delays) - 1))] / 1e6 for share in (0.50, 0.99))
            tails[name].append((p50, p99))
    for name, values in tails.items():
        medians[name] = report.add(f"latency p50 {name}", "ms", [p50 for p50, _ in values]).median
        report.add(f"latency p99 {name}", "ms", [p99 for _, p99 in values])
    _, by_bulk, by_own = medians.values()
    wait = by_bulk / by_own
    report.require("wait for bulk, of that for its own lane", wait, "×", "at most", OVERTAKING_BAR)
