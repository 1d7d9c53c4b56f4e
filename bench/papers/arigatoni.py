"""Arigatoni (§4): figure 2 (b), (c) and (d), by the protocol's own machines in memory."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from bench.colony_topology import Shape
from bench.colony_world import Load, PaperWorld
from bench.papers.published import Finding, Paper
from protocols.colony import Terms

AT_LOAD, AT_SERVED, AT_LEAST, AT_MOST = 0.06, 0.04, 0.005, 0.07
QUICK = 300  # requests


def evaluate(paper: Paper, folder: Path, *, quick: bool) -> list[Finding]:
    """All availabilities on several topologies; then more and more requests on the first."""
    loads = figure_2b(paper, quick=quick)
    served = fmean(one.served for one in loads[AT_SERVED])
    busiest = [100 * one.busiest for one in loads[AT_LOAD]]
    average = [100 * one.average for one in loads[AT_LOAD]]
    falls = fmean(one.busiest for one in loads[AT_MOST])
    falls /= fmean(one.busiest for one in loads[AT_LEAST])
    crossing = takes_over(loads)
    refused = 1 - paper.settings["acceptance"] * AT_SERVED
    full, but_own = (100 * (1 - refused ** (paper.settings["brokers"] - own)) for own in (0, 1))
    return [
        paper.found("average-load", fmean(average), _spread(paper, "average-load", average)),
        paper.found("busiest", fmean(busiest), _spread(paper, "busiest", busiest)),
        paper.found(
            "served",
            100 * served,
            f"full retry gives {full:.1f} %, and {but_own:.1f} % where nobody asks its own agent;"
            f" {paper.claims['served'].why}",
        ),
        paper.found("takes-over", 100 * crossing if crossing is not None else None),
        paper.found("maximum-falls", falls),
        paper.found("load-is-linear", loads[AT_LOAD][0].average / _few(paper)),
    ]


def figure_2b(paper: Paper, *, quick: bool) -> dict[float, list[Load]]:
    """The loads by availability, one for each topology."""
    settings = paper.settings
    seeds = settings["seeds"][:2] if quick else settings["seeds"]
    loads: dict[float, list[Load]] = {}
    for availability in settings["availability"]:
        for index, seed in enumerate(seeds):
            in_full = not index and availability in settings["in_full"]
            count = settings["requests"] if in_full else settings["requests_each"]
            load = run(paper, seed, availability, QUICK if quick else count)
            loads.setdefault(availability, []).append(load)
    return loads


def run(paper: Paper, seed: int, availability: float, requests: int) -> Load:
    """One point of a figure."""
    settings = paper.settings
    shape = Shape(nodes=settings["brokers"], **settings["topology"])
    world = PaperWorld(
        seed,
        availability,
        services=settings["services"],
        acceptance=settings["acceptance"],
        shape=shape,
    )
    return world.run(requests, Terms(settings["mode"]))


def takes_over(loads: dict[float, list[Load]]) -> float | None:
    """The least availability from which on most topologies have another busiest than the root."""
    found = None
    for availability in sorted(loads, reverse=True):
        below = sum(one.busiest_depth > 0 for one in loads[availability])
        if 2 * below <= len(loads[availability]):
            break
        found = availability
    return found


def _few(paper: Paper) -> float:
    """The average load of few requests, on the topology that gets them all."""
    return run(paper, paper.settings["seeds"][0], AT_LOAD, paper.settings["issued"][0]).average


def _spread(paper: Paper, name: str, values: list[float]) -> str:
    told = f"{min(values):.1f} to {max(values):.1f} on {len(values)} topologies"
    mean = fmean(values)
    return told if paper.claims[name].agrees(mean) else f"{told}; {paper.claims[name].why}"
