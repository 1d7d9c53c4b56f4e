"""`overlay lab up` from nothing to complete zone tables, on hosts that are network namespaces.

The wheelhouse is there, as for every `up` but the first. The second `up` has nothing to do: what it
takes is the price of looking. The hosts are those of the tests, in a process of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys

from bench.report import Options, Report
from nodes.spawning import ROOT

HOSTS, PEERS = 5, 4
WITHIN = 60.0  # s
PROGRAM = "tests.netns.measure_lab_up"


def measure_up(report: Report, options: Options) -> None:
    """Enter the seconds of the first and the second `up`, and of each step of the first."""
    hosts, peers = (2, 1) if options.quick else (HOSTS, PEERS)
    took: dict[str, list[float]] = {}
    for _ in range(1 if options.quick else options.repeats):
        words = [sys.executable, "-m", PROGRAM, str(hosts), str(peers)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no word of why"])[-1]
            report.notes.append(f"lab up failed: {last}")
            return
        told: dict[str, float] = json.loads(done.stdout)
        if "problem" in told:
            report.notes.append(f"lab up was not measured: {told['problem']}")
            return
        for case, seconds in told.items():
            took.setdefault(case, []).append(seconds)
    for case, times in took.items():
        report.add(f"{case}, {hosts} × {peers}", "s", times)
    report.require(
        f"from nothing to complete zone tables, {hosts} hosts × {peers} peers",
        report.results[f"up, {hosts} × {peers}"].median,
        "s",
        "at most",
        WITHIN,
    )
