"""Many scenarios under many seeds: `python -m nodes.scenarios.campaign --seeds N`.

Exit codes: 0 all passed, 1 some failed (each with its replay line), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Protocol

import msgspec

from nodes.scenarios.registry import all_scenarios, find
from nodes.scenarios.running import FAULTS, RunResult, run_scenario
from overlay.errors import OverlayError

WIRE_EVERY = 4  # each fourth seed passes its messages through the codec
LONG_EVERY = 5  # of a long campaign, each fifth seed has the scenario's long size: it costs as much
# as the four others, and most faults that were ever found showed in small worlds
PLAIN_EVERY = 500  # runs between two lines of progress, when nobody watches


class Job(msgspec.Struct, frozen=True):
    """One run to do."""

    scenario: str
    seed: int
    nodes: int


class Summary(msgspec.Struct):
    """What a campaign showed."""

    passed: int = 0
    failed: int = 0
    messages: int = 0
    node_hours: float = 0.0
    faults: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(FAULTS, 0))
    failures: list[RunResult] = msgspec.field(default_factory=list)

    def add(self, result: RunResult) -> None:
        """Count one run."""
        self.messages += result.messages
        self.node_hours += result.node_hours
        for kind, count in result.faults.items():
            self.faults[kind] += count
        if result.passed:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(result)


class Progress(Protocol):
    """Told about every run as it ends."""

    def __call__(self, result: RunResult) -> None: ...


def plan(names: Sequence[str], seeds: int, *, first: int = 1, long: bool = False) -> list[Job]:
    """List the runs: every scenario under every seed; seeds outside, so that all start early."""
    entries = [find(name) for name in names] if names else all_scenarios()
    return [
        Job(entry.name, seed, entry.long if long and seed % LONG_EVERY == 0 else entry.nodes)
        for seed in range(first, first + seeds)
        for entry in entries
    ]


def do(job: Job) -> RunResult:
    """Run one job; called in the worker processes."""
    return run_scenario(job.scenario, job.seed, job.nodes, wire=job.seed % WIRE_EVERY == 0)


def run_campaign(jobs: Sequence[Job], workers: int, on_result: Progress) -> Summary:
    """Run all jobs, in this process or in several, and sum them up."""
    summary = Summary()
    for result in _results(jobs, workers):
        summary.add(result)
        on_result(result)
    return summary


def _results(jobs: Sequence[Job], workers: int) -> Iterator[RunResult]:
    if workers == 1:
        yield from map(do, jobs)
        return
    remaining = iter(jobs)
    # Fresh processes instead of forks: nothing of this one can leak into a run.
    with _ctrl_c_later():
        pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        running: set[Future[RunResult]] = set()
        while True:
            while len(running) < workers * 4 and (job := next(remaining, None)) is not None:
                with _ctrl_c_later():
                    running.add(pool.submit(do, job))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """A process that is started in here never hears a Ctrl-C; this one does, afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        done = 0

        def line(result: RunResult) -> None:
            nonlocal done
            done += 1
            if done % PLAIN_EVERY == 0 and done < total:
                print(f"{done} of {total} runs", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total)

        def advance(result: RunResult) -> None:
            bar.update(task, advance=1, description=result.scenario)

        yield advance


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="seeds per scenario")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--long", action="store_true", help="each fifth seed with the long size")
    parser.add_argument("--scenario", action="append", default=[], help="only this; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args(words)
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs must be at least 1")
    try:
        jobs = plan(options.scenario, options.seeds, first=options.first, long=options.long)
    except OverlayError as error:
        parser.error(str(error))
    try:
        with _progress(len(jobs)) as on_result:
            summary = run_campaign(jobs, options.jobs, on_result)
    except KeyboardInterrupt:
        print("campaign: interrupted", file=sys.stderr)
        return 1
    if options.json:
        print(msgspec.json.encode(summary).decode())
    else:
        for result in summary.failures:
            print(f"FAILED {result.scenario} seed {result.seed}: {result.failure}")
        print(
            f"{summary.messages:,} messages, {summary.node_hours:,.1f} node-hours of simulated life"
        )
        lost, doubled, crashed = (summary.faults[kind] for kind in FAULTS)
        print(f"{lost:,} frames lost, {doubled:,} doubled, {crashed:,} nodes crashed")
        print(f"{summary.passed} passed, {summary.failed} failed")
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
