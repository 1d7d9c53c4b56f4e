"""A node's own clock: offset, drift and jumps against the time of the simulated world."""

from __future__ import annotations


class NodeClock:
    """Reads `offset + rate × world time`; protocols see only this one."""

    __slots__ = ("_local", "_rate", "_world")

    def __init__(self, offset: float = 0.0, drift: float = 0.0) -> None:
        self._world = 0.0
        self._local = offset
        self._rate = 1.0 + drift  # a drift of 1e-4 gains 100 µs per second
        if self._rate <= 0.0:
            raise ValueError(f"drift {drift} would make a clock stand still; give more than -1")

    def read(self, world: float) -> float:
        """Return what this clock shows at a time of the world."""
        return self._local + (world - self._world) * self._rate

    def when(self, local: float) -> float:
        """Return the first time of the world at which this clock shows at least `local`."""
        world = self._world + (local - self._local) / self._rate
        step = 1e-12
        # Rounding may land a hair early; a protocol whose timer fires before its time would
        # find nothing due, set the same timer again, and spin.
        while self.read(world) < local:
            world += step
            step *= 2.0
        return world

    def jump(self, by: float, world: float) -> None:
        """Set the clock forward (or with a negative number back) at a time of the world."""
        self._local = self.read(world) + by
        self._world = world
