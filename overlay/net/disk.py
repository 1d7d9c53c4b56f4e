"""What protocols keep, on disk: SQLite in the node's state folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from overlay.errors import ConfigError
from overlay.net.store import Write

RUN = 4096  # rows in one statement; SQLite takes 32,766 values


class _Template(NamedTuple):
    """A statement that takes any number of rows."""

    before: str
    row: str
    after: str = ""

    def of(self, rows: int) -> str:
        """The statement for so many."""
        return self.before + ", ".join([self.row] * rows) + self.after


_KEEP = _Template("INSERT OR REPLACE INTO kept VALUES ", "(?, ?, ?)")
_FORGET = _Template("DELETE FROM kept WHERE (instance, key) IN (VALUES ", "(?, ?)", ")")


class Disk:
    """One file; it may be written in a thread, by one at a time."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(f"state folder {folder}: {error.strerror}") from None
        self._file = file = folder / "state.sqlite"
        try:
            self._db = sqlite3.connect(
                file, check_same_thread=False, isolation_level=None, cached_statements=4
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS kept"
                " (instance TEXT, key BLOB, value BLOB, PRIMARY KEY (instance, key)) WITHOUT ROWID"
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
        last = {(instance, key): value for instance, key, value in writes}
        kept = [(*place, value) for place, value in last.items() if value is not None]
        gone = [place for place, value in last.items() if value is None]
        statements = [*_in_runs(_KEEP, kept), *_in_runs(_FORGET, gone)]
        if len(statements) > 1:  # a single one is a transaction of its own
            statements = [("BEGIN", ()), *statements, ("COMMIT", ())]
        try:
            for sql, values in statements:
                self._db.execute(sql, values)
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.rollback()
            raise ConfigError(f"state file {self._file}: cannot be written: {error}") from None

    def close(self) -> None:
        """Release the file."""
        self._db.close()


def _in_runs(template: _Template, rows: list[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Statements for many rows each.

    A thread that writes gives Python's lock away for each statement, and a busy loop keeps it for
    5 ms: row by row a thousand writes took 0.6 s.
    """
    for begin in range(0, len(rows), RUN):
        run = rows[begin : begin + RUN]
        yield template.of(len(run)), [value for row in run for value in row]
