"""What protocols keep: in the node's state folder, committed off the loop, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio

from overlay.host import Instance, Kept

if TYPE_CHECKING:
    from overlay.net.disk import Disk

Stored = Callable[[Iterable[tuple[Instance, Hashable]]], None]
"""Whose writes are on disk, and the tokens of each, in order."""


class Write(NamedTuple):
    """One value of one instance; None removes it."""

    instance: str
    key: bytes
    value: bytes | None


class Store:
    """Writes of one tick are committed together; `on_stored` follows when they are on disk.

    Without a folder what is stored lasts as long as the process, and SQLite (2 MB) stays out.
    """

    def __init__(self, folder: Path | None, stored: Stored) -> None:
        self._stored = stored
        self._waiting: list[tuple[Write, Instance, Hashable]] = []
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._memory: dict[str, dict[bytes, bytes]] = {}
        self._disk: Disk | None = None
        if folder is not None:
            from overlay.net.disk import Disk

            self._disk = Disk(folder)

    def kept(self, instance: Instance) -> Kept:
        """What an earlier life stored."""
        if self._disk is not None:
            return self._disk.read(instance.key)
        return dict(sorted(self._memory.get(instance.key, {}).items()))

    def put(self, instance: Instance, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Queue one write."""
        self._waiting.append((Write(instance.key, key, value), instance, token))
        self._wake.set()
        if self._idle.is_set():
            self._idle = trio.Event()

    async def run(self) -> None:
        """Commit what waits, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            batch, self._waiting = self._waiting, []
            await self._commit([write for write, _, _ in batch])
            self._stored([(instance, token) for _, instance, token in batch])
            if not self._waiting:
                self._idle.set()

    async def settled(self) -> None:
        """Wait until nothing waits for the disk."""
        await self._idle.wait()

    async def _commit(self, writes: list[Write]) -> None:
        if self._disk is not None:
            await trio.to_thread.run_sync(self._disk.write, writes)
            return
        for instance, key, value in writes:
            kept = self._memory.setdefault(instance, {})
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value

    def close(self) -> None:
        """Release the file."""
        if self._disk is not None:
            self._disk.close()
