"""Which incarnations can be true: they begin at a clock, so none is far ahead of every clock."""

from __future__ import annotations

from protocols.membership.clock import SteadyClock
from protocols.membership.records import MAX_INCARNATION

CLOCK_ERROR = 86_400_000  # ms; clocks of honest members may differ by a day


class Horizon:
    """The latest clock that this node has reason to believe in, plus what it may be wrong by.

    It never follows what gossip claims: whoever could push it could push it to the end, where
    nobody can refute any more.
    """

    __slots__ = ("_ahead", "_clock", "_latest")

    def __init__(self, clock: SteadyClock) -> None:
        self._clock = clock
        self._latest = 0  # ms on my clock, which may have been set back
        self._ahead = 0  # ms that the zone is ahead of it

    def _now(self) -> int:
        self._latest = max(self._latest, int(self._clock.wall * 1000))
        return self._latest

    @property
    def limit(self) -> int:
        """The highest incarnation that an honest member can have now."""
        return min(self._now() + self._ahead + CLOCK_ERROR, MAX_INCARNATION)

    def trust(self, incarnation: int) -> None:
        """My own past or a contact that let me in showed it: the zone's clocks are there."""
        self._ahead = max(self._ahead, incarnation - self._now())
