"""The hash table on real sockets: a zone of processes on loopback, beside a dict behind REQ/REP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from statistics import median, quantiles
from threading import Timer
from typing import Any, Self

from bench.dht_peers import beside_others
from bench.progress import Progress
from bench.report import Options, Report

MEMBERS = 4
LOAD: dict[str, Any] = {
    "size": 100,
    "keys": 10_000,
    "sequential": 5_000,
    "many": 60_000,
    "under_way": 100,
}
QUICK = LOAD | {"keys": 200, "sequential": 200, "many": 1_000}
SETS = ("dht.serve=true", "dht.replicas=3", "dht.quorum=2", "dht.founders=4")
END_WITHIN = 170  # s: a run that takes longer hangs

LATENCY_BAR = 2.5  # × the p50 of a dict behind raw REQ/REP
GETS_BAR, PUTS_BAR = 40_000, 12_000  # operations/s with 100 under way


class Ends:
    """The processes of one measurement."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._overtime = Timer(END_WITHIN, self._kill)

    def __enter__(self) -> Self:
        self._overtime.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._overtime.cancel()
        for end in self._processes:
            assert end.stdin is not None
            end.stdin.close()
        try:
            for end in self._processes:
                end.wait(10)
        finally:
            self._kill()
            for end in self._processes:
                end.wait()
                assert end.stdout is not None
                end.stdout.close()

    def start(self, **options: Any) -> subprocess.Popen[str]:
        """Start one end."""
        words = [sys.executable, "-m", "bench.dht_ends", json.dumps(options)]
        pipe = subprocess.PIPE
        end = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
        self._processes.append(end)
        return end

    def _kill(self) -> None:
        for end in self._processes:
            end.kill()


def line(end: subprocess.Popen[str]) -> dict[str, Any]:
    """The next thing that an end tells."""
    assert end.stdout is not None
    text = end.stdout.readline()
    if not text:
        raise RuntimeError(f"an end died or took over {END_WITHIN} s: see above")
    found: dict[str, Any] = json.loads(text)
    return found


def raw(load: dict[str, Any]) -> dict[str, Any]:
    """A dict behind REQ/REP."""
    with Ends() as ends:
        port = line(ends.start(role="raw server"))["port"]
        return line(ends.start(role="raw client", ports=[port], **load))


def ours(load: dict[str, Any], sets: Sequence[str] = SETS) -> dict[str, Any]:
    """A zone of four, one of which is the client."""
    with Ends() as ends:
        ports: list[int] = []
        for number in range(1, MEMBERS):
            one = ends.start(role="server", name=f"server-{number}", ports=ports, sets=list(sets))
            ports.append(line(one)["port"])
        common: dict[str, Any] = {"ports": ports, "sets": list(sets), "members": MEMBERS}
        return line(ends.start(role="client", name="client", **common, **load))


def real(report: Report, options: Options) -> None:
    """Raw and ours take turns."""
    load = QUICK if options.quick else LOAD
    progress = Progress("dht", 2 * options.repeats)
    before, found = [], []
    for _ in range(options.repeats):
        progress.step("a dict behind REQ/REP")
        before.append(raw(load))
        progress.step("four members")
        found.append(ours(load))
    _latencies(report, before, found)
    for what, name in (
        ("100 tasks, get", "gets"),
        ("100 tasks, put", "puts"),
        ("get_many of 100", "get_many"),
        ("put_many of 100", "put_many"),
    ):
        rates = [load["many"] / one[name] for one in found]
        case = report.add(what, "operations/s", rates)
        if name in ("gets", "puts"):
            bar = GETS_BAR if name == "gets" else PUTS_BAR
            report.require(f"{what}: 100 under way", case.median, "operations/s", "at least", bar)
    beside_others(report, options, load)


def _latencies(report: Report, before: list[dict[str, Any]], found: list[dict[str, Any]]) -> None:
    for name, runs, what in (
        ("dict behind REQ/REP", before, "get"),
        ("member", found, "get"),
        ("member", found, "put"),
    ):
        delays = [quantiles(one[what], n=100) for one in runs]
        report.add(f"sequential {what}, {name}, p50", "µs", [one[49] / 1e3 for one in delays])
        report.add(f"sequential {what}, {name}, p99", "µs", [one[98] / 1e3 for one in delays])
    ratios = [median(a["get"]) / median(b["get"]) for a, b in zip(found, before, strict=True)]
    case = report.add("sequential get p50, member to dict behind REQ/REP", "×", ratios)
    report.require("sequential get p50", case.median, "×", "at most", LATENCY_BAR)
