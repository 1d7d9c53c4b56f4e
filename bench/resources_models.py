"""Figures 12 and 13: the four models on one broker, and on 24; how long they take, and messages.

A broker answers a static request at once, to an application on its own node. What lies between a
client and its broker is added here: a message each way, and the broker's queue.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

from bench.report import Options, Report
from bench.resources_paper import QUICK, SEED, settings
from bench.resources_workload import TAGS, Asked, Registered, resources
from bench.resources_world import Cluster
from overlay.ids import NodeId
from overlay.predicates import Constraint, Predicate
from protocols.content import AdvertisementAdded, Content
from protocols.resources import ModelType, ResourceFound, Resources

MATCHES = (0.05, 0.15, 0.25, 0.35, 0.45)  # of all resources, that a set of requests expects


class Query(NamedTuple):
    """One way to have brokers, one model, one number of matches."""

    place: str
    model: str
    matches: float  # found by a request on average; continuous: notices of one
    time: float  # ms
    messages: int  # hops, from the registration on


def models(report: Report, options: Options) -> None:
    """All four of them."""
    for found in play(quick=options.quick):
        label = f"{found.model}, {found.place}, {found.matches:.0f} matches"
        report.add(f"figure 12: {label}: query time", "ms", [found.time])
        report.add(f"figure 13: {label}: messages", "hops", [float(found.messages)])


def play(*, quick: bool) -> list[Query]:
    """Every model, centralised and decentralised, the one-time ones with more and more matches."""
    found: list[Query] = []
    for place in ("centralised", "decentralised"):
        found += _one_time(place, ModelType.STATIC, _ask_static, quick=quick)
        found += _one_time(place, ModelType.DYNAMIC, _ask_dynamic, quick=quick)
        found.append(_static_continuous(place, quick=quick))
        found.append(_dynamic_continuous(place, quick=quick))
    return found


def _world(place: str, made: list[Registered]) -> Cluster:
    return Cluster(settings(), made, "normal", seed=SEED, centralised=place == "centralised")


def _made(count: int) -> list[Registered]:
    return resources(Random(f"{SEED}/models"), count, int(settings()["brokers"]), "balanced")


def _size(paper: dict[str, Any], *, quick: bool) -> int:
    return QUICK if quick else int(paper["resources"])


def _one_time(
    place: str,
    model: ModelType,
    ask: Callable[[Cluster, list[Asked]], tuple[float, float]],
    *,
    quick: bool,
) -> list[Query]:
    """Sets of requests with more and more matches, one after the other."""
    paper = settings()
    world = _world(place, _made(_size(paper, quick=quick)))
    world.register(model)
    each = (QUICK if quick else int(paper["requests"])) // len(MATCHES)
    rate = int(paper["requests"]) / paper["duration"]
    found = []
    for share in MATCHES:
        world.sim.run_for(2 * float(paper["expiry"]))
        before = _messages(world)
        wanted = _request(world, share, model)
        rng = Random(f"{SEED}/{share}")
        times = sorted(rng.uniform(0, each / rate) for _ in range(each))
        asked = [Asked(at, rng.randrange(world.size), wanted) for at in times]
        time, matches = ask(world, asked)
        found.append(Query(place, model.value, matches, time, _messages(world) - before))
    return found


def _request(world: Cluster, share: float, model: ModelType) -> Constraint:
    """`a > x` that about this share of all resources match."""
    if model is ModelType.STATIC:
        have = sorted(one.limits["a"] for one in world.resources if "a" in one.limits)
    else:
        have = sorted(item["a"] for item in world.items if "a" in item)
    wanted = round(share * len(world.resources))
    return Constraint.of(Predicate("a", ">", have[-wanted] - 1))


def _ask_dynamic(world: Cluster, asked: list[Asked]) -> tuple[float, float]:
    metrics = world.play(asked)
    return metrics.time, metrics.results


def _ask_static(world: Cluster, asked: list[Asked]) -> tuple[float, float]:
    sim, times, sizes = world.sim, [], []
    began = sim.now
    for one in asked:
        sim.run_for(max(0.0, began + one.at + world.latency - sim.now))
        broker = world.broker_of(one.broker)
        machine = sim.protocol(broker, Resources)
        found = sim.call(broker, machine.find_static, one.constraint, 0, False)
        answered = world.busy(broker, messages=1, results=len(found)) + world.latency
        world.hops += 2
        times.append(answered - began - one.at)
        sizes.append(len(found))
    return 1000 * fmean(times), fmean(sizes)


def _static_continuous(place: str, *, quick: bool) -> Query:
    """One request at each broker, or all of them at one; then resources are registered."""
    paper = settings()
    world = _world(place, _made(_size(paper, quick=quick)))
    sim, times = world.sim, []
    registered: dict[str, float] = {}

    def matched(broker: NodeId, _event: AdvertisementAdded) -> None:
        world.busy(broker, matchings=1)  # of the advertisement with the requests that go on

    def told(broker: NodeId, event: ResourceFound) -> None:
        at = world.busy(broker, messages=1, results=1) + world.latency
        world.hops += 1
        times.append(at - registered[event.resource.id])

    for number in range(world.size):
        broker = world.broker_of(number)
        machine = sim.protocol(broker, Resources)
        sim.call(broker, machine.watch, _tag_request(number), ModelType.STATIC_CONTINUOUS)
    for broker in world.brokers:
        host = sim.host(broker)
        host.listen(AdvertisementAdded, partial(matched, broker))
        host.listen(ResourceFound, partial(told, broker))
    before = _messages(world)
    gap = paper["duration"] / len(world.resources)
    for one in world.resources:
        client = f"c{one.broker:02}"
        registered[f"{client}/{one.name}"] = sim.now
        machine = sim.protocol(client, Resources)
        sim.call(client, machine.register, one.name, one.description, ModelType.STATIC, None, 0.0)
        sim.run_for(gap)
    sim.run_for(20.0)
    messages = _messages(world) - before
    return Query(place, "static continuous", len(times) / world.size, 1000 * fmean(times), messages)


def _dynamic_continuous(place: str, *, quick: bool) -> Query:
    """One resource and one request at each broker; then the resources change 50 times each."""
    paper = settings()
    made = [one._replace(limits=dict.fromkeys(TAGS, 100)) for one in _made(int(paper["brokers"]))]
    world = _world(place, made)
    world.register()
    sim, times = world.sim, []
    updated: dict[str, float] = {}

    def told(event: ResourceFound) -> None:
        if event.resource.id in updated:
            times.append(sim.now - updated[event.resource.id])

    for number in range(world.size):
        client = f"c{number:02}"
        machine = sim.protocol(client, Resources)
        sim.call(client, machine.watch, _tag_request(number), ModelType.DYNAMIC_CONTINUOUS)
        sim.host(client).listen(ResourceFound, told)
    sim.run_for(10.0)
    before = _messages(world)
    rounds = 5 if quick else 50
    gap = paper["duration"] / (rounds * len(made))
    for _ in range(rounds):
        for one in made:
            client = f"c{one.broker:02}"
            updated[f"{client}/{one.name}"] = sim.now
            machine = sim.protocol(client, Resources)
            sim.call(client, machine.update, one.name, one.values(world.rng))
            sim.run_for(gap)
    sim.run_for(20.0)
    messages = _messages(world) - before
    return Query(
        place, "dynamic continuous", len(times) / world.size, 1000 * fmean(times), messages
    )


def _tag_request(number: int) -> Constraint:
    """A different one at each broker: above some bound on one of the tags."""
    return Constraint.of(Predicate(TAGS[number % len(TAGS)], ">", 40 + number))


def _messages(world: Cluster) -> int:
    """Hops so far: of requests, results, publications, and lines that advertise or subscribe."""
    total = world.hops
    for name in world.sim.nodes:
        asked = world.sim.protocol(name, Resources).counts
        routed = world.sim.protocol(name, Content).counts
        total += asked.requests_sent + asked.result_messages + routed.forwarded + routed.lines
    return total
