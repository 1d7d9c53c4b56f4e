"""Steady time: what a node saw pass, however its clock jumped and however long it slept."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import inf

from overlay.protocol import Effects

EARLY = 1e-6  # s; clocks are floats: a timer this much early is on time


class SteadyClock:
    """Counts the time between inputs, at most `max_gap` for each.

    A live node has an input (its own probe timer) far more often than that. If more passed, the
    process hung, the machine slept or the clock was set: what peers did in that time is
    unknown, so it must not count against them.
    """

    __slots__ = ("_max_gap", "_on_gap", "_on_step_back", "steady", "wall")

    def __init__(
        self, max_gap: float, on_gap: Callable[[], None], on_step_back: Callable[[], None]
    ) -> None:
        self.steady = 0.0
        self.wall = 0.0
        self._max_gap = max_gap
        self._on_gap = on_gap
        self._on_step_back = on_step_back

    def start(self, now: float) -> None:
        """Begin at the node's clock."""
        self.wall = now

    def read(self, now: float) -> float:
        """Take the node's clock, return the steady time."""
        passed = now - self.wall
        self.wall = now
        if 0.0 <= passed <= self._max_gap:
            self.steady += passed
        elif passed > 0.0:
            self.steady += self._max_gap
            self._on_gap()
        elif passed < 0.0:
            self._on_step_back()
        return self.steady


class Alarms:
    """Timers in steady time.

    One that rings later than `tolerance` shows that this process had too little of the CPU: what
    others answered meanwhile is still to be read. So one that judges is put off once, by as much.
    """

    __slots__ = ("_clock", "_due", "_effects", "_late_at", "_on_late", "_put_off", "_tolerance")

    def __init__(
        self, effects: Effects, tolerance: float = inf, on_late: Callable[[], None] = lambda: None
    ) -> None:
        self._effects = effects
        self._clock: SteadyClock
        self._due: dict[Hashable, float] = {}
        self._put_off: dict[Hashable, None] = {}
        self._tolerance = tolerance
        self._on_late = on_late
        self._late_at = -inf

    def follow(self, clock: SteadyClock) -> None:
        """Use that clock."""
        self._clock = clock

    def __contains__(self, key: Hashable) -> bool:
        return key in self._due

    def set(self, key: Hashable, after: float) -> None:
        """Ring after so many seconds that the node really lives through."""
        self._due[key] = self._clock.steady + after
        self._put_off.pop(key, None)
        self._effects.set_timer(key, self._clock.wall + after)

    def cancel(self, key: Hashable) -> None:
        """Forget it; harmless when it is not set."""
        if self._due.pop(key, None) is not None:
            self._put_off.pop(key, None)
            self._effects.cancel_timer(key)

    def cancel_all(self) -> None:
        """Forget everything."""
        for key in list(self._due):
            self.cancel(key)

    def rings(self, key: Hashable, *, judges: bool = False) -> bool:
        """Whether a timer that fired is really due; if the clock jumped ahead it is set again."""
        due = self._due.get(key)
        if due is None:
            return False
        left = due - self._clock.steady
        if judges and -left > self._tolerance and key not in self._put_off:
            self._put_off[key] = None
            self._due[key] = self._clock.steady + self._tolerance
            left = self._tolerance
            if self._late_at != self._clock.steady:  # one fault, however many alarms it delays
                self._late_at = self._clock.steady
                self._on_late()
        if left > EARLY:
            self._effects.set_timer(key, self._clock.wall + left)
            return False
        del self._due[key]
        self._put_off.pop(key, None)
        return True

    def rearm(self) -> None:
        """Set all timers again: the clock went back, and they would ring far too late."""
        for key, due in self._due.items():
            self._effects.set_timer(key, self._clock.wall + max(0.0, due - self._clock.steady))
