"""Rows that keep coming: files of a second each, and an analysis that follows them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from bench.progress import Progress
from bench.report import Options, Report
from overlay.traces.analysis import Analysis, chosen_jobs
from overlay.traces.session import open_session
from overlay.traces.synthetic import Plan, generate

RATE, QUICK_RATE = 50_000, 4_000  # rows/s
SECONDS, QUICK_SECONDS = 60, 3
NODES = 4  # files in each second


def report_streaming(report: Report, options: Options) -> None:
    """Rows arrive at a rate; how far is the analysis behind when they end?"""
    rate, seconds = (QUICK_RATE, QUICK_SECONDS) if options.quick else (RATE, SECONDS)
    progress = Progress("traces, streaming", 3)
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as name:
        folder = Path(name)
        progress.step("generating")
        ready = [_second(folder / "ready", number, rate) for number in range(seconds)]
        with open_session() as spark:
            progress.step("warming up")
            _follow(spark, ready[0][0], folder / "warm")
            progress.step(f"{rate:,} rows/s for {seconds} s")
            _measure(report, spark, [place for place, _ in ready], folder, sum(n for _, n in ready))


def _second(folder: Path, number: int, rate: int) -> tuple[Path, int]:
    """The rows of one second, and how many they are."""
    plan = Plan(
        rows=rate,
        nodes=NODES,
        topics=2,
        subscribers=2,
        zones=1,
        seconds=10,  # of the plan; they are handed over in one
        seed=number,
        run=f"second{number:03d}",
    )
    return folder / str(number), generate(folder / str(number), plan).rows


def _follow(spark: object, traces: Path, out: Path) -> int:
    """Take what is new; rows so far."""
    analysis = Analysis(spark, traces, out, chosen_jobs())
    analysis.take_new_files()
    return analysis.summary().rows


def _measure(report: Report, spark: object, ready: list[Path], folder: Path, expected: int) -> None:
    live, out = folder / "live", folder / "out"
    live.mkdir()
    handed, done = [0], Event()

    def hand_over() -> None:
        began = monotonic()
        for number, second in enumerate(ready):
            done.wait(max(0.0, began + number + 1 - monotonic()))
            for part in second.iterdir():
                shutil.move(part, live / part.name)
            handed[0] = number + 1
        done.set()

    began = monotonic()
    Thread(target=hand_over, daemon=True).start()
    behind: list[float] = []
    taken = 0
    while not done.is_set():
        if handed[0] == 0:
            done.wait(0.05)
            continue
        upto = handed[0]
        taken = _follow(spark, live, out)
        behind.append(monotonic() - began - upto)  # s since the newest row that is in the answers
    final = monotonic()
    taken = _follow(spark, live, out)
    late = monotonic() - final
    report.add("streaming: rows", "rows", [float(taken)])
    report.add("streaming: behind the newest row", "s", behind or [late])
    report.add("streaming: last rows taken after", "s", [late])
    report.require("streaming: rows that are missing", float(expected - taken), "", "at most", 0)
    half = len(behind) // 2 or 1
    growing = max(behind[half:] or [late]) - max(behind[:half] or [late])
    report.require("streaming: falls behind further by", growing, "s", "at most", 5)
