"""Broker discovery (§9): the simulator plays it, its traces are analysed by the discovery job."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bench.discovery_sites import Sites, kept
from bench.papers.published import Finding, Paper
from overlay.traces import open_run

TOPOLOGIES = ("unconnected", "linear", "star")
AT_HOME = "bloomington"  # of figures 2, 9 and 11
OF_FIGURE_3 = "fsu"


def evaluate(paper: Paper, folder: Path, *, quick: bool) -> list[Finding]:
    """Run every topology from every site; all figures come from the traces."""
    runs = 4 if quick else int(paper.settings["runs"])
    nearest = play(folder, runs)
    with open_run(folder) as traced:
        requests = [row.asDict() for row in traced.table("discovery_requests").collect()]
    right = sum(one["broker"] == nearest[_site(one)] for one in requests)
    home = {name: _at(requests, name, AT_HOME) for name in TOPOLOGIES}
    waiting = {name: fmean(one["waiting"] for one in found) for name, found in home.items()}
    shares = {
        name: fmean(100 * one["waiting"] / one["total"] for one in found)
        for name, found in home.items()
    }
    keep = max(2, len(home["star"]) * int(paper.settings["kept"]) // int(paper.settings["runs"]))
    times = kept([one["total"] for one in _at(requests, "unconnected", OF_FIGURE_3)], keep)
    return [
        paper.found("waiting-unconnected", shares["unconnected"]),
        paper.found("waiting-most", min(shares.values())),
        paper.found("star-before-linear", waiting["star"] / waiting["linear"]),
        paper.found("linear-before-unconnected", waiting["linear"] / waiting["unconnected"]),
        paper.found("mean-fsu", fmean(times)),
        paper.found("deviation-fsu", 100 * stdev(times) / fmean(times)),
        paper.found("nearest", 100 * right / len(requests)),
    ]


def play(folder: Path, runs: int) -> dict[str, str]:
    """Let clients at all sites find brokers, traced; the nearest broker of each site."""
    nearest: dict[str, str] = {}
    for topology in TOPOLOGIES:
        world = Sites(topology, 1, folder)
        for site in world.paper["clients"]:
            nearest[site] = world.nearest(site)
            for _ in range(runs):
                world.discover(site)
        assert world.sim.traces is not None
        world.sim.traces.close()
    return nearest


def _site(request: dict[str, Any]) -> str:
    return str(request["node"]).rpartition("-")[0]


def _at(requests: list[dict[str, Any]], run: str, site: str) -> list[dict[str, Any]]:
    return [one for one in requests if one["run"] == run and _site(one) == site and one["broker"]]
