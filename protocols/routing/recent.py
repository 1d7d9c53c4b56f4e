"""What was here lately, in bounded memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers at most `size` things, and what is no older than `seconds` while there is room.

    Two generations: when the younger is full or old, the elder is forgotten as a whole. That
    costs no time stamp per entry and no timer, and a clock that jumps ahead costs one generation.
    """

    __slots__ = ("_elder", "_half", "_seconds", "_since", "_younger", "forgotten")

    def __init__(self, size: int, seconds: float) -> None:
        self._half = size // 2
        self._seconds = seconds
        self._since = 0.0
        self._younger: dict[K, V] = {}
        self._elder: dict[K, V] = {}
        self.forgotten = 0  # for want of room: a copy that comes later is taken for new

    def __len__(self) -> int:
        return len(self._younger) + len(self._elder)

    def get(self, key: K) -> V | None:
        """What was kept under that key, if it is remembered."""
        found = self._younger.get(key)
        return self._elder.get(key) if found is None else found

    def put(self, key: K, value: V, now: float) -> None:
        """Keep it from now on."""
        if now < self._since:
            self._since = now  # the clock was set back: what is remembered stays
        elif now >= self._since + self._seconds:
            self._turn(now)
        elif len(self._younger) >= self._half:
            self.forgotten += len(self._elder)
            self._turn(now)
        self._younger[key] = value

    def _turn(self, now: float) -> None:
        self._elder, self._younger, self._since = self._younger, {}, now
