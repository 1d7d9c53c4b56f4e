"""Why more speed delivers more: what the paper left open, taken apart.

All that speed changes in the paper's model is how often publishers move. So first the number of
publishers is varied against it, such that as many moves happen at every speed: if speed by itself
did anything, it would show here. Then one thing at a time that the paper does not describe:
publishers that move in step, first connections that count, and links that take some time to wake up
when they were silent, as a connection of TCP does that begins slowly again after a pause. Small
messages leave all links idle, so that nothing but the variant can make a difference; large ones
fill those near the root at the highest speed.
"""

from __future__ import annotations

from typing import Any

from bench.mobility_paper import Sweep, mean_latency, settings
from bench.mobility_workload import Outcome
from bench.report import Options, Report

CAUSES: dict[str, dict[str, Any]] = {
    "as described": {},
    "in step": {"in_step": True},
    "first connections count": {"first_counts": True, "warm_up": 0.0},
    "links wake up": {"idle": True},
}
LARGE = 700  # bytes: then the links near the root are busy at the highest speed
SMALL = 300


def cause(report: Report, options: Options) -> None:
    """Delivery and latency of each variant by speed, and how they grow from slow to fast."""
    paper = settings()
    speeds = paper["figure_7_speeds"]
    ends = [speeds[0], speeds[-1]]
    sizes = [SMALL] if options.quick else [SMALL, LARGE]
    runs = len(ends) * (len(sizes) * (len(CAUSES) + 1) + 1)
    sweep = Sweep("speed", report, options, runs)
    for size in sizes:
        for name, varied in CAUSES.items():
            more = varied | ({"idle": paper["waking"]} if "idle" in varied else {})
            found = {
                speed: sweep.play(f"{name}, {speed:g} km/h", speeds=(speed,), size=size, **more)
                for speed in ends
            }
            _compare(sweep, f"{size} bytes, {name}", found)
        found = {
            speed: sweep.play(
                f"as many moves, {speed:g} km/h",
                speeds=(speed,),
                size=size,
                publishers=round(50 * ends[-1] / speed),
                subscribers=round(500 * ends[-1] / speed),
            )
            for speed in ends
        }
        _compare(sweep, f"{size} bytes, as many moves at each speed", found)
    found = {
        speed: sweep.play(
            f"links wake up, delayed, {speed:g} km/h",
            algorithm="delayed",
            speeds=(speed,),
            size=SMALL,
            idle=paper["waking"],
        )
        for speed in ends
    }
    _compare(sweep, f"{SMALL} bytes, links wake up, delayed", found)


def _compare(sweep: Sweep, name: str, found: dict[float, Outcome]) -> None:
    for speed, outcome in found.items():
        label = f"{name}, {speed:g} km/h"
        sweep.add(f"{label}: probes delivered", "%", 100 * outcome.ratio)
        sweep.add(f"{label}: latency, mean", "s", mean_latency(outcome))
    slow, *_, fast = found.values()
    sweep.add(f"{name}: delivered, fast less slow", "%", 100 * (fast.ratio - slow.ratio))
    slower = mean_latency(slow) or 1.0
    sweep.add(f"{name}: latency, fast by slow", "×", mean_latency(fast) / slower)
