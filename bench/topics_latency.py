"""One-way latency at a steady rate in ack mode: from the call to the reader."""

from __future__ import annotations

from statistics import median
from typing import Any

from bench.progress import Progress
from bench.report import Options, Report
from bench.topics_pairs import PUSH_PULL, Side, ends_with_keys, ours

RATE = 1_000  # messages/s
SECONDS = 5
BYTES = 100

CALLBACK, LOOP = "ack, callback", "ack, async for"
RAW = PUSH_PULL.but(write="rate")
P50_BARS = {CALLBACK: 2.3, LOOP: 2.6}
P99_BAR = 3.5


def sides() -> list[Side]:
    """Raw, by callback, by loop."""
    return [RAW, ours(CALLBACK, "ack", "rate", "callback"), ours(LOOP, "ack", "rate", "async for")]


def percentiles(found: dict[str, Any]) -> dict[str, float]:
    """The median and the tail of one run, in µs."""
    delays = sorted(found["delays"])
    return {
        name: delays[int(share * (len(delays) - 1))] / 1000
        for name, share in (("p50", 0.50), ("p99", 0.99))
    }


def latency(report: Report, options: Options) -> None:
    """Ratios of medians, not medians of ratios: each figure is small and noisy."""
    count = RATE * (1 if options.quick else SECONDS)
    progress = Progress("topics latency", options.repeats * len(sides()))
    tails: dict[str, dict[str, list[float]]] = {"p50": {}, "p99": {}}
    with ends_with_keys() as ends:
        for _ in range(options.repeats):
            for side in sides():
                progress.step(f"latency: {side.name}")
                found = ends.run(side, size=BYTES, count=count, rate=RATE)[0]
                for tail, at in percentiles(found).items():
                    tails[tail].setdefault(side.name, []).append(at)
    for tail, values in tails.items():
        for name, repeats in values.items():
            report.add(f"one-way latency {tail}, {name}", "µs", repeats)
        for name, bar in P50_BARS.items():
            ratio = median(values[name]) / median(values[RAW.name])
            report.require(
                f"one-way latency {tail}, {name}: against raw PUSH/PULL",
                ratio,
                "×",
                "at most",
                bar if tail == "p50" else P99_BAR,
            )
