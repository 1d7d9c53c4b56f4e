"""What protocols keep, on disk: SQLite in the node's state folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from overlay.errors import ConfigError
from overlay.net.store import Write


class Disk:
    """One file; it may be written in a thread, by one at a time."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"state folder {folder}: {error.strerror}") from None
        self._file = file = folder / "state.sqlite"
        try:
            self._db = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS kept"
                " (instance TEXT, key BLOB, value BLOB, PRIMARY KEY (instance, key))"
            )
        except sqlite3.Error as error:
            raise ConfigError(f"state file {file}: {error}; move it away to start afresh") from None

    def read(self, instance: str) -> dict[bytes, bytes]:
        """What that instance stored, by key."""
        rows = self._db.execute(
            "SELECT key, value FROM kept WHERE instance = ? ORDER BY key", (instance,)
        )
        return {bytes(key): bytes(value) for key, value in rows}

    def write(self, writes: Sequence[Write]) -> None:
        """Commit all of them or none; on disk when this returns."""
        try:
            self._db.execute("BEGIN")
            for instance, key, value in writes:
                self._db.execute(*_statement(instance, key, value))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise ConfigError(f"state file {self._file}: cannot be written: {error}") from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def _statement(instance: str, key: bytes, value: bytes | None) -> tuple[str, tuple[object, ...]]:
    if value is None:
        return "DELETE FROM kept WHERE instance = ? AND key = ?", (instance, key)
    return "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", (instance, key, value)
