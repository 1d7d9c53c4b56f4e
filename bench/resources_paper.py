"""Figures 9, 10, 11 and 14 of the paper on resource discovery, in virtual time."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, NamedTuple

from bench.progress import Progress
from bench.report import Options, Report
from bench.resources_workload import Placement, Space, Time, requests, resources, schedule
from bench.resources_world import Cluster, Forwarding, Metrics

PAPER = Path(__file__).parents[1] / "configs" / "papers" / "resource-discovery.toml"
SEED = 1
PLACEMENTS: tuple[Placement, ...] = ("balanced", "geometric")
FIGURES: dict[str, tuple[Space, Time]] = {
    "figure 9": ("uniform", "uniform"),
    "figure 10": ("zipf", "uniform"),
    "figure 11": ("uniform", "gaussian"),
}
UNITS = {"time": "ms", "publications": "hops", "packages": "hops", "subscriptions": "hops"}
UNITS |= {"matchings": "", "covers_searched": "", "results": "", "incomplete": ""}
QUICK = 60  # resources and requests
LONGEST = 180.0  # s for one figure


class Point(NamedTuple):
    """One workload of one figure."""

    figure: str
    placement: Placement
    forwarding: Forwarding
    similarity: float


def settings() -> dict[str, Any]:
    """The paper's parameters, and ours."""
    return tomllib.loads(PAPER.read_text(encoding="utf-8"))


@lru_cache(maxsize=8)
def cluster(placement: Placement, forwarding: Forwarding, *, quick: bool) -> Cluster:
    """A world with all resources registered; workloads are played in it one after the other."""
    paper = settings()
    count = QUICK if quick else int(paper["resources"])
    made = resources(Random(f"{SEED}/{placement}"), count, int(paper["brokers"]), placement)
    world = Cluster(paper, made, forwarding, seed=SEED)
    world.register()
    return world


def measure(point: Point, *, quick: bool) -> Metrics:
    """Play one workload. All that differs between two forwardings is the forwarding."""
    paper = settings()
    space, time = FIGURES[point.figure]
    world = cluster(point.placement, point.forwarding, quick=quick)
    count = QUICK if quick else int(paper["requests"])
    wanted = requests(Random(f"{SEED}/requests"), count, point.similarity, world.items)
    asked = schedule(
        Random(f"{SEED}/{space}/{time}"),
        wanted,
        world.size,
        space=space,
        time=time,
        duration=paper["duration"] * count / int(paper["requests"]),
    )
    return world.play(asked)


def sweep(
    figure: str, similarities: list[float], *, quick: bool, name: str = "resources"
) -> dict[Point, Metrics]:
    """Normal against Similarity, for both placements."""
    points = [
        Point(figure, placement, forwarding, similarity)
        for placement in PLACEMENTS
        for forwarding in ("normal", "similarity")
        for similarity in similarities
    ]
    progress = Progress(name, len(points))
    found: dict[Point, Metrics] = {}
    for point in points:
        progress.step(f"{figure}: {point.placement}, {point.forwarding}, {point.similarity:.0%}")
        found[point] = measure(point, quick=quick)
    return found


def direct(similarity: float, *, quick: bool) -> dict[Forwarding, Metrics]:
    """Figure 14: results straight back against results along the path, balanced."""
    ways: tuple[Forwarding, ...] = ("normal", "direct")
    return {
        way: measure(Point("figure 9", "balanced", way, similarity), quick=quick) for way in ways
    }


def report_figure(figure: str, report: Report, options: Options) -> None:
    """Every point of a figure, each metric a case; and how long it took."""
    similarities = [0.5, 1.0] if options.quick else settings()["similarities"]
    started = process_time()
    found = sweep(figure, similarities, quick=options.quick)
    took = process_time() - started
    for point, metrics in found.items():
        label = f"{figure}: {point.placement}, {point.forwarding}, {point.similarity:.0%}"
        for name, value in metrics._asdict().items():
            report.add(f"{label}: {name}", UNITS[name], [float(value)])
    report.add(f"{figure}: processor time of the evaluation", "s", [took])
    report.require(f"{figure}: processor time", took, "s", "at most", LONGEST)


def figure_9(report: Report, options: Options) -> None:
    """Uniform in space and time."""
    report_figure("figure 9", report, options)


def figure_10(report: Report, options: Options) -> None:
    """Most requests at few brokers."""
    report_figure("figure 10", report, options)


def figure_11(report: Report, options: Options) -> None:
    """Most requests at about the same time."""
    report_figure("figure 11", report, options)


def figure_14(report: Report, options: Options) -> None:
    """Direct against Normal."""
    for way, metrics in direct(0.5, quick=options.quick).items():
        for name, value in metrics._asdict().items():
            report.add(f"figure 14: {way}: {name}", UNITS[name], [float(value)])
