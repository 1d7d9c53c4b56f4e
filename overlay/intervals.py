"""Which of several witnesses agree: the largest set of intervals with a common point (Marzullo)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """Where somebody says that a number lies."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The best guess that it leaves."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """How far that may be off."""
        return (self.high - self.low) / 2


def agreement(intervals: Sequence[Interval]) -> tuple[int, ...]:
    """The indices of the largest set with a common point; of equal ones, that of the first.

    "First" compares sets by their lowest index, then by the next: callers order by seniority.
    """
    best: tuple[int, ...] = ()
    # A largest set shares the highest of its lower ends, so no other points need be tried.
    for point, _ in intervals:
        around = tuple(index for index, (low, high) in enumerate(intervals) if low <= point <= high)
        if (-len(around), around) < (-len(best), best):
            best = around
    return best
