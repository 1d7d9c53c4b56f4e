"""How fast the simulator delivers, and how small an idle node is.

Every node keeps 16 echo requests open, to peers drawn at random. In `windows` the 16 go to one
peer in one tick, as a busy application's do, and so travel as one frame; in `scattered` each
reply lets one request go to another peer, so that every message is a frame and a tick by
itself. Invariants are checked after every step, and all content goes into the trace hash.
"""

from __future__ import annotations

import tracemalloc
from functools import partial
from heapq import heapify, heappop, heappush
from random import Random
from time import perf_counter

from bench.processes import alternate
from bench.report import Options, Report, machine
from overlay.host import Host
from overlay.sim import Simulator
from protocols.echo import Echo, EchoAnswered, EchoConfig

NAME = "simulator"

NODES = 1000
WINDOW = 16
ACQUAINTANCES = 32  # peers that a node talks to, drawn at random
PAYLOAD = b"0123456789abcdef"
WARM_UP = 0.01  # seconds of the world: links come up
MEASURED = 0.1
IDLE_NODES = 2000


def echoing(host: Host) -> None:
    """The node under load."""
    host.add(Echo, EchoConfig())


def empty(host: Host) -> None:
    """A node with no protocol at all."""


class Load:
    """Keeps a node's window of requests open."""

    def __init__(self, sim: Simulator, name: str, peers: list[str], *, scattered: bool) -> None:
        self._sim = sim
        self._ask = sim.protocol(name, Echo).ask
        self._peers = peers
        self._draw = Random(name).random
        self._to_come = 0
        listener = self._ask_another if scattered else self._count_down
        sim.host(name).listen(EchoAnswered, listener)
        sim.call(name, self._scatter if scattered else self._open_window)

    def _peer(self) -> str:
        return self._peers[int(self._draw() * len(self._peers))]

    def _scatter(self, now: float) -> None:
        for _ in range(WINDOW):
            self._ask(self._peer(), PAYLOAD, now)

    def _ask_another(self, event: EchoAnswered) -> None:
        self._ask(self._peer(), PAYLOAD, self._sim.now)

    def _open_window(self, now: float) -> None:
        self._to_come = WINDOW
        peer = self._peer()
        for _ in range(WINDOW):
            self._ask(peer, PAYLOAD, now)

    def _count_down(self, event: EchoAnswered) -> None:
        self._to_come -= 1
        if not self._to_come:
            self._open_window(self._sim.now)


def delivery_rate(nodes: int, seconds: float, scattered: bool) -> float:
    """Messages delivered per second of wall time."""
    sim = Simulator(1)
    names = [f"n{index}" for index in range(nodes)]
    rng = Random(1)
    for name in names:
        sim.add_node(name, echoing)
    for name in names:
        peers = rng.sample(names, min(ACQUAINTANCES, nodes))
        Load(sim, name, peers, scattered=scattered)
    sim.run_for(WARM_UP)
    delivered, began = sim.traffic.messages, perf_counter()
    sim.run_for(seconds)
    return (sim.traffic.messages - delivered) / (perf_counter() - began)


def bare_heap_rate(pending: int, events: int) -> float:
    """Push and pop as many tuples as are under way, and do nothing else."""
    draw = Random(1).random
    heap = [(draw(), sequence, None) for sequence in range(pending)]
    heapify(heap)
    began = perf_counter()
    for sequence in range(pending, pending + events):
        at, _, _ = heappop(heap)
        heappush(heap, (at + draw(), sequence, None))
    return events / (perf_counter() - began)


def bytes_per_node(nodes: int, with_echo: bool) -> float:
    """Allocated for one more node that does nothing, without its protocols' own state."""
    sim = Simulator(1)
    recipe = echoing if with_echo else empty
    sim.add_node("first", recipe)
    tracemalloc.start()
    for index in range(nodes):
        sim.add_node(f"n{index}", recipe)
    whole = tracemalloc.get_traced_memory()[0]
    if not with_echo:
        return whole / nodes
    effects, rng, config = sim.protocol("first", Echo).effects, Random(1), EchoConfig()
    make = partial(Echo, "name", effects, rng, config)
    kept = [make() for _ in range(nodes)]
    own = tracemalloc.get_traced_memory()[0] - whole
    return (whole - own) / len(kept)


def run(options: Options) -> Report:
    """Measure both bars, beside a bare heap in the same run."""
    nodes, seconds, idle = (50, 0.02, 100) if options.quick else (NODES, MEASURED, IDLE_NODES)
    found = alternate(
        {
            "bare heap": (bare_heap_rate, (nodes * WINDOW, 50_000 if options.quick else 1_000_000)),
            "windows": (delivery_rate, (nodes, seconds, False)),
            "scattered": (delivery_rate, (nodes, seconds / 4, True)),
        },
        options.repeats,
    )
    memory = alternate(
        {
            "idle node": (bytes_per_node, (idle, True)),
            "empty node": (bytes_per_node, (idle, False)),
        },
        1,
    )
    report = Report(NAME, machine())
    heap = report.add("bare heap", "events/s", found["bare heap"])
    for case in ("windows", "scattered"):
        rate = report.add(f"echo, {case}", "messages/s", found[case])
        ratios = [ours / bare for ours, bare in zip(found[case], heap.repeats, strict=True)]
        report.add(f"echo, {case}, against the bare heap", "×", ratios)
        name = f"delivered with echo at {nodes} nodes, {case}"
        report.require(name, rate.median, "messages/s", "at least", 250_000)
    for case, repeats in memory.items():
        report.add(case, "bytes", repeats)
    name = "memory per idle node beyond its protocols' state"
    report.require(name, report.results["idle node"].median, "bytes", "at most", 12_000)
    return report
