"""Timers of one node: a heap with lazy deletion."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush

from overlay.host import Instance


class Timers:
    """Keys are unique per instance; setting one again replaces it."""

    __slots__ = ("_current", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Instance, Hashable]] = []
        self._current: dict[tuple[Instance, Hashable], int] = {}
        self._order = 0

    def set(self, instance: Instance, key: Hashable, at: float) -> None:
        """Add or replace."""
        self._order += 1
        self._current[instance, key] = self._order
        heappush(self._heap, (at, self._order, instance, key))
        if len(self._heap) > 64 + 4 * len(self._current):
            self._compact()

    def cancel(self, instance: Instance, key: Hashable) -> None:
        """Forget one."""
        self._current.pop((instance, key), None)

    def forget(self, instance: Instance) -> None:
        """Forget all of an instance that was removed."""
        for held in [key for key in self._current if key[0] is instance]:
            del self._current[held]

    def next_at(self) -> float | None:
        """When the first timer is due."""
        heap = self._heap
        while heap:
            at, order, instance, key = heap[0]
            if self._current.get((instance, key)) == order:
                return at
            heappop(heap)  # replaced or cancelled
        return None

    def pop_due(self, now: float) -> tuple[Instance, Hashable] | None:
        """Take the first timer that is due."""
        at = self.next_at()
        if at is None or at > now:
            return None
        _, _, instance, key = heappop(self._heap)
        del self._current[instance, key]
        return instance, key

    def _compact(self) -> None:
        """Timers that are set again and again must not grow the heap without bound."""
        self._heap = sorted(
            entry for entry in self._heap if self._current.get((entry[2], entry[3])) == entry[1]
        )
