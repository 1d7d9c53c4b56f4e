"""The spans that many constraints have on one attribute, as sets of bits over cells of its line.

A constraint is a bit. A line is divided into cells, by keys that its spans begin or end at; then
`late[i]` are the constraints whose span begins in a cell after the i-th, and `early[i]` those
whose span ends in a cell before it. So each relation takes a few operations on sets, however
many constraints there are. It leaves in whom the cells cannot tell apart: those are not sure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any, TypeAlias

from overlay.predicates.spans import Span
from overlay.predicates.values import Kind, Value

CELLS = 64  # at most: more leave fewer to be checked, but cost memory, and time at each change
FEW_CHANGES = 8  # are not worth another choice of cells

Bits: TypeAlias = int
"""A set of constraints, each under its number."""


class Relation(Enum):
    """What is asked of the spans of a line and a given one."""

    COVERING = auto()  # they hold all that it holds
    WITHIN = auto()  # it holds all that they hold
    MEETING = auto()  # some value is in both


def numbers(bits: Bits) -> Iterator[int]:
    """The numbers in a set, from the highest."""
    while bits:
        number = bits.bit_length() - 1
        bits ^= 1 << number
        yield number


class Line:
    """Spans of one kind on one attribute."""

    __slots__ = (
        *("_changes", "_size", "all", "bounds", "early", "holed", "kind", "late"),
        *("points", "points_at"),
    )

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.all: Bits = 0
        self.holed: Bits = 0  # whose spans have holes: of those nothing is sure
        self.points: Bits = 0  # whose spans hold one value
        self.points_at: dict[Value, Bits] = {}  # the same, by that value
        self.bounds: list[
            Any
        ] = []  # keys: cell i begins at bounds[i - 1] and ends before bounds[i]
        self.late: list[Bits] = [0]
        self.early: list[Bits] = [0]
        self._size = 0
        self._changes = 0  # since the cells were chosen

    def add(self, number: int, span: Span) -> None:
        """The constraint of this number has this span."""
        self._flip(1 << number, span)
        self._size += 1

    def remove(self, number: int, span: Span) -> None:
        """It has no longer."""
        self._flip(1 << number, span)
        self._size -= 1

    def _flip(self, bit: Bits, span: Span) -> None:
        """Put the bit into each set where the span belongs, or take it out."""
        self._changes += 1
        self.all ^= bit
        if span.holes:
            self.holed ^= bit
        if (point := span.point) is not None:
            self.points ^= bit
            self.points_at[point] = self.points_at.get(point, 0) ^ bit
            if not self.points_at[point]:
                del self.points_at[point]
        low, high = self._cells(span)
        for cell in range(low):
            self.late[cell] ^= bit
        for cell in range(high + 1, len(self.early)):
            self.early[cell] ^= bit

    @property
    def stale(self) -> bool:
        """Tell whether so much changed that cells should be chosen again."""
        return self._changes > self._size // 2 + FEW_CHANGES

    def divide(self, span_of: Callable[[int], Span]) -> None:
        """Choose cells such that about as many different ends of spans lie in each."""
        kind = self.kind
        spans = [(1 << number, span_of(number)) for number in numbers(self.all)]
        ends = {kind.key_at(span.low) for _, span in spans if span.low != kind.bottom}
        ends |= {kind.key_at(span.high) for _, span in spans if span.high != kind.top}
        keys = sorted(ends)
        step = -(-len(keys) // (CELLS - 1)) or 1
        self.bounds = keys[step // 2 :: step]
        count = len(self.bounds) + 1
        begin, end = [0] * count, [0] * count
        for bit, span in spans:
            low, high = self._cells(span)
            begin[low] |= bit
            end[high] |= bit
        self.late, self.early = [0] * count, [0] * count
        for cell in range(1, count):
            self.early[cell] = self.early[cell - 1] | end[cell - 1]
            self.late[-cell - 1] = self.late[-cell] | begin[-cell]
        self._changes = 0

    def failing(self, relation: Relation, given: Span) -> tuple[Bits, Bits]:
        """Who is surely not so related to the given span, and of whom it is not sure."""
        low, high = self._cells(given)
        unsure = self.all if given.holes else self.holed
        if relation is Relation.COVERING:
            failing = self.late[low] | self.early[high]
            unsure |= self._beginning(low) | self._ending(high)
        elif relation is Relation.WITHIN:
            failing = self.all ^ self._late_before(low) | self.all ^ self._early_after(high)
            unsure |= self._beginning(low) | self._ending(high)
        else:
            failing = self.late[high] | self.early[low]
            unsure |= self._beginning(high) | self._ending(low)
        return failing, unsure

    def _cells(self, span: Span) -> tuple[int, int]:
        """The cells of its ends; an end at a bound counts to the cell that begins there."""
        kind, bounds = self.kind, self.bounds
        low = 0 if span.low == kind.bottom else bisect_right(bounds, kind.key_at(span.low))
        if span.high == kind.top:
            return low, len(bounds)
        return low, bisect_right(bounds, kind.key_at(span.high))

    def _late_before(self, cell: int) -> Bits:
        return self.late[cell - 1] if cell else self.all

    def _early_after(self, cell: int) -> Bits:
        return self.early[cell + 1] if cell + 1 < len(self.early) else self.all

    def _beginning(self, cell: int) -> Bits:
        return self._late_before(cell) ^ self.late[cell]

    def _ending(self, cell: int) -> Bits:
        return self._early_after(cell) ^ self.early[cell]
