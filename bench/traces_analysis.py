"""What analysing takes: all jobs over many rows, twice as many, and rows that keep coming.

Each analysis is the command that people run, in a process of its own; memory is that of the process
and its JVM together. The same answers are computed beside it by DuckDB, and must be the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, NamedTuple

import psutil

from bench.progress import Progress
from bench.report import Options, Report
from bench.traces_check import differences
from overlay.traces.synthetic import Plan, generate

ROWS, QUICK_ROWS = 100_000_000, 40_000
CHECKED_ROWS, QUICK_CHECKED = 5_000_000, 40_000
MOST_SECONDS, MOST_GB, MOST_GROWTH = 600.0, 8.0, 2.2
SAMPLING = 0.25  # s between two looks at memory


def large(rows: int) -> Plan:
    """A run of that size: more nodes rather than longer files."""
    nodes = max(12, min(100, rows // 500_000))
    topics = max(4, nodes * 2 // 5)
    return Plan(
        rows=rows, nodes=nodes, topics=topics, subscribers=10, seconds=3000, processes=_cores()
    )


def _cores() -> int:
    return os.cpu_count() or 1


class Analysed(NamedTuple):
    """One run of `overlay analyze`."""

    rows: int
    seconds: float
    gigabytes: float  # most that the process and its children held at once


def analyse(traces: Path, out: Path) -> Analysed:
    """Run the command, and watch its memory."""
    began = monotonic()
    words = ["analyze", str(traces), "--out", str(out), "--fresh", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "nodes.cli", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        watch = _Memory(process.pid)
        told, _ = process.communicate()
        seconds = monotonic() - began
        most = watch.stop()
    if process.returncode:
        raise RuntimeError(f"overlay analyze {traces} ended with code {process.returncode}")
    return Analysed(json.loads(told)["rows"], seconds, most / 1e9)


class _Memory(Thread):
    """Looks at what a process and its children hold, until it is told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._done = Event()
        self._most = 0
        self.start()

    def run(self) -> None:
        while not self._done.wait(SAMPLING):
            held = 0
            try:
                for one in (self._root, *self._root.children(recursive=True)):
                    held += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            self._most = max(self._most, held)

    def stop(self) -> int:
        """Bytes, at most."""
        self._done.set()
        self.join()
        return self._most


def every_second(traces: Path, half: Path) -> None:
    """A folder with every second file of another one, as links."""
    for place, path in enumerate(sorted(traces.rglob("*.parquet"))):
        if place % 2 == 0:
            target = half / path.relative_to(traces)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(path)


def report_jobs(report: Report, options: Options) -> None:
    """All jobs over half of the rows and over all of them."""
    rows = QUICK_ROWS if options.quick else ROWS
    progress = Progress("traces, jobs", 3)
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as name:
        folder = Path(name)
        progress.step(f"generating {rows:,} rows")
        began = monotonic()
        answers = generate(folder / "traces", large(rows))
        report.add("generating", "rows/s", [answers.rows / (monotonic() - began)])
        enter_jobs(report, folder / "traces", folder, progress)


def enter_jobs(report: Report, traces: Path, folder: Path, progress: Progress) -> None:
    """Analyse half of a folder, then all of it."""
    every_second(traces, folder / "half")
    progress.step("half of them")
    half = analyse(folder / "half", folder / "out-half")
    progress.step("all of them")
    whole = analyse(traces, folder / "out")
    for what, one in (("half", half), ("all", whole)):
        report.add(f"{what}: rows", "rows", [float(one.rows)])
        report.add(f"{what}: time of all jobs", "s", [one.seconds])
        report.add(f"{what}: rate", "rows/s", [one.rows / one.seconds])
        report.add(f"{what}: memory", "GB", [one.gigabytes])
    report.require("all jobs", whole.seconds, "s", "at most", MOST_SECONDS)
    report.require("memory of all jobs", whole.gigabytes, "GB", "at most", MOST_GB)
    growth = whole.seconds / half.seconds * 2 * half.rows / whole.rows
    report.require("twice the rows take", growth, "×", "at most", MOST_GROWTH)


def report_check(report: Report, options: Options) -> None:
    """The answers of all jobs beside those of DuckDB, for a size that fits its memory."""
    rows = QUICK_CHECKED if options.quick else CHECKED_ROWS
    progress = Progress("traces, check", 3)
    with tempfile.TemporaryDirectory(prefix="overlay-bench-") as name:
        folder = Path(name)
        progress.step(f"generating {rows:,} rows")
        generate(folder / "traces", large(rows))
        progress.step("Spark")
        ours = analyse(folder / "traces", folder / "out")
        progress.step("DuckDB")
        began = monotonic()
        found = differences(folder / "traces", folder / "out" / "tables")
        report.add("check: Spark, all jobs", "s", [ours.seconds])
        report.add("check: DuckDB, the same answers", "s", [monotonic() - began])
        enter_differences(report, found)


def enter_differences(report: Report, found: dict[str, Any]) -> None:
    """Counts must be equal, and ranks off by a thousandth at most."""
    report.require("counts that differ", float(found["differing"]), "", "at most", 0)
    report.require("counts compared", float(found["compared"]), "", "at least", 1)
    report.require("rank error of percentiles", 100 * found["rank_error"], "%", "at most", 0.1)
