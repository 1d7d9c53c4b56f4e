"""Each datagram once: bounded memory of the stamps that senders have used.

A stamp is a sender's time in microseconds, strictly increasing; datagrams may overtake each
other. Whatever has been forgotten counts as seen, so a bound can cost a late datagram but
never lets one in twice.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from enum import Enum


class Freshness(Enum):
    """What the memory says about a stamp."""

    FRESH = "fresh"
    SEEN = "seen"
    TOO_OLD = "too old"


class ReplayWindow:
    """The newest stamps of one sender, at most `size` of them, 8 bytes each."""

    __slots__ = ("_floor", "_seen", "_size")

    def __init__(self, size: int, floor: int = -1) -> None:
        self._size = size
        self._seen = array("Q")  # sorted
        self._floor = floor  # this stamp and all below count as seen

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def newest(self) -> int:
        """The highest stamp accepted; below it there may be gaps."""
        return self._seen[-1] if self._seen else self._floor

    def judge(self, stamp: int) -> Freshness:
        """Tell whether the stamp is new; remembers nothing."""
        if stamp <= self._floor:
            return Freshness.TOO_OLD
        at = bisect_left(self._seen, stamp)
        if at < len(self._seen) and self._seen[at] == stamp:
            return Freshness.SEEN
        return Freshness.FRESH

    def accept(self, stamp: int, horizon: int) -> None:
        """Remember a fresh stamp, and forget those below `horizon`, which are stale anyway."""
        self._seen.insert(bisect_left(self._seen, stamp), stamp)
        drop = max(len(self._seen) - self._size, bisect_left(self._seen, horizon))
        if drop:
            self._floor = self._seen[drop - 1]
            del self._seen[:drop]


class ReplayGuard:
    """A window for each of at most `senders` senders, those heard last."""

    def __init__(self, *, senders: int, window: int) -> None:
        self._limit = senders
        self._size = window
        self._windows: OrderedDict[bytes, ReplayWindow] = OrderedDict()
        self._forgotten_floor = -1  # for senders that we do not remember
        self.evicted = 0  # senders pushed out while their datagrams could still be replayed

    def __len__(self) -> int:
        return len(self._windows)

    def judge(self, sender: bytes, stamp: int) -> Freshness:
        """Tell whether that sender's stamp is new; remembers nothing."""
        window = self._windows.get(sender)
        if window is not None:
            return window.judge(stamp)
        return Freshness.TOO_OLD if stamp <= self._forgotten_floor else Freshness.FRESH

    def accept(self, sender: bytes, stamp: int, horizon: int) -> None:
        """Remember a fresh stamp of a sender whose signature was checked."""
        window = self._windows.get(sender)
        if window is None:
            window = self._windows[sender] = ReplayWindow(self._size, self._forgotten_floor)
        else:
            self._windows.move_to_end(sender)
        window.accept(stamp, horizon)
        if len(self._windows) > self._limit:
            _, forgotten = self._windows.popitem(last=False)
            if forgotten.newest >= horizon:
                self.evicted += 1
            # Its old datagrams must not pass as those of a newcomer.
            self._forgotten_floor = max(self._forgotten_floor, forgotten.newest)
