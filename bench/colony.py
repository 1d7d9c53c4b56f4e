"""Colonies: the paper's world by its own protocol, all modes side by side, scale and churn.

Everything here counts messages of the protocol's machines, run in memory (`colony_dispatch`): only
`speed` is a matter of this machine.
"""

from __future__ import annotations

from random import Random
from statistics import fmean
from time import perf_counter, process_time

from bench.colony_topology import Shape
from bench.colony_world import PaperWorld
from bench.papers.arigatoni import figure_2b, takes_over
from bench.papers.published import read
from bench.report import Options, Report, Section, run_sections
from protocols.colony import Colony, ColonySettings, Terms
from protocols.colony.interface import MODES

NAME = "colony"
WITHIN = 15.0  # s for 50,000 requests on one core
REQUESTS = 50_000


def speed(report: Report, options: Options) -> None:
    """50,000 requests on 103 brokers: how long this takes."""
    count = 1_000 if options.quick else REQUESTS
    seconds = []
    for seed in range(1 if options.quick else min(3, options.repeats)):
        world = PaperWorld(seed, 0.04)
        began = process_time()
        world.run(count, Terms("greedy-random"))
        seconds.append((process_time() - began) * REQUESTS / count)
    report.add("50,000 requests, 103 brokers", "s of one core", seconds)
    report.require("50,000 requests on 103 brokers", min(seconds), "s", "at most", WITHIN)


def figure_2(report: Report, options: Options) -> None:
    """Loads and acceptance by availability, on several topologies."""
    paper = read("arigatoni")
    loads = figure_2b(paper, quick=options.quick)
    for availability, found in loads.items():
        label = f"availability {100 * availability:g} %"
        report.add(f"{label}: average load", "%", [100 * one.average for one in found])
        report.add(f"{label}: busiest", "%", [100 * one.busiest for one in found])
        report.add(f"{label}: served", "%", [100 * one.served for one in found])
        depths = sorted(one.busiest_depth for one in found)
        report.notes.append(f"{label}: the busiest is {depths} levels below the root")
    crossing = takes_over(loads)
    told = "never" if crossing is None else f"from {100 * crossing:g} % on"
    report.notes.append(f"a subleader is busier than the root {told}")


def modes(report: Report, options: Options) -> None:
    """What each search mode costs, and finds."""
    for mode in MODES:
        for fanout in (1, 3) if mode.startswith("greedy") else (0,):
            world = PaperWorld(1, 0.04)
            load = world.run(300 if options.quick else 10_000, Terms(mode, fanout))
            label = f"{mode}, {fanout} at a time" if fanout else mode
            report.add(f"{label}: average load", "%", [100 * load.average])
            report.add(f"{label}: busiest", "%", [100 * load.busiest])
            report.add(f"{label}: served", "%", [100 * load.served])
            report.add(f"{label}: messages", "per request", [load.messages])
            report.add(f"{label}: hops", "brokers", [load.hops])
    report.notes.append("nothing takes time in memory: by latency means here the oldest first")


SHAPES = {
    "2 transit, 2 stubs": Shape(transit_nodes=2, stubs=2),
    "3 transit, 1 stub": Shape(transit_nodes=3, stubs=1),
    "4 transit, 3 stubs": Shape(transit_nodes=4, stubs=3),
}


def shapes(report: Report, options: Options) -> None:
    """How much the topology decides: the parameters of the model, and both kinds of tree."""
    for label, shape in SHAPES.items():
        for kind in ("domains", "shortest"):
            shaped = Shape(103, 1, shape.transit_nodes, shape.stubs, tree=kind)
            loads = [
                PaperWorld(seed, 0.06, shape=shaped).run(
                    200 if options.quick else 4_000, Terms("greedy-random")
                )
                for seed in range(2 if options.quick else 5)
            ]
            report.add(f"{label}, {kind}: average load", "%", [100 * one.average for one in loads])
            report.add(f"{label}, {kind}: busiest", "%", [100 * one.busiest for one in loads])


def scale(report: Report, options: Options) -> None:
    """More and more brokers with a hundred computers each, as agents: 10,000 are a million."""
    sizes = (103, 300) if options.quick else (103, 1_000, 10_000)
    per_broker = 100
    for size in sizes:
        shape = _shape_of(size)
        # Each computer offers a service with so small a chance that six brokers in a hundred have
        # somebody who does, as at the paper's 6 %.
        one_computer = 1 - (1 - 0.06) ** (1 / per_broker)
        availability = 1 - (1 - one_computer) ** per_broker
        began = perf_counter()
        world = PaperWorld(1, availability, shape=shape)
        built = perf_counter() - began
        load = world.run(200 if options.quick else 5_000, Terms("greedy-random"))
        label = f"{size:,} brokers, {size * per_broker:,} computers"
        report.add(f"{label}: brokers that see a request", "brokers", [load.average * size])
        report.add(f"{label}: busiest", "%", [100 * load.busiest])
        report.add(f"{label}: hops", "brokers", [load.hops])
        report.add(f"{label}: served", "%", [100 * load.served])
        report.add(f"{label}: tables built in", "s", [built])


def _shape_of(size: int) -> Shape:
    """Stub domains of about 25 brokers, and as many transit nodes as that takes."""
    stubs = max(1, size // 25)
    transit = max(2, round(stubs**0.5))
    return Shape(size, 1, transit, max(1, stubs // transit))


def churn(report: Report, options: Options) -> None:
    """Subleaders vanish and return between requests; their individuals turn to the grandparent."""
    settings = ColonySettings(beat=0.5, lease=1.75, login_within=0.3, retry=0.2, home_every=5.0)
    for share in (0.0, 0.05, 0.2):
        world = PaperWorld(1, 0.06, settings=settings)
        rng = Random(7)
        served, lost = [], 0
        rounds = 3 if options.quick else 20
        for _ in range(rounds):
            away = _take_away(world, share, rng)
            lost += len(away)
            load = world.run(50 if options.quick else 500, Terms("greedy-random"))
            served.append(100 * load.served)
            for name, machine in away.items():
                world.restart(name, machine)
            world.world.pass_time(3.0)
        label = f"{100 * share:g} % of brokers vanish each round"
        report.add(f"{label}: served", "%", served)
        report.notes.append(f"{label}: {lost} did, in {rounds} rounds; mean {fmean(served):.1f} %")


def _take_away(world: PaperWorld, share: float, rng: Random) -> dict[str, Colony]:
    names = [name for name in world.names if name != world.root and rng.random() < share]
    gone = {name: world.world.machines[name] for name in names}
    for name in names:
        world.world.remove(name)
        world.names.remove(name)
    world.world.pass_time(4.0)  # until everybody noticed
    return gone


SECTIONS: dict[str, Section] = {
    "speed": speed,
    "figure-2": figure_2,
    "modes": modes,
    "shapes": shapes,
    "scale": scale,
    "churn": churn,
}


def run(options: Options) -> Report:
    """Run the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
