"""The paper's city in the simulator: a tree of brokers, publishers that move, and their probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import process_time
from typing import Any

from bench.mobility_meter import Meter
from bench.mobility_workload import Outcome, Workload, closest, distance, leaves, tree
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.predicates import Constraint, Predicate
from overlay.sim import Constant, NetworkModel, Simulator
from overlay.sim.faults import Passage, Rule
from protocols.content import Content, ContentSettings, Delivered
from protocols.content.messages import Role
from protocols.mobility import Mobility, MobilitySettings, TreeStands

QUIET = 3600.0  # s between greetings: nobody fails here, and the paper has none
LEASE = 86_400.0
WHAT = "what"  # the attribute that tells one publication from another
ENTRY = "it"  # how a client calls its only advertisement or subscription
CONNECTING = 20.0  # s in which all clients connect, at random
DRAINING = 15.0  # s in which nothing arrives any more: then nothing is under way
LONGEST_DRAINING = 300.0  # s after the last move


@dataclass
class Publisher:
    """Who moves, how fast, and where."""

    name: NodeId
    what: int  # what it publishes
    period: float  # s in one cell
    cell: int
    visits: range  # the cells that it ever visits
    heading: int
    counts: bool = False  # whether its moves are measured by now


@dataclass(frozen=True)
class Waking(Rule):
    """A link that was silent for a while takes some time before the next frame gets through."""

    takes: float  # s
    asleep_after: float  # s
    spoke: dict[tuple[NodeId, NodeId], float] = field(default_factory=dict)

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """What finds its link asleep."""
        last = self.spoke.get((source, target))
        self.spoke[source, target] = now
        return last is None or now - last > self.asleep_after

    def bend(self, passage: Passage, rng: Random) -> None:
        """Be late; what follows keeps its order."""
        for copy in passage:
            copy.extra += self.takes


class City:
    """Brokers, clients and movement; `play` returns what was measured."""

    def __init__(self, paper: dict[str, Any], workload: Workload) -> None:
        self.paper = paper
        self.workload = workload
        self.rng = Random(f"{workload.seed}/city")
        height, degree = int(paper["height"]), int(paper["degree"])
        self.brokers = tree(height, degree)
        self.cells = leaves(height, degree)
        self.publishers: list[Publisher] = []
        self.meter = Meter(workload.size, lambda one, other: distance(one, other, degree))
        between, client = paper["link"] * 125, paper["client_link"] * 125  # kbit/s to bytes/s

        def bandwidth(source: NodeId, target: NodeId) -> float:
            """Brokers that are not neighbours talk over several links, one after the other."""
            if source[0] == target[0] == "b":
                return float(between) / distance(source, target, degree)
            return float(client)

        network = NetworkModel(
            latency=Constant(paper["latency"] / 1000), bandwidth=bandwidth, weigh=self.meter
        )
        self.sim = Simulator(workload.seed, network, check_every=0)
        if workload.idle:
            self.sim.faults.add(Waking(workload.idle / 1000, paper["asleep_after"]))
        probes = int(paper["probes"])
        self.outcome = Outcome(workload, expected=[0] * probes, delivered=[0] * probes)
        self._under_way: dict[tuple[str, int], tuple[int, float, set[str]]] = {}
        self._wanting: Counter[int] = Counter()  # subscribers of each publication
        self._ends = 0.0  # no publisher leaves after that

    # -- before anybody moves -------------------------------------------------------------------

    def build(self) -> None:
        """Brokers, then clients; until nobody tells anybody anything new."""
        sim = self.sim
        for name, parent in self.brokers.items():
            sim.add_node(name, self._broker((parent,) if parent else ()))
        sim.run_for(5.0)
        alike = round(self.workload.locality * self.workload.publishers)
        kinds = [0 if one < alike else one for one in range(self.workload.publishers)]
        for number, what in enumerate(kinds):
            self._add_publisher(f"p{number:03}", what)
        for number in range(self.workload.subscribers):
            self._add_subscriber(f"s{number:04}", self.rng.choice(kinds))
        sim.run_for(CONNECTING)
        told = -1
        while told != self.meter.told:
            told = self.meter.told
            sim.run_for(5.0)

    def _add_publisher(self, name: NodeId, what: int) -> None:
        period = 3600 * self.paper["cell"] / self.rng.choice(self.workload.speeds)
        cell = self.rng.randrange(len(self.cells))
        heading = self.rng.choice((-1, 1))
        first = self.workload.first_counts
        one = Publisher(name, what, period, cell, self._visits(cell), heading, first)
        self.publishers.append(one)
        self.sim.add_node(name, self._publisher(one))

        def connect() -> None:
            content = self.sim.protocol(name, Content)
            self.sim.call(name, content.advertise, ENTRY, wanting(what))
            self._move_in(one)
            if one.counts:
                self._begin_probes(one)

        self._some_time(connect)

    def _add_subscriber(self, name: NodeId, what: int) -> None:
        broker = self.rng.choice(self.cells)
        self._wanting[what] += 1
        self.sim.add_node(name, self._subscriber())

        def connect() -> None:
            content = self.sim.protocol(name, Content)
            self.sim.call(name, content.subscribe, ENTRY, wanting(what))
            self.sim.call(name, content.attach, broker)

        self._some_time(connect)

    def _some_time(self, connect: Callable[[], None]) -> None:
        self.sim.at(self.sim.now + self.rng.uniform(0, CONNECTING), connect)

    def _visits(self, first: int) -> range:
        past = self.workload.overshoot
        if past is None:
            return range(len(self.cells))
        near = closest(first, int(self.paper["proxies"]), len(self.cells))
        return range(max(0, near.start - past), min(len(self.cells), near.stop + past))

    # -- moving ---------------------------------------------------------------------------------

    def play(self) -> Outcome:
        """Let all publishers move; what begins in the measured time counts."""
        self.build()
        load, sim, outcome = self.workload, self.sim, self.outcome
        self._ends = sim.now + load.warm_up + load.duration
        for one in self.publishers:
            part = 1.0 if load.in_step else self.rng.random()  # of its cell lies before it
            sim.at(sim.now + part * one.period, partial(self._leave, one))
        sim.run_for(load.warm_up)
        for one in self.publishers:
            one.counts = True
        before = Counter(self.meter.hops)
        started = process_time()
        sim.run_for(load.duration)
        outcome.processor = process_time() - started
        outcome.hops = self.meter.hops - before
        self._count_entries()
        self._drain()
        return outcome

    def _drain(self) -> None:
        """Wait for all probes under way: where links are overloaded some are, for minutes."""
        until, arrived = self.sim.now + LONGEST_DRAINING, -1
        while arrived != len(self.outcome.latencies) and self.sim.now < until:
            arrived = len(self.outcome.latencies)
            self.sim.run_for(DRAINING)

    def _leave(self, one: Publisher) -> None:
        sim = self.sim
        if sim.now >= self._ends:
            return
        if self.rng.random() < self.workload.turns:
            one.heading = -one.heading
        if one.cell + one.heading not in one.visits:
            one.heading = -one.heading
        one.cell += one.heading
        self._move_out(one)
        sim.at(sim.now + self.paper["disconnected"], partial(self._arrive, one, one.counts))
        sim.at(sim.now + one.period, partial(self._leave, one))

    def _arrive(self, one: Publisher, counts: bool) -> None:
        self._move_in(one)
        self.outcome.moves += counts
        if self.workload.probing:
            self._begin_probes(one, counts)

    def _move_out(self, one: Publisher) -> None:
        self.sim.call(one.name, self.sim.protocol(one.name, Mobility).moveout)

    def _move_in(self, one: Publisher) -> None:
        mobility = self.sim.protocol(one.name, Mobility)
        self.sim.call(one.name, mobility.movein, self.cells[one.cell])

    # -- probes ---------------------------------------------------------------------------------

    def _begin_probes(self, one: Publisher, counts: bool = True) -> None:
        sim, paper = self.sim, self.paper
        for number in range(int(paper["probes"])):
            after = paper["first_probe"] + number * paper["probing"] / paper["probes"]
            sim.at(sim.now + after, partial(self._probe, one, number, counts))

    def _probe(self, one: Publisher, number: int, counts: bool) -> None:
        content = self.sim.protocol(one.name, Content)
        sequence = self.sim.call(one.name, content.publish, ENTRY, {WHAT: one.what})
        if counts:
            self.outcome.expected[number] += self._wanting[one.what]
            self._under_way[f"{one.name}/{ENTRY}", sequence] = (number, self.sim.now, set())

    def _on_delivered(self, event: Delivered) -> None:
        probe = self._under_way.get((event.advertisement, event.sequence))
        if probe is None:
            return
        number, sent, had = probe
        if event.subscription in had:
            self.outcome.doubled += 1
            return
        had.add(event.subscription)
        self.outcome.delivered[number] += 1
        self.outcome.latencies.append(self.sim.now - sent)

    def _count_entries(self) -> None:
        routers = [self.sim.protocol(name, Content).router for name in self.brokers]
        count, outcome, degree = len(routers), self.outcome, int(self.paper["degree"])
        outcome.advertisements = sum(len(one.srt) for one in routers) / count
        outcome.subscriptions = sum(len(one.prt) for one in routers) / count
        first = 0
        for level in range(int(self.paper["height"])):
            there = routers[first : first + degree**level]
            outcome.by_level.append(sum(len(one.srt) + len(one.prt) for one in there) / len(there))
            first += len(there)

    # -- recipes --------------------------------------------------------------------------------

    def _broker(self, links: tuple[NodeId, ...]) -> Recipe:
        settings = self._routing("broker", links)
        mobility = MobilitySettings(teardown=self.paper["teardown"], proxy_lease=LEASE)

        def add(host: Host) -> None:
            host.add(Mobility, mobility, content=host.add(Content, settings))

        return add

    def _publisher(self, one: Publisher) -> Recipe:
        near = closest(one.cell, int(self.paper["proxies"]), len(self.cells))
        settings = self._routing("client")
        mobility = MobilitySettings(
            algorithm=self.workload.algorithm,
            handover=self.workload.handover,
            predictor="perfect",
            proxies=tuple(self.cells[cell] for cell in near),
            proxy_lease=LEASE,
        )

        def stands(event: TreeStands) -> None:
            if one.counts:
                self.outcome.rebuilt.append(event.waited)

        def add(host: Host) -> None:
            content = host.add(Content, settings)
            plan = lambda: self.cells[one.cell]  # noqa: E731
            host.add(Mobility, mobility, content=content, plan=plan)
            host.listen(TreeStands, stands)

        return add

    def _subscriber(self) -> Recipe:
        settings = self._routing("client")

        def add(host: Host) -> None:
            host.add(Content, settings)
            host.listen(Delivered, self._on_delivered)

        return add

    def _routing(self, role: Role, links: tuple[NodeId, ...] = ()) -> ContentSettings:
        settle = self.paper["settle"]
        return ContentSettings(
            role=role, links=links, settle=settle, beat=QUIET, lease=LEASE, client_lease=LEASE
        )


def wanting(what: int) -> Constraint:
    """The advertisement of a publication, and the subscription to it."""
    return Constraint.of(Predicate(WHAT, "=", what))
