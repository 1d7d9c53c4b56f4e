"""The recorder of a node: a thread that writes what the node's tick left in a buffer.

It holds the node up nowhere: a row costs the tick an append, a full buffer drops and counts, and
a disk that takes no more ends tracing, not the node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import msgspec

from overlay.logs import about
from overlay.traces.columns import record_batch
from overlay.traces.config import TraceSettings
from overlay.traces.rows import RowBuffer
from overlay.traces.schema import pyarrow
from overlay.traces.spool import recover
from overlay.traces.writer import TraceWriter, earlier_files

log = logging.getLogger("overlay.traces")

START_AFTER = 1.0  # s: the buffer holds what happens meanwhile
WRITE_ROWS = 20_000  # at most in one batch: a few megabytes


class RecorderStatus(msgspec.Struct, frozen=True):
    """What `overlay trace status` shows."""

    folder: str
    run: str
    life: int
    rows: int  # written
    waiting: int
    dropped: int
    files: int  # finished in this life
    removed: int  # files, for want of `traces.disk_bytes`
    failure: str  # why tracing ended
    rotating: bool  # a file that was asked for is not finished yet


class Recorder:
    """Writes the rows of one node from `start` to `stop`, on a thread of its own."""

    def __init__(
        self,
        folder: Path,
        settings: TraceSettings,
        *,
        run: str,
        recorder: str,
        life: int,
        on_failure: Callable[[str], None],
    ) -> None:
        self._wake = Event()
        self.buffer = RowBuffer(settings.buffer_rows, self._wake.set)
        self.failure = ""
        self.on_file: Callable[[Path], None] | None = None  # on the recorder's thread
        self._settings = settings
        self._writer = TraceWriter(folder, settings, run=run, recorder=recorder, life=life)
        self._on_failure = on_failure  # on the recorder's thread
        self.ready = Event()  # it writes: pyarrow is loaded, and earlier files are finished
        self._stop = Event()
        self._rotations_wanted = self._rotations_done = 0
        self._thread = Thread(target=self._run, name="overlay-traces", daemon=True)

    def start(self) -> None:
        """Begin to write; ConfigError where pyarrow is missing."""
        check_pyarrow()
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Write what waits and finish the file; blocks for so long at most."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout)

    def rotate_soon(self) -> None:
        """Have the file finished now; `status.rotating` until it is."""
        self._rotations_wanted += 1
        self._wake.set()

    @property
    def status(self) -> RecorderStatus:
        """How far it is."""
        writer = self._writer
        return RecorderStatus(
            folder=str(writer.folder),
            run=writer.run,
            life=writer.life,
            rows=writer.rows,
            waiting=len(self.buffer),
            dropped=self.buffer.dropped,
            files=writer.finished,
            removed=writer.removed,
            failure=self.failure,
            rotating=not self.failure and self._rotations_wanted != self._rotations_done,
        )

    def _run(self) -> None:
        try:
            # Not at once: it takes a third of a second, which a node that starts needs itself.
            self._wake.wait(START_AFTER)
            pyarrow()
            record_batch([])  # its first use takes as long as thousands of rows
            self._recover()
            self.ready.set()
            while not self._stop.is_set():
                self._wake.wait(self._settings.flush_every)
                self._wake.clear()
                self._write()
                wanted = self._rotations_wanted
                if self._writer.is_due or wanted != self._rotations_done:
                    self._rotate()
                    self._rotations_done = wanted
            self._write()
            self._rotate()
        except Exception as error:  # noqa: BLE001 - whatever it is, the node must go on
            self._fail(error)

    def _write(self) -> None:
        while rows := self.buffer.fetch(WRITE_ROWS):
            self._writer.write(rows)

    def _rotate(self) -> None:
        path = self._writer.rotate()
        if path is not None and self.on_file is not None:
            self.on_file(path)

    def _recover(self) -> None:
        """Finish what earlier lives, of this node or others in the folder, left."""
        writer = self._writer
        recover(writer.folder)
        for path in earlier_files(writer.folder, writer.run, writer.recorder):
            writer.add(path)

    def _fail(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.failure = f"{self._writer.folder}: {reason}"
        log.error(
            "tracing ends, the node goes on: %s",
            self.failure,
            extra=about("tracing-ended", "traces"),
        )
        self._writer.abandon()
        self._on_failure(self.failure)
        self.buffer.clear()

    def forget(self, path: Path) -> None:
        """That file is not this recorder's any more."""
        self._writer.forget(path)

    @property
    def files(self) -> list[Path]:
        """Finished files of this node, the oldest first."""
        return list(self._writer.files)


def check_pyarrow() -> None:
    """ConfigError with what to do where pyarrow is missing, without importing it."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        pyarrow()  # which says so


def facts(status: RecorderStatus) -> dict[str, Any]:
    """The status as JSON knows it."""
    found: dict[str, Any] = msgspec.to_builtins(status)
    return found
