"""When to announce: the Trickle timer of RFC 6206.

In each interval a node announces at a random moment of its second half, unless it heard enough
others say the same. Without news the interval doubles; with news it is short again. So however
many members a zone has on a LAN, about `redundancy` of them speak in an interval.
"""

from __future__ import annotations

from random import Random

from overlay.timetable import Timetable

SPEAK = "speak"
INTERVAL = "interval"
BEREAVED = 8  # × the shortest interval


class Trickle:
    """Counts what was heard, and sets its two timers."""

    def __init__(
        self, timers: Timetable, rng: Random, first: float, longest: float, redundancy: int
    ) -> None:
        self._timers = timers
        self._rng = rng
        self._first = first
        self._longest = longest
        self._redundancy = redundancy
        self._heard = 0
        self.interval = first
        self.runs = False

    def start(self, now: float) -> None:
        """Begin with the shortest interval."""
        self._restart(self._first, now)

    def stop(self) -> None:
        """Be silent."""
        self.runs = False
        self._timers.cancel(SPEAK)
        self._timers.cancel(INTERVAL)

    def agreed(self) -> None:
        """Somebody said what this node would say."""
        self._heard += 1

    def disturbed(self, now: float) -> None:
        """There is news; when the interval is the shortest already nothing changes."""
        if self.runs and self.interval > self._first:
            self._restart(self._first, now)

    def bereaved(self, now: float) -> None:
        """Somebody died: announce soon, but not while that is still the news.

        All members hear of it at one moment; in a short interval dozens would announce before
        they hear each other, each beacon takes everybody's time, and just then there is none.
        """
        later = min(BEREAVED * self._first, self._longest)
        if self.runs and self.interval > later:
            self._restart(later, now)

    def speaks(self) -> bool:
        """The moment has come: whether to announce."""
        return self._heard < self._redundancy

    def next_interval(self, now: float) -> None:
        """An interval ended."""
        self.interval = min(2 * self.interval, self._longest)
        self._begin(now)

    def _restart(self, interval: float, now: float) -> None:
        self.runs = True
        self.interval = interval
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._heard = 0
        self._timers.set(SPEAK, now + self.interval * (0.5 + self._rng.random() / 2))
        self._timers.set(INTERVAL, now + self.interval)
