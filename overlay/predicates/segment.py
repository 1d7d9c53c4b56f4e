"""Some thousand constraints, each under a number, and the columns of the attributes they name.

A question visits attributes, not constraints: each tells who fails on it, as one set. Who fails
on none is in the answer; where the sets are not sure of it, it is checked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from overlay.predicates.columns import Column
from overlay.predicates.constraint import Constraint
from overlay.predicates.items import Item
from overlay.predicates.lines import Bits, Line, Relation, numbers
from overlay.predicates.spans import Span
from overlay.predicates.values import KINDS, NUMBER

CAPACITY = 65_536  # constraints: larger sets save no more time, and make changes dear
MOST_COLUMNS = 256  # else who names what nobody else does makes a set for each name, and for it

_Check: TypeAlias = tuple[str, float | None, float, Span]
"""An attribute, numbers between which its value satisfies, and the span that knows exactly."""

_Test: TypeAlias = Callable[[Constraint, Constraint], bool]
"""Tells whether a held constraint is so related to the given one."""


class Segment:
    """Constraints under numbers from 0 up to the capacity."""

    __slots__ = ("_checks", "_columns", "_constraints", "_free", "_live")

    def __init__(self) -> None:
        self._live: Bits = 0
        self._columns: dict[str, Column] = {}
        self._constraints: list[Constraint | None] = []
        self._checks: list[tuple[_Check, ...]] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._constraints) - len(self._free)

    def has_room_for(self, constraint: Constraint) -> bool:
        """Tell whether this segment may take the constraint, as an empty one always may."""
        new = sum(name not in self._columns for name in constraint.spans)
        return len(self) < CAPACITY and (not new or len(self._columns) + new <= MOST_COLUMNS)

    def add(self, constraint: Constraint) -> int:
        """Hold the constraint, and return its number."""
        if not self._free:
            self._free.append(len(self._constraints))
            self._constraints.append(None)
            self._checks.append(())
        number = self._free.pop()
        self._constraints[number] = constraint
        self._checks[number] = tuple(_checks(constraint))
        self._live |= 1 << number
        for name, span in constraint.spans.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = Column()
            self._tend(column.add(number, span), name)
        return number

    def remove(self, number: int) -> None:
        """Forget the constraint of this number."""
        constraint = self[number]
        self._constraints[number] = None
        self._checks[number] = ()
        self._free.append(number)
        self._live ^= 1 << number
        for name, span in constraint.spans.items():
            column = self._columns[name]
            self._tend(column.remove(number, span), name)
            if not column.named:
                del self._columns[name]

    def _tend(self, line: Line | None, name: str) -> None:
        if line and line.stale:
            line.divide(lambda number: self[number].spans[name])

    def __getitem__(self, number: int) -> Constraint:
        constraint = self._constraints[number]
        assert constraint is not None
        return constraint

    def matching(self, item: Item) -> list[int]:
        """The subscriptions that the item matches.

        It is `named_by` with Relation.COVERING, for a given constraint of single values; written
        out, since this is what a broker does all day.
        """
        failing = 0
        attribute = item.get
        for name, column in self._columns.items():
            value = attribute(name)
            if value is None:
                failing |= column.named
                continue
            kind = KINDS[type(value)]
            line = column.lines.get(kind)
            if line is None:
                failing |= column.named ^ column.anything
                continue
            if line.points:  # judged exactly, by value
                failing |= line.points ^ line.points_at.get(value, 0)
            if line.points != line.all:
                key = kind.key
                cell = bisect_right(line.bounds, value if key is None else key(value))
                failing |= line.late[cell]
                failing |= line.early[cell]
            if len(column.lines) > 1:
                failing |= column.named ^ column.anything ^ line.all
        found = []
        left = self._live ^ failing
        while left:
            number = left.bit_length() - 1
            left ^= 1 << number
            for name, low, high, span in self._checks[number]:
                there: Any = item[name]
                if low is not None and low < there < high:
                    continue
                if not span.holds(there):
                    break
            else:
                found.append(number)
        return found

    def named_by(self, given: Constraint, relation: Relation, exactly: _Test) -> Bits:
        """Who names attributes of the given constraint alone, and whose spans are so related."""
        failing = unsure = 0
        for name, column in self._columns.items():
            span = given.spans.get(name)
            if span is None:
                failing |= column.named
            else:
                fail, doubt = column.failing(relation, span)
                failing |= fail
                unsure |= doubt
        return self._related(self._live ^ failing, unsure, given, exactly)

    def naming(self, given: Constraint, relation: Relation, exactly: _Test) -> Bits:
        """Who names every attribute of the given constraint, and whose spans are so related."""
        named, unsure = self._live, 0
        for name, span in given.spans.items():
            column = self._columns.get(name)
            if column is None:
                return 0
            fail, doubt = column.failing(relation, span)
            named &= column.named ^ fail
            unsure |= doubt
        return self._related(named, unsure, given, exactly)

    def _related(self, candidates: Bits, unsure: Bits, given: Constraint, exactly: _Test) -> Bits:
        """The candidates without those that are not so related after all."""
        for number in numbers(candidates & unsure):
            if not exactly(self[number], given):
                candidates ^= 1 << number
        return candidates


def _checks(constraint: Constraint) -> Iterable[_Check]:
    """What the sets leave open of an item: not what must be one value, or only be there."""
    for name, span in constraint.spans.items():
        if span.kind is None or span.point is not None:
            continue
        if span.kind is NUMBER and not span.holes:
            yield name, span.low[0], span.high[0], span
        else:
            yield name, None, 0.0, span
