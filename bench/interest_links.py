"""Links between subscribers: how many it takes that each topic's subscribers reach each other.

SpiderCast (DEBS 2007) says of 10,000 nodes, 1,000 topics and 70 subscriptions a node: an average
degree at least 45 % below overlays of rings, of random and of similar neighbours. Here the
selection that peers run (`protocols/topology`) chooses the links, once for interest alone, as
there, and once with the settings as shipped: with the links of the zone, and a degree bound that 70
subscriptions exceed. In the large case everybody knows 2 % of the others (partial views, as there),
in the small one everybody knows all. The popularity of topic i falls as 1 / i^0.5.

Of the overlays to compare with two take their usual form (`rings`, `similar`) and a thriftier one,
which shares links between topics; the bars are on the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from bench.interest_overlays import (
    Ours,
    covering,
    one_order,
    own_order,
    random_picks,
    ring_per_topic,
    similar_picks,
    useful_similar_picks,
)
from bench.interest_workload import Links, Overlay, Subscriptions, judge, subscriptions, views
from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report, Section, run_sections
from protocols.topology.config import TopologySettings

NAME = "interest-links"

TOPICS, EACH, SKEW = 1000, 70, 0.5
SMALL, LARGE = 1000, 10_000
KNOWN_OF_LARGE = 0.02
QUICK_SMALL, QUICK_LARGE = 60, 120
QUICK_TOPICS, QUICK_EACH, QUICK_KNOWN = 40, 8, 0.5
FEWER = 45.0  # %

SHIPPED = TopologySettings()
INTEREST_ALONE = TopologySettings(ring_links=1, structured_links=0, random_links=0, max_degree=1024)
K = SHIPPED.greedy_coverage + SHIPPED.random_coverage
OURS, AS_SHIPPED = "ours, interest alone", "ours, as shipped"
RINGS, RANDOM, SIMILAR = "rings", "random", "similar"
REFERENCES = (RINGS, RANDOM, SIMILAR)


def _build(overlay: str, interest: Subscriptions, known: float, seed: int) -> Links:
    view = partial(views, interest, known, SHIPPED.ring_links, Random(seed))
    rng = Random(seed + 1)
    builders: dict[str, Callable[[], Links]] = {
        OURS: lambda: Ours(view(), INTEREST_ALONE, rng).build(),
        AS_SHIPPED: lambda: Ours(view(), SHIPPED, rng).build(),
        RINGS: lambda: ring_per_topic(interest, own_order),
        "rings in one order": lambda: ring_per_topic(interest, one_order),
        RANDOM: lambda: covering(interest, view(), K, rng, random_picks),
        SIMILAR: lambda: covering(interest, view(), K, rng, similar_picks),
        "similar, if useful": lambda: covering(interest, view(), K, rng, useful_similar_picks),
    }
    return builders[overlay]()


OVERLAYS = (
    OURS,
    AS_SHIPPED,
    RINGS,
    "rings in one order",
    RANDOM,
    SIMILAR,
    "similar, if useful",
)


def measure(overlay: str, nodes: int, topics: int, each: int, known: float, seed: int) -> Overlay:
    """Build one overlay and look at it."""
    interest = subscriptions(nodes, topics, each, SKEW, Random(seed))
    return judge(_build(overlay, interest, known, seed), interest)


def _report_small(report: Report, options: Options) -> None:
    nodes = QUICK_SMALL if options.quick else SMALL
    _report_size(report, options, nodes, 1.0, options.repeats)


def _report_large(report: Report, options: Options) -> None:
    nodes, known = (QUICK_LARGE, QUICK_KNOWN) if options.quick else (LARGE, KNOWN_OF_LARGE)
    _report_size(report, options, nodes, known, 1)  # it takes minutes, and varies little


def _report_size(report: Report, options: Options, nodes: int, known: float, rounds: int) -> None:
    topics, each = (QUICK_TOPICS, QUICK_EACH) if options.quick else (TOPICS, EACH)
    alone = measure if options.quick else partial(measure_alone, measure)
    progress = Progress(NAME, len(OVERLAYS) * rounds)
    found: dict[str, list[Overlay]] = {overlay: [] for overlay in OVERLAYS}
    for seed in range(rounds):
        for overlay in OVERLAYS:
            progress.step(f"{overlay}, {nodes} nodes, seed {seed}")
            found[overlay].append(alone(overlay, nodes, topics, each, known, seed))
    for overlay, repeats in found.items():
        of = f"{overlay}, {nodes} nodes"
        report.add(f"{of}: average degree", "links", [one.degree for one in repeats])
        report.add(f"{of}: largest degree", "links", [one.largest for one in repeats])
        report.add(f"{of}: connected topics", "%", [100 * one.connected for one in repeats])
        report.add(f"{of}: subscriptions apart", "%", [100 * one.apart for one in repeats])
    whole = report.results[f"{OURS}, {nodes} nodes: connected topics"].median
    report.require(f"connected topics, {nodes} nodes", whole, "%", "at least", 100)
    ours = report.results[f"{OURS}, {nodes} nodes: average degree"].median
    for overlay in REFERENCES:
        other = report.results[f"{overlay}, {nodes} nodes: average degree"].median
        bar = f"average degree below {overlay}, {nodes} nodes"
        report.require(bar, 100 * (1 - ours / other), "%", "at least", FEWER)


SECTIONS: dict[str, Section] = {"small": _report_small, "large": _report_large}


def run(options: Options) -> Report:
    """Build all overlays at both sizes."""
    return run_sections(NAME, SECTIONS, options)
