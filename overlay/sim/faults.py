"""Faults as composable rules: each bends what happens to one frame or datagram on its way."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Literal, TypeAlias

from overlay.ids import NodeId

Carrier: TypeAlias = Literal["all", "links", "datagrams"]


class Copy:
    """One copy of a frame under way: how late it will be, and whether others may overtake it."""

    __slots__ = ("extra", "in_order")

    def __init__(self, extra: float, in_order: bool) -> None:
        self.extra = extra
        self.in_order = in_order


Passage: TypeAlias = list[Copy]
"""What the rules make of one frame: no copy is a loss, two are a duplicate."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One kind of fault, for some nodes and some time."""

    nodes: Collection[NodeId] | None = None  # either end; None: everybody
    start: float = 0.0  # time of the world, seconds
    end: float = inf
    traffic: Carrier = "all"

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Say whether this rule has a word in that passage."""
        if not self.start <= now < self.end:
            return False
        if self.traffic != "all" and (self.traffic == "datagrams") != datagram:
            return False
        return self.nodes is None or source in self.nodes or target in self.nodes

    def bend(self, passage: Passage, rng: Random) -> None:
        """Change the passage in place."""

    def blocks(self, source: NodeId, target: NodeId) -> bool:
        """Say whether nothing at all gets from `source` to `target` while this rule is active."""
        return False


@dataclass(frozen=True)
class Loss(Rule):
    """Each copy vanishes with probability `p`."""

    p: float

    def bend(self, passage: Passage, rng: Random) -> None:
        """Drop copies."""
        passage[:] = [copy for copy in passage if rng.random() >= self.p]


@dataclass(frozen=True)
class Duplicate(Rule):
    """With probability `p` a second copy follows, up to `within` seconds later."""

    p: float
    within: float = 0.01

    def bend(self, passage: Passage, rng: Random) -> None:
        """Add copies."""
        for copy in tuple(passage):
            if rng.random() < self.p:
                passage.append(Copy(copy.extra + rng.random() * self.within, in_order=False))


@dataclass(frozen=True)
class Reorder(Rule):
    """With probability `p` a copy is held back for `by` seconds while later ones overtake it."""

    p: float
    by: float = 0.01

    def bend(self, passage: Passage, rng: Random) -> None:
        """Hold copies back."""
        for copy in passage:
            if rng.random() < self.p:
                copy.extra += self.by
                copy.in_order = False


@dataclass(frozen=True)
class Delay(Rule):
    """Everything takes `seconds` longer, plus up to `jitter`; links keep their order."""

    seconds: float
    jitter: float = 0.0

    def bend(self, passage: Passage, rng: Random) -> None:
        """Make copies late."""
        for copy in passage:
            copy.extra += self.seconds + self.jitter * rng.random()


@dataclass(frozen=True)
class Partition(Rule):
    """Nothing passes between different groups; who is in no group reaches everybody."""

    groups: Sequence[Collection[NodeId]]
    _side: dict[NodeId, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for side, group in enumerate(self.groups):
            for name in group:
                self._side[name] = side

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Only between groups."""
        side = self._side
        here = side.get(source)
        if here is None or side.get(target, here) == here:  # asked of every frame
            return False
        return super().touches(source, target, now, datagram=datagram)

    def bend(self, passage: Passage, rng: Random) -> None:
        """Drop all."""
        passage.clear()

    def blocks(self, source: NodeId, target: NodeId) -> bool:
        """Two groups never hear each other."""
        here, there = self._side.get(source), self._side.get(target)
        return here is not None and there is not None and here != there


@dataclass(frozen=True)
class OneWay(Rule):
    """Nothing gets from `a` to `b`; the other direction works."""

    a: Collection[NodeId]
    b: Collection[NodeId]

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            if isinstance(getattr(self, name), str):  # one name is a group of one
                object.__setattr__(self, name, (getattr(self, name),))

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Only in the broken direction."""
        return self.blocks(source, target) and super().touches(
            source, target, now, datagram=datagram
        )

    def bend(self, passage: Passage, rng: Random) -> None:
        """Drop all."""
        passage.clear()

    def blocks(self, source: NodeId, target: NodeId) -> bool:
        """Only from `a` to `b`."""
        return source in self.a and target in self.b


@dataclass(frozen=True)
class Slow(Rule):
    """Each frame or datagram keeps these nodes busy for `delay` seconds; the rest waits in line."""

    slow: Collection[NodeId]
    delay: float

    def touches(self, source: NodeId, target: NodeId, now: float, *, datagram: bool) -> bool:
        """Only what reaches a slow node."""
        return target in self.slow and super().touches(source, target, now, datagram=datagram)


class Faults:
    """The rules in force, in the order in which they were added."""

    def __init__(
        self, on_added: Callable[[Rule], None], on_removed: Callable[[Rule], None]
    ) -> None:
        self.rules: dict[int, Rule] = {}  # by handle; changed only here
        self._next = 0
        self._on_added = on_added
        self._on_removed = on_removed

    def __len__(self) -> int:
        return len(self.rules)

    def add(self, rule: Rule) -> int:
        """Put a rule in force; the number returned takes it away again."""
        self._next += 1
        self.rules[self._next] = rule
        self._on_added(rule)
        return self._next

    def remove(self, handle: int) -> None:
        """Take a rule away; harmless when it is gone already."""
        rule = self.rules.pop(handle, None)
        if rule is not None:
            self._on_removed(rule)

    def clear(self) -> None:
        """Take all rules away."""
        for handle in list(self.rules):
            self.remove(handle)

    def __contains__(self, rule: Rule) -> bool:
        return any(rule is other for other in self.rules.values())

    def touching(
        self, source: NodeId, target: NodeId, now: float, *, datagram: bool
    ) -> Iterable[Rule]:
        """Return the rules that have a word in that passage."""
        return [
            rule
            for rule in self.rules.values()
            if rule.touches(source, target, now, datagram=datagram)
        ]

    def blocked(self, source: NodeId, target: NodeId, now: float) -> bool:
        """Say whether a rule in force cuts that direction off."""
        return any(
            rule.blocks(source, target) and rule.start <= now < rule.end
            for rule in self.rules.values()
        )
