"""Overlay time: the node's clock plus an offset that moves smoothly, and never backwards."""

from __future__ import annotations

from math import inf

SLOWEST = 1e-4  # s/s of a slew: small corrections end, too


class Discipline:
    """Steered to a line (offset and rate over the node's clock), told as time that only grows."""

    def __init__(self, slew_over: float, slew_limit: float, step_over: float) -> None:
        self._slew_over = slew_over
        self._slew_limit = slew_limit
        self._step_over = step_over
        self._at = 0.0
        self._offset = 0.0
        self.rate = 0.0
        self._lacks = 0.0  # at `_at`: how far what is told lags behind the line; negative: ahead
        self._speed = 0.0  # at which that ends
        self._told = -inf

    def offset(self, local: float) -> float:
        """Where the line is: the best that is known."""
        return self._offset + self.rate * (local - self._at)

    def lacks(self, local: float) -> float:
        """What is still to be corrected of what is told."""
        done = self._speed * max(0.0, local - self._at)
        if done >= abs(self._lacks):
            return 0.0
        return self._lacks - done if self._lacks > 0 else self._lacks + done

    def time(self, local: float) -> float:
        """Overlay time; when the node's own clock is set back it stands still for so long."""
        told = local + self.offset(local) - self.lacks(local)
        if told > self._told:
            self._told = told
        return self._told

    def steer(self, local: float, offset: float, rate: float) -> None:
        """Take another line; a large step forward is made at once, all else is spread out."""
        before = self.lacks(local)
        lacks = before + offset - self.offset(local)
        if self._told == -inf or lacks > self._step_over:
            lacks = 0.0  # nobody saw another time, or time only skips
        self._at, self._offset, self.rate = local, offset, rate
        self._lacks = lacks
        speed = max(abs(lacks) / self._slew_over, SLOWEST)
        if before * lacks > 0:
            speed = max(speed, self._speed)  # what is under way does not slow down at its end
        self._speed = min(self._slew_limit, speed)
