"""Resource discovery (§6): its cluster in the simulator, with Normal, Similarity and Direct."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from bench.papers.published import Finding, Paper
from bench.resources_models import Query, play
from bench.resources_paper import FIGURES, Point, direct, sweep
from bench.resources_workload import Placement
from bench.resources_world import Forwarding, Metrics

SIMILARITIES = [0.1, 0.5, 1.0]
FEW, MANY = SIMILARITIES[0], SIMILARITIES[-1]

Part = Callable[[Metrics], float]

METRICS: dict[str, Part] = {
    "time": lambda metrics: metrics.time,
    "publications": lambda metrics: metrics.packages,
    "subscriptions": lambda metrics: metrics.subscriptions,
    "matchings": lambda metrics: metrics.matchings,
}


def evaluate(paper: Paper, folder: Path, *, quick: bool) -> list[Finding]:
    """Play figures 9 to 14; nothing of it needs the traces."""
    found: dict[Point, Metrics] = {}
    for figure in FIGURES:
        found |= sweep(figure, SIMILARITIES, quick=quick, name="papers")
    return [
        *_similarity(paper, found),
        *_normal(paper, found),
        *_models(paper, play(quick=quick)),
        *_direct(paper, direct(0.5, quick=quick)),
    ]


def _similarity(paper: Paper, found: dict[Point, Metrics]) -> list[Finding]:
    """Similarity against Normal, over the workloads of a figure, and how it grows."""

    def part(of: Part, figure: str, similarities: list[float]) -> float:
        totals = {
            forwarding: sum(
                of(metrics)
                for point, metrics in found.items()
                if (point.figure, point.forwarding) == (figure, forwarding)
                and point.similarity in similarities
            )
            for forwarding in ("normal", "similarity")
        }
        return totals["similarity"] / (totals["normal"] or 1)

    whole = {
        name: max(part(of, figure, SIMILARITIES) for figure in FIGURES)
        for name, of in METRICS.items()
    }
    grown = {
        name: max(part(of, figure, [MANY]) / (part(of, figure, [FEW]) or 1) for figure in FIGURES)
        for name, of in METRICS.items()
    }
    each = max(part(lambda one: one.publications, figure, SIMILARITIES) for figure in FIGURES)
    return [
        *(paper.found(name, ratio) for name, ratio in whole.items()),
        paper.found("publications-each", each),
        *(paper.found(f"gain-{name}", ratio) for name, ratio in grown.items()),
    ]


def _normal(paper: Paper, found: dict[Point, Metrics]) -> list[Finding]:
    """What the workloads and placements do to the algorithm without sharing."""

    def row(figure: str, placement: Placement) -> list[Metrics]:
        return [
            found[Point(figure, placement, "normal", similarity)] for similarity in SIMILARITIES
        ]

    def unbalanced(of: Part) -> float:
        return fmean(
            sum(map(of, row(figure, "geometric"))) / sum(map(of, row(figure, "balanced")))
            for figure in FIGURES
        )

    rows = [row(figure, placement) for figure in FIGURES for placement in ("balanced", "geometric")]
    grow = min(many.packages / (few.packages or 1) for few, *_, many in rows)
    subscriptions = [[one.subscriptions for one in of] for of in rows]
    return [
        paper.found("publications-grow", grow),
        paper.found("subscriptions-flat", max(max(of) / min(of) for of in subscriptions)),
        paper.found("unbalanced-time", unbalanced(lambda one: one.time)),
        paper.found(
            "unbalanced-messages", unbalanced(lambda one: one.packages + one.subscriptions)
        ),
        paper.found("unbalanced-matchings", unbalanced(lambda one: one.matchings)),
    ]


def _models(paper: Paper, queries: list[Query]) -> list[Finding]:
    """One broker against 24."""

    def times(place: str, model: str) -> list[Query]:
        return [one for one in queries if (one.place, one.model) == (place, model)]

    def growth(place: str, model: str) -> float:
        few, *_, many = times(place, model)
        return many.time / few.time

    one_time = ("static", "dynamic")
    constant = max(growth("decentralised", model) for model in one_time)
    grows = min(growth("centralised", model) / growth("decentralised", model) for model in one_time)
    last = {(one.place, one.model): one for one in queries}  # that with the most matches
    parts = {
        model: last["decentralised", model].time / last["centralised", model].time
        for _, model in last
    }
    slowest = max(parts, key=lambda model: parts[model])
    told = ", ".join(f"{model} {ratio:.2f}" for model, ratio in parts.items())
    more = last["decentralised", "dynamic"].messages / last["centralised", "dynamic"].messages
    return [
        paper.found("decentralised-constant", constant),
        paper.found("centralised-grows", grows),
        paper.found("decentralised-faster", parts[slowest], told),
        paper.found("decentralised-messages", more),
    ]


def _direct(paper: Paper, found: dict[Forwarding, Metrics]) -> list[Finding]:
    return [
        paper.found(f"direct-{name}", of(found["direct"]) / (of(found["normal"]) or 1))
        for name, of in METRICS.items()
    ]
