"""How long responses were under way, by a clock that need not be right.

Who looks for a broker is mostly a visitor, whose clock may show any time. But each answer tells
overlay time at a moment between our request and its arrival, and so bounds how far our clock is
off. What the largest set of answers has in common (Marzullo) is that offset, within its error; it
costs no message and no time. A requester that has overlay time itself is one voice more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from overlay.intervals import Interval, agreement


class Word(NamedTuple):
    """What somebody told of overlay time, while we waited; our own clock but for `told`."""

    asked: float
    told: float
    error: float
    heard: float

    @property
    def offset(self) -> Interval:
        """Overlay time minus our clock: it was told after we asked, and before we heard."""
        return Interval(self.told - self.error - self.heard, self.told + self.error - self.asked)


class Estimate(NamedTuple):
    """One way, in seconds."""

    delay: float
    error: float
    plausible: bool  # False: no way can have taken so long, or so short


def common_offset(words: Iterable[Word], own: Interval | None = None) -> Interval:
    """Where most of them can all be right; there must be one."""
    offsets = [word.offset for word in words]
    if own is not None:
        offsets.insert(0, own)  # of equal sets the one with our own time wins
    agreed = [offsets[index] for index in agreement(offsets)]
    return Interval(max(one.low for one in agreed), min(one.high for one in agreed))


def estimate(word: Word, offset: Interval) -> Estimate:
    """How long a response was under way: by its timestamp, within what is possible at all."""
    claimed = word.heard + offset.middle - word.told
    error = offset.error + word.error
    low, high = max(0.0, claimed - error), min(word.heard - word.asked, claimed + error)
    if low > high:
        return Estimate(claimed, error, plausible=False)
    possible = Interval(low, high)
    return Estimate(possible.middle, possible.error, plausible=True)
