"""What the paper does not say: message size, run length and warm-up; and how long ours takes."""

from __future__ import annotations

from bench.mobility_paper import Sweep, probe_every, settings
from bench.report import Options, Report

TEN_MINUTES = 600.0
LONGEST = 300.0  # s of one core for it


def sizes(report: Report, options: Options) -> None:
    """With the most publishers: which size fits the paper's median, which its four seconds."""
    tried = settings()["sizes"]
    sweep = Sweep("size", report, options, 2 * len(tried))
    for size in tried:
        for algorithm in ("standard", "delayed"):
            label = f"{size} bytes, {algorithm}"
            found = sweep.play(
                label, algorithm=algorithm, size=size, publishers=settings()["publishers"][-1]
            )
            sweep.service(label, found)
            sweep.cost(label, found)
            sweep.add(f"{label}: all probes arrive from", "s", found.rebuilding(probe_every()))


def lengths(report: Report, options: Options) -> None:
    """Other run lengths, warm-ups and seeds: how much each of them matters."""
    paper = settings()
    varied = [
        *((f"{length:g} s", {"duration": length}) for length in paper["durations"]),
        *((f"{warm_up:g} s of warm-up", {"warm_up": warm_up}) for warm_up in paper["warm_ups"]),
        *((f"seed {seed}", {"seed": seed}) for seed in paper["seeds"]),
    ]
    sweep = Sweep("length", report, options, len(varied))
    for label, more in varied:
        found = sweep.play(label, publishers=paper["publishers"][-1], **more)
        sweep.service(label, found)
        sweep.cost(label, found)
        sweep.add(f"{label}: all probes arrive from", "s", found.rebuilding(probe_every()))


def speed(report: Report, options: Options) -> None:
    """Ten simulated minutes of the most publishers, on one core."""
    sweep = Sweep("time", report, options, 2)
    for algorithm in ("standard", "prefetching"):
        label = f"250 publishers, ten minutes, {algorithm}"
        found = sweep.play(label, algorithm=algorithm, publishers=250, duration=TEN_MINUTES)
        took = found.processor * TEN_MINUTES / found.workload.duration
        sweep.add(label, "s of one core", took)
        if not options.quick:
            report.require(f"time: {label}", took, "s", "at most", LONGEST)
