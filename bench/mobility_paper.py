"""Figures 4 to 10 of the paper on publisher mobility, and what it only tells, in virtual time."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.mobility_meter import CONTROL, TREE
from bench.mobility_workload import ALGORITHMS, Outcome, Workload, quantile
from bench.mobility_world import City
from bench.progress import Progress
from bench.report import Options, Report

PAPER = Path(__file__).parents[1] / "configs" / "papers" / "publisher-mobility.toml"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
QUICK = {"publishers": 6, "subscribers": 24, "duration": 20.0, "warm_up": 5.0, "speeds": (100.0,)}
"""The city of a test: 21 brokers, and a move of everybody."""


def settings(*, quick: bool = False) -> dict[str, Any]:
    """The paper's parameters, and ours."""
    paper = tomllib.loads(PAPER.read_text(encoding="utf-8"))
    return paper | {"height": 3} if quick else paper


@lru_cache(maxsize=256)
def _played(workload: Workload, quick: bool) -> Outcome:
    return City(settings(quick=quick), workload).play()


def play(workload: Workload, *, quick: bool = False) -> Outcome:
    """One run; the same one is played once."""
    return _played(workload, quick)


BACK_AND_FORTH: dict[str, Any] = {"turns": 0.0, "speeds": (100.0,), "duration": 450.0}
"""How publishers move where the overshoot is varied: fast enough to see the ends of it."""


def base(*, quick: bool, **varied: Any) -> Workload:
    """A run as the paper has it, but for what is varied; in its quick form always a small one."""
    paper = settings()
    ours = {name: paper[name] for name in ("size", "warm_up", "duration")}
    ours["speeds"] = tuple(paper["speeds"])
    return Workload(**(ours | varied | (QUICK if quick else {})))


class Sweep:
    """Plays runs one after the other, tells how far it is, and enters what they have in common."""

    def __init__(self, name: str, report: Report, options: Options, runs: int) -> None:
        self._name = name
        self._report = report
        self._quick = options.quick
        self._progress = Progress("mobility", runs)

    def play(self, label: str, **varied: Any) -> Outcome:
        """One run."""
        self._progress.step(f"{self._name}: {label}")
        return play(base(quick=self._quick, **varied), quick=self._quick)

    def add(self, label: str, unit: str, value: float) -> None:
        """One figure of a run."""
        self._report.add(f"{self._name}: {label}", unit, [value])

    def cost(self, label: str, found: Outcome) -> None:
        """What rebuilding cost, in all and of one move."""
        minutes = found.workload.duration / 60
        self.add(f"{label}: messages", "hops/min", found.cost / minutes)
        self.add(f"{label}: messages of a move", "hops", found.per_move)
        more = found.all_but_publications / (found.moves or 1)
        self.add(f"{label}: the same with greetings and leases", "hops", more)

    def service(self, label: str, found: Outcome) -> None:
        """What subscribers notice."""
        self.add(f"{label}: probes delivered", "%", 100 * found.ratio)
        self.latency(label, found)

    def latency(self, label: str, found: Outcome) -> None:
        """From a publication to each of its deliveries."""
        self.add(f"{label}: latency, mean", "s", mean_latency(found))
        self.add(f"{label}: latency, median", "s", found.latency(0.5))


def mean_latency(found: Outcome) -> float:
    """The paper's measure of a run (§4.2)."""
    return fmean(found.latencies) if found.latencies else 0.0


def probe_every() -> float:
    """Seconds between two probes."""
    paper = settings()
    return float(paper["probing"] / paper["probes"])


def figure_4(report: Report, options: Options) -> None:
    """Message cost and state by the number of publishers."""
    counts = [50, 250] if options.quick else settings()["publishers"]
    sweep = Sweep("figure 4", report, options, len(counts) * len(ALGORITHMS))
    for count in counts:
        for algorithm in ALGORITHMS:
            label = f"{count} publishers, {algorithm}"
            found = sweep.play(label, algorithm=algorithm, publishers=count)
            sweep.cost(label, found)
            for kind in (*TREE, CONTROL):
                sweep.add(
                    f"{label}: {kind} of a move", "hops", found.hops[kind] / (found.moves or 1)
                )
            sweep.add(f"{label}: advertisements of a broker", "entries", found.advertisements)
            sweep.add(f"{label}: subscriptions of a broker", "entries", found.subscriptions)
            sweep.add(f"{label}: entries of the root", "entries", found.by_level[0])
            sweep.add(f"{label}: entries of a leaf", "entries", found.by_level[-1])


def figure_5(report: Report, options: Options) -> None:
    """Delivery of each probe, with the most publishers."""
    sweep = Sweep("figure 5", report, options, len(ALGORITHMS))
    for algorithm in ALGORITHMS:
        found = sweep.play(algorithm, algorithm=algorithm, publishers=settings()["publishers"][-1])
        for number, ratio in enumerate(found.ratios(), 1):
            sweep.add(f"{algorithm}: probe {number:02}", "%", 100 * ratio)
        sweep.add(f"{algorithm}: all arrive from", "s", found.rebuilding(probe_every()))


def figure_6(report: Report, options: Options) -> None:
    """Distribution of delivery latency, with the most publishers."""
    sweep = Sweep("figure 6", report, options, len(ALGORITHMS))
    for algorithm in ALGORITHMS:
        found = sweep.play(algorithm, algorithm=algorithm, publishers=settings()["publishers"][-1])
        for part in QUANTILES:
            sweep.add(f"{algorithm}: {part:.0%} within", "s", found.latency(part))


def figure_7(report: Report, options: Options) -> None:
    """Delivery and cost by speed, all publishers being as fast."""
    for label, found, sweep in _by_speed("figure 7", report, options):
        sweep.add(f"{label}: probes delivered", "%", 100 * found.ratio)
        sweep.cost(label, found)


def figure_8(report: Report, options: Options) -> None:
    """Latency by speed, in the same runs."""
    for label, found, sweep in _by_speed("figure 8", report, options):
        sweep.latency(label, found)


def figure_9(report: Report, options: Options) -> None:
    """Cost by the part of publishers that publish the same."""
    for label, found, sweep in _by_locality("figure 9", report, options):
        sweep.cost(label, found)


def figure_10(report: Report, options: Options) -> None:
    """Latency in the same runs, and delivery."""
    for label, found, sweep in _by_locality("figure 10", report, options):
        sweep.service(label, found)


def _by_speed(name: str, report: Report, options: Options) -> Iterator[tuple[str, Outcome, Sweep]]:
    speeds = settings()["figure_7_speeds"]
    sweep = Sweep(name, report, options, len(speeds) * len(ALGORITHMS))
    for speed in speeds:
        for algorithm in ALGORITHMS:
            label = f"{speed:g} km/h, {algorithm}"
            yield label, sweep.play(label, algorithm=algorithm, speeds=(speed,)), sweep


def _by_locality(
    name: str, report: Report, options: Options
) -> Iterator[tuple[str, Outcome, Sweep]]:
    paper = settings()
    parts = [0.0, 0.9] if options.quick else paper["localities"]
    sweep = Sweep(name, report, options, len(parts) * len(ALGORITHMS))
    for part in parts:
        for algorithm in ALGORITHMS:
            label = f"{part:.0%} locality, {algorithm}"
            varied = {"locality": part, "duration": paper["duration_locality"]}
            yield label, sweep.play(label, algorithm=algorithm, **varied), sweep


def subscribers(report: Report, options: Options) -> None:
    """Only in the text: ten times the subscribers."""
    counts = settings()["subscribers"]
    sweep = Sweep("subscribers", report, options, len(counts) * len(ALGORITHMS))
    for count in counts:
        for algorithm in ALGORITHMS:
            label = f"{count} subscribers, {algorithm}"
            found = sweep.play(label, algorithm=algorithm, subscribers=count)
            sweep.service(label, found)
            sweep.cost(label, found)


def overshoot(report: Report, options: Options) -> None:
    """Only in the text: proxy publishers that leave their proxy set behind."""
    past = [0, 5] if options.quick else settings()["overshoots"]
    sweep = Sweep("overshoot", report, options, len(past))
    for brokers in past:
        label = f"{brokers} brokers past the proxies"
        found = sweep.play(label, algorithm="proxy", overshoot=brokers, **BACK_AND_FORTH)
        sweep.service(label, found)
        sweep.cost(label, found)
        sweep.add(f"{label}: all probes arrive from", "s", found.rebuilding(probe_every()))


def lossless(report: Report, options: Options) -> None:
    """Beyond the paper: what is published while a tree is rebuilt waits for it."""
    sweep = Sweep("lossless", report, options, len(ALGORITHMS))
    for algorithm in ALGORITHMS:
        found = sweep.play(
            algorithm,
            algorithm=algorithm,
            publishers=settings()["publishers"][-1],
            handover="lossless",
        )
        sweep.service(algorithm, found)
        sweep.cost(algorithm, found)
        sweep.add(f"{algorithm}: delivered twice", "", found.doubled)
        name = f"lossless: {algorithm}: probes delivered"
        report.require(name, 100 * found.ratio, "%", "at least", 100.0)


def rebuilding(report: Report, options: Options) -> None:
    """Beyond the paper: t4 itself, told by the wave, with probes in its way and without.

    The paper can only guess it by probes, "and the probes are loading the network".
    """
    sweep = Sweep("t4", report, options, 2 * len(ALGORITHMS))
    for algorithm in ALGORITHMS:
        for probing in (True, False):
            label = f"{algorithm}, {'with probes' if probing else 'nothing else published'}"
            found = sweep.play(
                label,
                algorithm=algorithm,
                publishers=settings()["publishers"][-1],
                handover="sounded",
                probing=probing,
            )
            for part in (0.5, 0.9, 0.99):
                sweep.add(f"{label}: {part:.0%} within", "s", quantile(found.rebuilt, part))
            if probing:
                arrive = found.rebuilding(probe_every())
                sweep.add(f"{label}: all probes arrive from", "s", arrive)
