"""What protocols keep: SQLite in the node's state folder, committed off the loop."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Hashable
from pathlib import Path

import trio

from overlay.errors import ConfigError
from overlay.host import Instance, Kept

Stored = Callable[[Instance, Hashable], None]


class Store:
    """Writes of one tick are committed together; `on_stored` follows when they are on disk."""

    def __init__(self, folder: Path | None, stored: Stored) -> None:
        self._stored = stored
        self._waiting: list[tuple[Instance, bytes, bytes | None, Hashable]] = []
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        where = ":memory:"  # without a folder it lasts as long as the process
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise ConfigError(f"state folder {folder}: {error.strerror}") from None
            where = str(folder / "state.sqlite")
        try:
            self._db = sqlite3.connect(where, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS kept"
                " (instance TEXT, key BLOB, value BLOB, PRIMARY KEY (instance, key))"
            )
        except sqlite3.Error as error:
            raise ConfigError(
                f"state file {where}: {error}; move it away to start afresh"
            ) from None

    def kept(self, instance: Instance) -> Kept:
        """What an earlier life stored."""
        rows = self._db.execute(
            "SELECT key, value FROM kept WHERE instance = ? ORDER BY key", (instance.key,)
        )
        return {bytes(key): bytes(value) for key, value in rows}

    def put(self, instance: Instance, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Queue one write."""
        self._waiting.append((instance, key, value, token))
        self._wake.set()
        if self._idle.is_set():
            self._idle = trio.Event()

    async def run(self) -> None:
        """Commit what waits, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            writes, self._waiting = self._waiting, []
            await trio.to_thread.run_sync(self._commit, writes)
            for instance, _, _, token in writes:
                self._stored(instance, token)
            if not self._waiting:
                self._idle.set()

    async def settled(self) -> None:
        """Wait until nothing waits for the disk."""
        await self._idle.wait()

    def _commit(self, writes: list[tuple[Instance, bytes, bytes | None, Hashable]]) -> None:
        self._db.execute("BEGIN")
        for instance, key, value, _ in writes:
            if value is None:
                self._db.execute(
                    "DELETE FROM kept WHERE instance = ? AND key = ?", (instance.key, key)
                )
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", (instance.key, key, value)
                )
        self._db.execute("COMMIT")

    def close(self) -> None:
        """Release the file."""
        self._db.close()
