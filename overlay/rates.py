"""How much one source may ask for, and how much all together: token buckets in bounded memory."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

SOURCES = 4096  # that have a bucket of their own; who was heard longest ago is forgotten


class Bucket(msgspec.Struct):
    """Fills at a rate, up to a burst."""

    level: float
    filled_at: float

    def take(self, rate: float, burst: float, now: float) -> bool:
        """Take one token, if there is one."""
        # A clock that was set back fills nothing, and blocks nobody.
        self.level = min(burst, self.level + rate * max(0.0, now - self.filled_at))
        self.filled_at = now
        if self.level < 1.0:
            return False
        self.level -= 1.0
        return True


class RateLimit:
    """Admits `rate` per second and source, and `total` for all of them, with bursts."""

    def __init__(self, rate: float, burst: float, total: float) -> None:
        self._rate = rate
        self._burst = burst
        self._total = total
        self._all = Bucket(total, 0.0)
        self._sources: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sources)

    def admits(self, source: str, now: float) -> bool:
        """Count one of that source; False when it is one too many."""
        bucket = self._sources.get(source)
        if bucket is None:
            bucket = self._sources[source] = Bucket(self._burst, now)
            if len(self._sources) > SOURCES:
                self._sources.popitem(last=False)
        else:
            self._sources.move_to_end(source)
        # Its own bucket first: one who floods must not use up what all share.
        return bucket.take(self._rate, self._burst, now) and self._all.take(
            self._total, self._total, now
        )
