"""What a publisher with 199 subscribers pays: sending to each, or a pruned broadcast.

In the simulator, where messages are encoded as on the wire: 200 nodes with a link to each other
take more descriptors than a process may have. What counts is the CPU time of the publisher's own
calls, each of which publishes one message and sends it on its way.
"""

from __future__ import annotations

from statistics import median
from time import process_time

from bench.processes import measure_alone
from bench.progress import Progress
from bench.report import Options, Report
from bench.topics_memory import MESSAGE, World
from protocols.topics.config import TopicConfig
from protocols.topics.publishing import ITEM_BYTES, Publisher

MEMBERS, QUICK_MEMBERS = 200, 20
PUBLISHED = 100
PAUSE = 0.05  # s of the world between two messages
MOST_REPEATS = 3
SHARE_BAR = 1 / 5

ROUTES = {"direct": (100_000, 99_999), "pruned broadcast": (3, 2)}  # tree_from, tree_until


def tree(report: Report, options: Options) -> None:
    """Every member gets every message, or the measurement fails."""
    repeats = min(options.repeats, MOST_REPEATS)
    members = QUICK_MEMBERS if options.quick else MEMBERS
    progress = Progress("topics tree", repeats * len(ROUTES))
    found: dict[str, list[float]] = {route: [] for route in ROUTES}
    for _ in range(repeats):
        for route, (tree_from, tree_until) in ROUTES.items():
            progress.step(route)
            found[route].append(measure_alone(publisher_cpu, members, tree_from, tree_until))
    for route, values in found.items():
        report.add(f"{members} members, publisher's CPU, {route}", "µs/message", values)
    share = median(found["pruned broadcast"]) / median(found["direct"])
    what = f"{members} members: publisher's CPU, pruned broadcast against direct"
    report.require(what, share, "×", "at most", SHARE_BAR)


def publisher_cpu(members: int, tree_from: int, tree_until: int) -> float:
    """CPU time of a call that publishes one message in nack mode, in µs."""
    sets = [f"topics.tree_from={tree_from}", f"topics.tree_until={tree_until}"]
    world = World(members, wire=True, sets=sets)
    sim = world.sim
    for name in world.names[1:]:
        world.subscribe(name, "load")
    sim.run_for(15)
    publish = world.topics("n0").publish
    out: Publisher = sim.call("n0", publish, "load", TopicConfig(reliability="nack"))
    sim.run_for(1)
    size = len(MESSAGE) + ITEM_BYTES
    spent = 0.0
    for _ in range(PUBLISHED):
        began = process_time()
        sim.call("n0", out.put, MESSAGE, size)
        spent += process_time() - began
        sim.run_for(PAUSE)
    sim.run_for(2)
    got = sum(world.topics(name).counts.delivered for name in world.names)
    if got != PUBLISHED * (members - 1):
        raise RuntimeError(f"{got} of {PUBLISHED * (members - 1)} messages arrived")
    return spent / PUBLISHED * 1e6
