"""That history obeys its bounds exactly, and what very many topics take."""

from __future__ import annotations

import resource
from collections.abc import Sequence

from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from nodes.recipes import peer
from nodes.settings import node_config
from overlay.host import Host, Recipe, Surroundings
from overlay.ids import NodeId
from overlay.sim import Simulator
from protocols.membership.machine import Membership
from protocols.topics.config import TopicConfig
from protocols.topics.machine import Topics
from protocols.topics.publishing import ITEM_BYTES, Publisher

ZONE = "bench"
PUBLISHED = 20_000
EACH_WITHIN = 0.001  # s of the world between two publishes
MESSAGE = bytes(100)
HISTORY_MESSAGES, HISTORY_BYTES = 2_000, 150_000
TOPICS, MEMBERS = 10_000, 100
READERS = 10  # subscribers of each topic
MEMORY_BAR = 2.0  # GB


def memory(report: Report, options: Options) -> None:
    """Bounds first, then the many."""
    progress = Progress("topics memory", 3)
    count = PUBLISHED // (20 if options.quick else 1)
    for mode in ("ack", "nack"):
        progress.step(f"bounds, {mode}")
        over, fullest = measure_alone(history_bound, mode, count)
        report.add(f"history at its fullest, {mode}", "of its bound", [fullest])
        what = f"history, {mode}: most over a bound, after each of {count:,} publishes"
        report.require(what, over, "bytes or messages", "at most", 0)
    topics, members = (50, 10) if options.quick else (TOPICS, MEMBERS)
    progress.step("many topics")
    size, streams = measure_alone(many_topics, topics, members)
    what = f"{topics:,} topics × {members} members"
    report.add(f"{what}, streams that arrive", "streams", [streams])
    report.require(f"{what} in the simulator: peak memory", size, "GB", "at most", MEMORY_BAR)


def member(sets: Sequence[str]) -> Recipe:
    """What `overlay peer` runs."""
    recipe = peer(node_config(insecure=True, profile="sim", sets=sets))

    def add(host: Host) -> None:
        host.surroundings = Surroundings(ZONE)
        recipe(host)

    return add


class World:
    """Members of one zone in the simulator, who all know each other."""

    def __init__(self, size: int, *, wire: bool = False, sets: Sequence[str] = ()) -> None:
        self.sim = Simulator(1, wire=wire, check_every=0)
        recipe = member(sets)
        self.names = [f"n{number}" for number in range(size)]
        for name in self.names:
            self.sim.add_node(name, recipe)
            if name != self.names[0]:
                self.sim.call(name, self._membership(name).join, self.names[:1])
        assert self.sim.run_until(self._complete, 60, every=0.1), "the zone never formed"

    def _complete(self) -> bool:
        size = len(self.names)
        return all(len(self._membership(name).view) == size for name in self.names)

    def _membership(self, name: NodeId) -> Membership:
        return self.sim.protocol(name, Membership, ZONE)

    def topics(self, name: NodeId) -> Topics:
        """The topics of a member."""
        return self.sim.protocol(name, Topics)

    def subscribe(self, name: NodeId, topic: str) -> None:
        """Have a member take a topic in; it reads at once whatever comes."""

        def begin(now: float) -> None:
            one = self.topics(name).subscribe(topic, now)

            def read() -> None:
                while one.queue:
                    one.take()

            one.on_batch(read)

        self.sim.call(name, begin)


def history_bound(mode: str, count: int) -> tuple[float, float]:
    """Publish faster than a subscriber acknowledges; the most over a bound, the fullest share."""
    world = World(3)
    sim = world.sim
    world.subscribe("n1", "load")
    sim.run_for(5)
    config = TopicConfig(
        reliability="ack" if mode == "ack" else "nack",
        history_messages=HISTORY_MESSAGES,
        history_bytes=HISTORY_BYTES,
    )
    out: Publisher = sim.call("n0", world.topics("n0").publish, "load", config)
    sim.run_for(1)
    size = len(MESSAGE) + ITEM_BYTES
    over = fullest = 0.0
    for number in range(count):
        taken = sim.call("n0", out.put, MESSAGE, size)
        if number % 512 == 0 or not taken:  # a history that is full needs acks
            sim.run_for(EACH_WITHIN)
        history = out.history
        messages = history.messages + len(out.items)
        held = history.bytes + size * len(out.items)
        over = max(over, messages - HISTORY_MESSAGES, held - HISTORY_BYTES)
        fullest = max(fullest, held / HISTORY_BYTES, messages / HISTORY_MESSAGES)
    return over, fullest


def many_topics(topics: int, members: int) -> tuple[float, int]:
    """One publisher and some subscribers for each topic; peak memory in GB, and streams."""
    world = World(members)
    sim, names = world.sim, world.names
    for number in range(topics):
        for step in range(1, READERS):
            world.subscribe(names[(number * 7 + step * 13) % members], f"load/{number}")
    sim.run_for(10)
    for number in range(topics):
        name = names[number % members]
        out = sim.call(name, world.topics(name).publish, f"load/{number}", TopicConfig())
        sim.call(name, out.put, MESSAGE, len(MESSAGE) + ITEM_BYTES)
    sim.run_for(3)
    streams = sum(world.topics(name).counts.delivered for name in names)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, streams
