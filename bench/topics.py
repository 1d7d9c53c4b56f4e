"""Topics beside raw pyzmq doing the same work in the same run, and what they cost in memory.

Each end is a process on tcp loopback. The raw ends send and receive one message per blocking call;
ours are peers as applications have them, by batches and one by one. The sides take turns. `--peers`
puts zenoh, NATS, Redis and mosquitto beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.peers.carriers import CARRIERS
from bench.progress import Progress
from bench.report import Options, Report, run_sections
from bench.topics_latency import latency
from bench.topics_loss import loss
from bench.topics_memory import memory
from bench.topics_pairs import PUB_SUB, PUSH_PULL, Ends, Side, ends_with_keys, ours
from bench.topics_peers import beside_others
from bench.topics_tree import tree

NAME = "topics"

MANY = 4  # subscribers of the case with several


class Load(NamedTuple):
    """Messages of one size, and what each way of publishing them must reach."""

    label: str
    size: int  # bytes
    messages: int  # about a second of raw messages
    receivers: int
    raw: Side
    bars: dict[str, float]  # by the name of a way
    factor: dict[str, int]  # so many times the messages for a fast way


BATCHES, EACH, NOWAIT = "by batches", "by publish", "by publish_nowait"
WAYS = {
    BATCHES: ("publish_many", "batches"),
    EACH: ("publish", "one by one"),
    NOWAIT: ("publish_nowait", "one by one"),
}
FAST = {BATCHES: 5, EACH: 2, NOWAIT: 2}
LOADS = (
    Load("100 B", 100, 1_000_000, 1, PUSH_PULL, {BATCHES: 4.0, EACH: 1.5, NOWAIT: 1.5}, FAST),
    Load("1 KiB", 1024, 500_000, 1, PUSH_PULL, {BATCHES: 1.2}, {BATCHES: 2}),
    Load("64 KiB", 65_536, 16_000, 1, PUSH_PULL, {BATCHES: 0.7}, {BATCHES: 1}),
    Load("100 B to 4", 100, 250_000, MANY, PUB_SUB, {BATCHES: 2.0, EACH: 1.0}, FAST),
)
QUICK, QUICK_CURVE = LOADS[1:2], LOADS[2:3]


def throughput(report: Report, options: Options) -> None:
    """Without security."""
    _throughput(report, options, curve=False)


def with_curve(report: Report, options: Options) -> None:
    """CURVE on both sides: raw sockets with keys, our peers with certificates."""
    _throughput(report, options, curve=True)


def _throughput(report: Report, options: Options, *, curve: bool) -> None:
    loads = (QUICK_CURVE if curve else QUICK) if options.quick else LOADS
    progress = Progress(NAME, options.repeats * sum(1 + 2 * len(load.bars) for load in loads))
    with ends_with_keys() as ends:
        for load in loads:
            _measure(report, ends, progress, load, options, curve=curve)


def _measure(
    report: Report, ends: Ends, progress: Progress, load: Load, options: Options, *, curve: bool
) -> None:
    sides: list[tuple[Side, int]] = [(load.raw, 1)]
    wanted: dict[str, float] = {}
    for way, bar in load.bars.items():
        for mode in ("ack",) if way == NOWAIT else ("ack", "nack"):
            side = ours(f"{mode} {way}", mode, *WAYS[way])
            sides.append((side, load.factor[way]))
            wanted[side.name] = bar
    what = f"{load.label}, CURVE" if curve else load.label
    found: dict[str, list[float]] = {side.name: [] for side, _ in sides}
    for _ in range(options.repeats):
        for side, factor in sides:
            progress.step(f"{what}: {side.name}")
            count = load.messages * factor // (500 if options.quick else 1)
            taken = ends.run(side, load.receivers, size=load.size, count=count, curve=curve)
            longest = max(one["seconds"] for one in taken)
            found[side.name].append(load.receivers * count / longest)
    _enter(report, what, load.raw.name, found, wanted)


def _enter(
    report: Report,
    what: str,
    raw: str,
    found: dict[str, list[float]],
    wanted: dict[str, float],
) -> None:
    for name, rates in found.items():
        report.add(f"{what}, {name}", "messages/s", rates)
    for name, bar in wanted.items():
        ratios = _ratios(found[name], found[raw])
        case = report.add(f"{what}, {name} to {raw}", "×", ratios)
        report.require(f"{what}, {name}: against {raw}", case.median, "×", "at least", bar)


def _ratios(values: Sequence[float], to: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(values, to, strict=True)]


SECTIONS = {
    "throughput": throughput,
    "curve": with_curve,
    "latency": latency,
    "loss": loss,
    "tree": tree,
    "memory": memory,
    "peers": beside_others,
}

PEERS = tuple(CARRIERS)


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
