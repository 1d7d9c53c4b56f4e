"""A simulated disk: writes take time, and a crash decides what is left of them."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import TypeAlias

from overlay.scenario import Keep

Write: TypeAlias = tuple[str, bytes, bytes | None]  # instance key, key, value (None: forget)


class Disk:
    """What one node stored, by instance, and the writes that are not acknowledged yet."""

    __slots__ = ("_kept", "_pending")

    def __init__(self) -> None:
        self._kept: dict[str, dict[bytes, bytes]] = {}
        self._pending: deque[Write] = deque()

    def begin(self, write: Write) -> None:
        """Start a write; it is on disk only when `finish` is called, or by luck."""
        self._pending.append(write)

    def finish(self) -> None:
        """The oldest write is on disk."""
        self._apply(self._pending.popleft())

    def kept(self, instance: str) -> dict[bytes, bytes]:
        """Return a copy of what an instance finds when it starts."""
        return dict(self._kept.get(instance, ()))

    def crash(self, keep: Keep, rng: Random) -> None:
        """Lose what a crash of that kind loses.

        "all": the process died, its writes reach the disk. "power-cut": any number of the
        unacknowledged writes, the oldest first, made it. "none": a new disk.
        """
        pending, self._pending = self._pending, deque()
        if keep == "none":
            self._kept = {}
            return
        survivors = len(pending) if keep == "all" else rng.randint(0, len(pending))
        for _ in range(survivors):
            self._apply(pending.popleft())

    def _apply(self, write: Write) -> None:
        instance, key, value = write
        if value is None:
            self._kept.get(instance, {}).pop(key, None)
        else:
            self._kept.setdefault(instance, {})[key] = value
