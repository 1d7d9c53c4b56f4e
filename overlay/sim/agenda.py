"""What is to happen, in order of (time, sequence): a calendar of short days.

One big heap spends most of a step on cache misses: each pop walks over fourteen tuples that
nobody touched lately. Here a day's entries are sorted once, when that day comes.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeAlias

from overlay.errors import InvariantViolation

Entry: TypeAlias = tuple[Any, ...]
"""(time, sequence, action, …): the sequence is unique, so that nothing else is compared."""

DAYS_PER_SECOND = 10_000.0  # 100 µs: shorter than a LAN's latency, so few entries land in today
SPIN_CAP = 2_000_000  # entries that a day may add to itself; more means that time stands still


class Agenda:
    """Entries to come; none may be pushed before the last one taken."""

    __slots__ = ("_added_today", "_dates", "_days", "_today", "next_sequence", "today")

    def __init__(self) -> None:
        self.next_sequence: Callable[[], int] = count().__next__
        self.today: list[Entry] = []  # the next one last; always the same list
        self._today = -1
        self._added_today = 0
        self._days: dict[int, list[Entry]] = {}
        self._dates: list[int] = []  # a heap of the keys of `_days`

    def __len__(self) -> int:
        return len(self.today) + sum(map(len, self._days.values()))

    def push(self, entry: Entry) -> None:
        """Take one entry."""
        date = int(entry[0] * DAYS_PER_SECOND)
        if date in self._days:
            self._days[date].append(entry)
        elif date > self._today:
            self._days[date] = [entry]
            heappush(self._dates, date)
        else:
            self._push_today(entry)

    def _push_today(self, entry: Entry) -> None:
        self._added_today += 1
        if self._added_today > SPIN_CAP:
            raise InvariantViolation(f"time stands still at {entry[0]}: a protocol spins")
        today = self.today
        low, high = 0, len(today)
        while low < high:
            middle = (low + high) // 2
            if entry < today[middle]:
                low = middle + 1
            else:
                high = middle
        today.insert(low, entry)

    def turn_page(self, limit: float) -> bool:
        """Go to the next day that has entries, if it begins by `limit`; today must be done."""
        if self.today or not self._dates or self._dates[0] > int(limit * DAYS_PER_SECOND):
            return False
        self._today = heappop(self._dates)
        self._added_today = 0
        self.today += self._days.pop(self._today)
        self.today.sort(reverse=True)
        return True

    def discard(self, stale: Callable[[Entry], bool]) -> None:
        """Drop all entries that are stale."""
        for day in (self.today, *self._days.values()):
            day[:] = [entry for entry in day if not stale(entry)]
