"""The values that one attribute may have: a range of one kind with holes, in normal form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from overlay.predicates.values import DATE, TEXT, TIME, Cut, Kind, Value, after_prefix, kind_of

PRESENT = "present"
PREFIX = "prefix"
ORDERING = ("<", "<=", ">", ">=")
OPERATORS = ("=", "!=", *ORDERING, PRESENT, PREFIX)


class Span(NamedTuple):
    """What satisfies all predicates on one attribute; equal spans hold equal values.

    It is never empty, no hole touches an end of the range, and holes are sorted. Without a kind
    it holds every value of every kind: the attribute must be present, and no more is asked.
    """

    kind: Kind | None
    low: Cut = None
    high: Cut = None
    holes: tuple[Value, ...] = ()

    @property
    def point(self) -> Value | None:
        """The only value that it holds, if there is just one."""
        kind = self.kind
        if kind is None:
            return None
        only = kind.value_at(self.low)
        lone = kind.before(only) == self.low and kind.after(only) == self.high
        return only if lone else None

    def holds(self, value: Value) -> bool:
        """Tell whether the value satisfies."""
        kind = self.kind
        if kind is None:
            return True
        return (
            kind_of(value) is kind
            and self.low <= kind.before(value) < self.high
            and value not in self.holes
        )

    def covers(self, other: Span) -> bool:
        """Tell whether every value of the other is in this one."""
        if self.kind is None:
            return True
        return (
            other.kind is self.kind
            and self.low <= other.low
            and other.high <= self.high
            and not any(other.holds(hole) for hole in self.holes)
        )

    def meets(self, other: Span) -> bool:
        """Tell whether some value is in both."""
        if self.kind is None or other.kind is None:
            return True
        if other.kind is not self.kind:
            return False
        if self.holes or other.holes:
            return self.narrowed(other) is not None
        return bool(self.low < other.high and other.low < self.high)

    def narrowed(self, other: Span) -> Span | None:
        """The values that are in both; None if there are none."""
        kind = self.kind
        if kind is None or other.kind is None:
            return other if kind is None else self
        if kind is not other.kind:
            return None
        low, high = max(self.low, other.low), min(self.high, other.high)
        holes = {kind.before(hole): hole for hole in (*self.holes, *other.holes)}
        while low in holes:  # such ends of a range can be cut off exactly, on every line
            low = kind.after(holes.pop(low))
        ends = {kind.after(hole): hole for hole in holes.values()}
        while high in ends:
            high = kind.before(ends.pop(high))
        if low >= high:
            return None
        inside = sorted((cut, hole) for cut, hole in holes.items() if low < cut < high)
        return Span(kind, low, high, tuple(hole for _, hole in inside))

    def predicates(self) -> Iterator[tuple[str, Value | None]]:
        """The fewest operators and values that say the same."""
        kind = self.kind
        if kind is None:
            yield PRESENT, None
            return
        if (only := self.point) is not None:
            yield "=", only
            return
        whole = self.low == kind.bottom and self.high == kind.top
        if kind is TEXT and self.high == after_prefix(self.low[1]):
            if not (whole and self.holes):
                yield PREFIX, self.low[1]
        else:
            if self.low != kind.bottom or (whole and not self.holes):
                yield _low_end(kind, self.low)
            if self.high != kind.top:
                yield _high_end(kind, self.high)
        for hole in self.holes:
            yield "!=", hole


ANYTHING = Span(None)


def span_of(operator: str, value: Value | None) -> Span | None:
    """What satisfies one checked predicate; None if nothing can."""
    if operator == PRESENT or value is None:
        return ANYTHING
    kind = kind_of(value)
    low, high = kind.bottom, kind.top
    match operator:
        case "=":
            low, high = kind.before(value), kind.after(value)
        case "!=":
            whole = Span(kind, low, high)
            return whole.narrowed(Span(kind, low, high, (value,)))
        case "<":
            high = kind.before(value)
        case "<=":
            high = kind.after(value)
        case ">":
            low = kind.after(value)
        case ">=":
            low = kind.before(value)
        case _:
            assert isinstance(value, str), operator
            low, high = kind.before(value), after_prefix(value)
    return Span(kind, low, high) if low < high else None


def _low_end(kind: Kind, low: Cut) -> tuple[str, Value]:
    if kind is TEXT:
        text = low[1]
        return (">", text[:-1]) if text.endswith("\0") else (">=", text)
    if kind is TIME or kind is DATE:
        past_the_minute = kind is TIME and low % 60 == 1  # "> 8:00" reads better than 8:00:01
        return (">", kind.value_at(low - 1)) if past_the_minute else (">=", kind.value_at(low))
    number, side = low
    return (">" if side else ">="), number


def _high_end(kind: Kind, high: Cut) -> tuple[str, Value]:
    if kind is TEXT:
        text = high[1]
        return ("<=", text[:-1]) if text.endswith("\0") else ("<", text)
    if kind is TIME or kind is DATE:
        full_minute = kind is TIME and high % 60 == 0
        return ("<", kind.value_at(high)) if full_minute else ("<=", kind.value_at(high - 1))
    number, side = high
    return ("<=" if side else "<"), number
