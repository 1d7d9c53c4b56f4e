"""The writer: rows in, files out. It knows no thread and no node; both drivers use it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from overlay.traces.arrays import MICRO
from overlay.traces.columns import record_batch
from overlay.traces.config import TraceSettings
from overlay.traces.rows import WIDTH, Rows
from overlay.traces.schema import VERSION, FileFacts, file_name
from overlay.traces.spool import Spool

HOUR = 3600


class DiskIsFull(OSError):
    """The disk has less left than tracing must leave to others."""


class TraceWriter:
    """Writes the rows of one recorder, in one life: a spool at a time."""

    def __init__(
        self, folder: Path, settings: TraceSettings, *, run: str, recorder: str, life: int
    ) -> None:
        self.folder = folder
        self.run = run
        self.recorder = recorder
        self.life = life
        self.rows = 0  # written
        self.files: dict[Path, int] = {}  # finished and still here, the oldest first; bytes
        self.removed = 0  # files, to keep within `traces.disk_bytes`
        self.finished = 0
        self._settings = settings
        self._number = 0
        self._spool: Spool | None = None
        self._began = 0.0
        self._hour = 0

    def write(self, rows: Rows, breathe: Callable[[float], None] = sleep) -> None:
        """Append to the spool; OSError when the disk does not take it."""
        if not rows:
            return
        if self._settings.least_free:
            self._check_disk()
        hour = int(rows[1]) // HOUR  # by the time of the first row
        if self._spool is not None and hour != self._hour:
            self.rotate()
        if self._spool is None:
            facts = FileFacts(VERSION, self.run, self.recorder, self.life, self._number)
            self._spool = Spool(self.folder, facts)
            self._number += 1
            self._began = monotonic()
            self._hour = hour
        self._spool.write(record_batch(rows, breathe))
        self.rows += len(rows) // WIDTH

    def _check_disk(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize
        if free < self._settings.least_free:
            raise DiskIsFull(28, f"{free >> 20} MiB are free, and traces.least_free is more")

    @property
    def is_due(self) -> bool:
        """Whether the spool is old or long enough to become a file."""
        spool, settings = self._spool, self._settings
        if spool is None:
            return False
        return (
            spool.rows >= settings.rotate_rows or monotonic() - self._began >= settings.rotate_every
        )

    def rotate(self) -> Path | None:
        """Turn the spool into a file that all can read; None when there is none."""
        spool, self._spool = self._spool, None
        if spool is None:
            return None
        spool.close()
        path = spool.finish(self.folder)
        if path is not None:
            self.finished += 1
            self.add(path)
        return path

    def add(self, path: Path) -> None:
        """Count a finished file of this recorder; the oldest go when they take too much."""
        self.files[path] = path.stat().st_size
        total = sum(list(self.files.values()))  # a copy: others forget files in their own thread
        while total > self._settings.disk_bytes and len(self.files) > 1:
            oldest = next(iter(self.files))
            total -= self.files.pop(oldest, 0)
            oldest.unlink(missing_ok=True)
            self.removed += 1

    def forget(self, path: Path) -> None:
        """Somebody else has it now."""
        self.files.pop(path, None)

    def abandon(self) -> None:
        """Write no more: what is in the spool stays there, for whoever recovers it."""
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.release()


def earlier_files(folder: Path, run: str, recorder: str) -> list[Path]:
    """Finished files of earlier lives of a recorder, the oldest first."""
    ending = file_name(recorder, 0, 0).split("-", 2)[2]
    found = (folder / f"run={run}").glob(f"hour=*/*-{ending}")
    return sorted((path for path in found if _is_of(path, ending)), key=lambda path: path.name)


def _is_of(path: Path, ending: str) -> bool:
    """The name of a node may end as that of another: `a` and `b-a`."""
    return path.name.split("-", 2)[2:] == [ending]


def life_of(started_at: float) -> int:
    """What tells this life of a recorder apart."""
    return max(1, round(started_at * MICRO))
