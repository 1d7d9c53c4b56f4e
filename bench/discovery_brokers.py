"""Finding the nearest broker in the simulator: the paper's topologies, and how often it is right.

The paper's figures come from five machines on two continents; its round trips are not given, ours
are in configs/papers/broker-discovery.toml.
"""

from __future__ import annotations

from statistics import fmean, stdev

from bench.discovery_sites import Sites, kept
from bench.progress import Progress
from bench.report import Options, Report
from nodes.scenarios.discovery_world import (
    BDN,
    Client,
    bdn,
    broker,
    nearest,
    random_distances,
    start_brokers,
)
from overlay.sim import Exponential, NetworkModel, SimStage, Simulator
from protocols.discovery import BrokerFound, BrokerSettings, DiscoverySettings

TOPOLOGIES = ("unconnected", "linear", "star")  # in the order of the paper's waiting times
FIGURES = {"unconnected": "figure 2", "linear": "figure 11", "star": "figure 9"}
AT_HOME = "bloomington"  # where the client of figures 2, 9 and 11 was
CHOICES = 200  # runs
SLACK = 0.05  # s over the last wanted response and two round trips


def report_topologies(report: Report, options: Options) -> None:
    """Total time and its parts, by topology (figures 2, 9, 11) and by site (3 to 7)."""
    runs, keep = (6, 5) if options.quick else (120, 100)
    waiting: dict[str, float] = {}
    over: list[float] = []
    longest, right, total = 0.0, 0, 0
    sites = Sites("star", 1).paper["clients"]
    progress = Progress("discovery", len(TOPOLOGIES) * len(sites) + 1)
    for topology in TOPOLOGIES:
        world = Sites(topology, 1)
        for site in world.paper["clients"]:
            progress.step(f"{topology}, from {site}")
            ends = [world.discover(site) for _ in range(runs)]
            right += sum(one.winner.name == world.nearest(site) for one in ends)
            total += len(ends)
            longest = max(longest, *(one.phases.total for one in ends))
            over += [_over(one) for one in ends]
            _enter_site(report, f"{topology}, from {site}", ends, keep)
            if site == AT_HOME:
                waiting[topology] = _enter_shares(report, topology, ends)
    progress.step("multicast")
    over += _multicast(report, 5 if options.quick else 120)
    report.require("the nearest is chosen, all sites", 100 * right / total, "%", "at least", 99)
    report.require("longest of all", longest, "s", "at most", DiscoverySettings().timeout)
    report.require(
        "over last response + 2 × slowest ping, most", 1000 * max(over), "ms", "at most", 50
    )
    for topology, seconds in waiting.items():
        parts = report.results[f"{topology}: waiting"].median
        report.require(f"{topology}: waiting's share", parts, "%", "at least", 50)
        report.add(f"{topology}: waited", "ms", [1000 * seconds])
    _as_published(report, runs)


def _as_published(report: Report, runs: int) -> None:
    """The paper's BDN and client at the same sites: its claims about waiting."""
    waiting: dict[str, float] = {}
    for topology in TOPOLOGIES:
        world = Sites(topology, 1, as_published=True)
        ends = [world.discover(AT_HOME) for _ in range(runs)]
        label = f"{topology} as published ({FIGURES[topology]})"
        waiting[topology] = _enter_shares(report, label, ends)
        report.add(f"{label}: waited", "ms", [1000 * waiting[topology]])
        report.add(f"{label}: total", "ms", [1000 * fmean(one.phases.total for one in ends)])
        share = report.results[f"{label}: waiting"].median
        report.require(f"{label}: waiting's share", share, "%", "at least", 50)
    ordered = waiting["star"] <= waiting["linear"] <= waiting["unconnected"]
    report.require(
        "waiting as published: star ≤ linear ≤ unconnected", float(ordered), "", "at least", 1
    )
    report.notes.append(
        "as published: the paper waits least in a star and most where brokers are unconnected (83 %"
        " of the time), since its BDN turns to one broker after the other there. Ours has links to"
        " all of them and hands it over in one tick: unconnected brokers are then as near as in a"
        " star, and only a line takes longer, hop by hop"
    )
    report.notes.append("choosing takes no simulated time; over sockets `discover --json` tells it")


def _over(found: BrokerFound) -> float:
    """Seconds past the last response and two of the slowest round trip that was measured."""
    slowest = max(one.ping_least or 0.0 for one in found.candidates)
    return found.phases.total - found.phases.last_response - 2 * slowest


def _enter_site(report: Report, case: str, ends: list[BrokerFound], keep: int) -> None:
    """As the table of figure 3."""
    times = kept([1000 * one.phases.total for one in ends], keep)
    report.add(f"{case}: total", "ms", times)
    report.add(f"{case}: mean", "ms", [fmean(times)])
    report.add(f"{case}: standard deviation", "ms", [stdev(times)])


def _enter_shares(report: Report, topology: str, ends: list[BrokerFound]) -> float:
    """The parts of a discovery; the mean wait."""
    phases = [one.phases for one in ends]
    for part in ("waiting", "choosing", "pinging"):
        shares = [100 * getattr(one, part) / one.total for one in phases]
        report.add(f"{topology}: {part}", "%", [fmean(shares)])
    return fmean(one.waiting for one in phases)


def _multicast(report: Report, runs: int) -> list[float]:
    """Brokers of one laboratory and no BDN (figure 12)."""
    times, over = [], []
    for seed in range(runs):
        sim = Simulator(seed, check_every=0)
        stage = SimStage(sim, nodes=3)
        for name in ("b0", "b1", "b2"):
            stage.start(name, broker(BrokerSettings()))
        client = Client(stage, "client", DiscoverySettings())
        sim.run_for(1.0)
        wait = client.discover()
        assert sim.run_until(wait.condition, 4.01, every=0.001)
        times.append(1000 * client.found.phases.total)
        over.append(_over(client.found))
    report.add("multicast only: total", "ms", kept(times, max(1, runs * 5 // 6)))
    return over


def report_choice(report: Report, options: Options) -> None:
    """How often the nearest of five is chosen, when round trips are so far apart."""
    runs = 10 if options.quick else CHOICES
    progress = Progress("discovery, choice", 2)
    for apart, bar in ((0.002, 99.0), (0.0005, 90.0)):
        label = f"{1000 * apart:g} ms apart"
        progress.step(label)
        right = 0
        for seed in range(runs):
            right += _chooses_the_nearest(seed, apart)
        share = 100 * right / runs
        report.add(f"the nearest is chosen, {label}", "%", [share])
        report.require(f"the nearest is chosen, {label}", share, "%", "at least", bar)
    report.notes.append("choice: each way a queue adds 0.2 ms on the average (exponential)")


def _chooses_the_nearest(seed: int, apart: float) -> bool:
    sim = Simulator(seed, NetworkModel(latency=Exponential(0.0002, 0.0005)), check_every=0)
    stage = SimStage(sim, nodes=5)
    distances = random_distances(stage, 5, apart)
    stage.start("bdn", bdn())
    start_brokers(stage, distances, stage.rng.choice(TOPOLOGIES))
    client = Client(stage, "client", DiscoverySettings(bdns=(BDN,)))
    sim.run_for(2.0)
    wait = client.discover()
    assert sim.run_until(wait.condition, 4.01, every=0.001)
    return client.found.winner.name == nearest(distances)
