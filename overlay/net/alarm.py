"""When the driver's next timer is due: one task sleeps until then, and anybody may wake it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import trio


class Alarm:
    """One sleeper, whose deadline moves.

    To wake it up and let it look for a new deadline would cost a whole tick for each timer.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sleep = trio.CancelScope()
        self._until = -inf  # nobody sleeps
        self._wanted = False

    async def sleep_until(self, at: float) -> None:
        """Sleep until then, or until an earlier time that somebody asked for meanwhile."""
        with trio.CancelScope() as self._sleep:
            self._move(-inf if self._wanted else at)
            await trio.sleep_forever()
        self._wanted = False

    def ring_by(self, at: float) -> None:
        """Wake the sleeper at that time, or earlier."""
        if at < self._until:
            self._move(at)

    def ring(self) -> None:
        """Wake the sleeper now; one that is awake does not fall asleep before it has looked."""
        if not self._wanted:
            self._wanted = True
            self._move(-inf)

    def _move(self, at: float) -> None:
        self._until = at
        self._sleep.deadline = trio.current_time() + (at - self._clock())
