"""One run of the paper's city: what is varied, what is measured, and where everything is."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from bench.mobility_meter import CONNECTING, CONTROL, RENEWALS, TREE
from overlay.ids import NodeId

Algorithm: TypeAlias = Literal["standard", "prefetching", "proxy", "delayed", "prefetching+delayed"]
Handover: TypeAlias = Literal["best-effort", "sounded", "lossless"]
ALGORITHMS: tuple[Algorithm, ...] = (
    *("standard", "prefetching", "proxy", "delayed"),
    "prefetching+delayed",
)
ARRIVED = 0.999  # of a probe's deliveries: then the tree is rebuilt


class Workload(NamedTuple):
    """What differs between two runs; the rest is in configs/papers/publisher-mobility.toml."""

    algorithm: Algorithm = "standard"
    publishers: int = 50
    subscribers: int = 500
    speeds: tuple[float, ...] = (5.0, 50.0, 100.0)  # km/h: each publisher has one of them
    locality: float = 0.0  # part of the publishers that all publish the same
    turns: float = 0.5  # chance that a publisher turns back at the end of a cell
    overshoot: int | None = None  # brokers past the proxy set, at most; None: anywhere
    size: int = 512  # bytes of a message
    warm_up: float = 60.0  # s of moving before anything is measured
    duration: float = 300.0  # s that are measured
    seed: int = 1
    handover: Handover = "best-effort"
    probing: bool = True  # else nothing is published: the tree is rebuilt alone
    in_step: bool = False  # all publishers leave their cells at the same time
    first_counts: bool = False  # measure from the first connection of all clients at once
    idle: float = 0.0  # ms that a link takes to wake up once it has been silent; 0: it never sleeps


@dataclass
class Outcome:
    """What the paper measures (§4.2), of all moves that began in the measured time."""

    workload: Workload
    moves: int = 0
    hops: Counter[str] = field(default_factory=Counter)  # of messages, by kind
    expected: list[int] = field(default_factory=list)  # deliveries of the i-th probe
    delivered: list[int] = field(default_factory=list)
    doubled: int = 0  # deliveries of what was delivered already
    latencies: array[float] = field(default_factory=lambda: array("d"))  # s
    rebuilt: array[float] = field(default_factory=lambda: array("d"))  # s, t4 as the wave found it
    advertisements: float = 0.0  # entries of the table of a broker, on average
    subscriptions: float = 0.0
    by_level: list[float] = field(default_factory=list)  # entries of both, the root first
    processor: float = 0.0  # s that the measured time took

    @property
    def cost(self) -> int:
        """Hops of messages that rebuild trees, as the paper counts them."""
        return sum(self.hops[kind] for kind in (*TREE, CONTROL))

    @property
    def all_but_publications(self) -> int:
        """The same with what the paper does not have: greetings, and leases of proxies."""
        return self.cost + self.hops[CONNECTING] + self.hops[RENEWALS]

    @property
    def per_move(self) -> float:
        """The same of one move."""
        return self.cost / (self.moves or 1)

    @property
    def ratio(self) -> float:
        """Part of all probes that arrived."""
        return sum(self.delivered) / (sum(self.expected) or 1)

    def ratios(self) -> list[float]:
        """The same of the first probe, the second one, …"""
        return [one / (of or 1) for one, of in zip(self.delivered, self.expected, strict=True)]

    def rebuilding(self, every: float) -> float:
        """Seconds after connecting when the first probe is sent from which on all arrive."""
        missed = [number for number, ratio in enumerate(self.ratios()) if ratio < ARRIVED]
        return (missed[-1] + 2) * every if missed else every

    def latency(self, part: float) -> float:
        """The delay in seconds within which that part of all deliveries came."""
        return quantile(self.latencies, part)


def quantile(values: array[float], part: float) -> float:
    """The value that this part of all is below; 0 if there is none."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0


# -- the tree, and the line of its leaves -------------------------------------------------------


def tree(height: int, degree: int) -> dict[NodeId, NodeId]:
    """Brokers by their parents, the root first: it has none."""
    count = sum(degree**level for level in range(height))
    return {f"b{one:02}": f"b{(one - 1) // degree:02}" if one else "" for one in range(count)}


def leaves(height: int, degree: int) -> list[NodeId]:
    """The brokers along the city, in a line: as many neighbours as the degree share a parent."""
    first = sum(degree**level for level in range(height - 1))
    return [f"b{number:02}" for number in range(first, first + degree ** (height - 1))]


def closest(first: int, count: int, cells: int) -> range:
    """The cells closest to that one, itself among them."""
    low = min(max(0, first - count // 2), cells - count)
    return range(low, low + count)


@lru_cache(maxsize=100_000)
def distance(one: NodeId, other: NodeId, degree: int) -> int:
    """Links between two brokers of the tree; 1 from a client to a broker."""
    if one[0] != "b" or other[0] != "b":
        return 1
    here, there, links = int(one[1:]), int(other[1:]), 0
    while here != there:
        if here > there:
            here = (here - 1) // degree
        else:
            there = (there - 1) // degree
        links += 1
    return links
