"""How large a synthetic run is and what goes wrong in it; and what the jobs must say of it."""

from __future__ import annotations

from functools import cached_property

import msgspec

BEGIN = 1_800_000_000_000_000  # µs since 1970: 2027-01-15, 08:00, a full hour


class Plan(msgspec.Struct, frozen=True, dict=True):
    """A run: its size and its faults."""

    rows: int = 100_000  # about so many
    nodes: int = 20
    zones: int = 3
    topics: int = 6  # each with one publisher
    subscribers: int = 8  # of each topic
    seconds: int = 600
    seed: int = 1
    run: str = "synthetic"
    faults: int = 2  # losses, repeats and swaps of each subscriber, each
    processes: int = 1

    @cached_property
    def names(self) -> list[str]:
        """Every node."""
        return [f"n{number:03d}" for number in range(self.nodes)]

    def zone(self, node: int) -> str:
        """Of a node by its number."""
        return f"z{node % self.zones}"

    @cached_property
    def batches(self) -> int:
        """Rows of each publisher; each subscriber has as many."""
        return max(40, int(0.40 * self.rows / (self.topics * (1 + self.subscribers))))

    @cached_property
    def exchanges(self) -> int:
        """Rows of each node about messages that left, and as many about those that came."""
        return max(20, int(0.27 * self.rows / self.nodes))

    @cached_property
    def lookups(self) -> int:
        """Rows of each node about the table."""
        return max(5, int(0.05 * self.rows / self.nodes))

    @cached_property
    def writes(self) -> int:
        """Versions that each node stored first; one other node stored each later."""
        return max(5, self.lookups // 2)

    def publisher(self, topic: int) -> int:
        """Number of the node that publishes to a topic."""
        return topic % self.nodes

    def subscribers_of(self, topic: int) -> list[int]:
        """Numbers of the nodes that get it, in the order in which they stand in its tree."""
        after = self.publisher(topic) + 1
        around = [(after + place) % self.nodes for place in range(self.nodes - 1)]
        return [node for node in around if node != self.crashed][: self.subscribers]

    def parent(self, topic: int, node: int) -> int:
        """Who hands a topic's messages to a subscriber: each node of the tree has two children."""
        tree = [self.publisher(topic), *self.subscribers_of(topic)]
        return tree[(tree.index(node) - 1) // 2]

    def depth(self, topic: int, node: int) -> int:
        """Links from the publisher."""
        place = 1 + self.subscribers_of(topic).index(node)
        return (place + 1).bit_length() - 1

    # Who plays which part; they differ where there are enough nodes.

    @cached_property
    def crashed(self) -> int:
        """It dies in the middle of the run."""
        return self.nodes - 1

    @cached_property
    def slandered(self) -> int:
        """It lives, and is suspected."""
        return self.nodes - 2

    @cached_property
    def busy(self) -> int:
        """It sends ten times the bytes."""
        return self.nodes - 3

    @cached_property
    def jumping(self) -> int:
        """Its clock is set back and forth by an hour."""
        return self.nodes - 4

    @property
    def crash_at(self) -> int:
        """µs."""
        return BEGIN + self.seconds * 500_000


class Flow(msgspec.Struct):
    """What a subscriber must be found to have got of a stream."""

    expected: int = 0
    delivered: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    lost: int = 0


class Answers(msgspec.Struct):
    """What the jobs must find, by construction."""

    rows: int = 0
    files: list[str] = []
    flows: dict[str, Flow] = {}  # "node origin topic"
    published: dict[str, int] = {}  # by topic
    sent: dict[str, list[int]] = {}  # by node: messages, bytes
    received: dict[str, list[int]] = {}
    detected: dict[str, list[float]] = {}  # crashed node: observers; first and last, s
    suspected_wrongly: dict[str, int] = {}
    lookups: dict[str, int] = {}  # by operation
    keys: dict[str, int] = {}  # held by each node as owner
    lags: dict[str, list[int]] = {}  # of copies at each node, µs: least, most and sum
    discoveries: dict[str, list[float]] = {}  # by node: total ms, waiting ms
    finds: dict[str, float] = {}  # by node: total ms of its request for resources
    busy: str = ""
    jumping: str = ""
    slow_path: list[str] = []
    slow_leg: int = 0  # µs
    slow_latency: int = 0  # µs

    def take(self, other: Answers) -> None:
        """Add what another part of the run knows."""
        self.rows += other.rows
        self.files += other.files
        for name in self.__struct_fields__:
            mine = getattr(self, name)
            if isinstance(mine, dict):
                mine.update(getattr(other, name))
