"""How much is heard of one sender: a bucket for each, and a bounded number of buckets."""

from __future__ import annotations

KEYS = 256  # senders with a bucket of their own; the longest silent one gives up its


class Bucket:
    """Fills at `rate` per second, up to one second's worth and at least to one."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = max(1.0, rate)
        self._at = now

    def take(self, now: float) -> bool:
        """Take one, if there is one."""
        passed = max(0.0, now - self._at)  # a clock set back fills nothing
        self._left = min(max(1.0, self._rate), self._left + passed * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Allowance:
    """A bucket for each key."""

    __slots__ = ("_buckets", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: dict[str, Bucket] = {}  # who spoke last is last

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, key: str, now: float) -> bool:
        """Whether one more of that key is heard."""
        bucket = self._buckets.pop(key, None) or Bucket(self._rate, now)
        self._buckets[key] = bucket
        if len(self._buckets) > KEYS:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now)
