"""Files: an Arrow stream that a crash leaves readable, and Parquet that it becomes.

A spool lies in `DIR/_spool` (which Spark does not look into), locked by its writer. Rotation turns
it into `DIR/run=…/hour=…/….parquet`, by a rename once it is whole; what a crash left is turned so
by `recover`, in the same way, so that doing it twice makes the same file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from overlay.traces.arrays import MICRO
from overlay.traces.config import RUN_NAME
from overlay.traces.schema import FileFacts, arrow_schema, file_facts, file_name, pyarrow
from overlay.tracing.kinds import ROWS_DROPPED

if TYPE_CHECKING:
    import pyarrow as pa

SPOOLS = "_spool"
SUFFIX = ".arrows"
UNFINISHED = ".part"
UNREADABLE = ".unreadable"
LATEST = 253_402_300_799  # s since 1970: the last hour that has a name of this form
GROUP_ROWS = 1 << 17  # of one row group: so many a Spark task takes at once
DICTIONARIES = ["node", "zone", "protocol", "scope", "kind", "message", "peer", "topic", "origin"]
DICTIONARIES += ["detail", "key", "version", "life", "offset", "clock_error", "stream", "count"]
DICTIONARIES += ["hops", "weight", "bytes"]
DELTAS = dict.fromkeys(("time", "row", "first", "duration"), "DELTA_BINARY_PACKED")


class Spool:
    """One file that is being written: whole batches, each readable as soon as it is written."""

    def __init__(self, folder: Path, facts: FileFacts) -> None:
        arrow = pyarrow()
        spools = folder / SPOOLS
        spools.mkdir(parents=True, exist_ok=True)
        name = file_name(facts.recorder, facts.life, facts.number)
        self.path = spools / Path(name).with_suffix(SUFFIX)
        self.facts = facts
        self.rows = 0
        self._lock = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self._file = arrow.OSFile(str(self.path), "wb")
            self._stream = arrow.ipc.new_stream(self._file, arrow_schema(facts))
        except BaseException:
            os.close(self._lock)
            self.path.unlink(missing_ok=True)
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Append; when this returns a crash of this process does not lose it."""
        self._stream.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Write no more; the lock stays until `finish`, so that nobody else recovers it."""
        self._stream.close()
        self._file.close()

    def finish(self, folder: Path) -> Path | None:
        """Turn it into Parquet, once it is closed; None when it held no row."""
        try:
            return to_parquet(self.path, folder)
        finally:
            self.release()

    def release(self) -> None:
        """Leave it to whoever recovers it."""
        os.close(self._lock)


def to_parquet(spool: Path, folder: Path) -> Path | None:
    """Make a Parquet file of a spool, and remove the spool; None when it held no row."""
    arrow = pyarrow()
    import pyarrow.parquet as parquet

    with arrow.OSFile(str(spool), "rb") as source:
        facts, batches = _read(source)
        first = next(batches, None)
        if facts is None or first is None:
            if facts is None and spool.stat().st_size:
                spool.rename(spool.with_suffix(UNREADABLE))  # not ours to remove
            else:
                spool.unlink()
            return None
        target = folder / partition(facts.run, first.column("time")[0].as_py()) / spool.name
        target = target.with_suffix(".parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = spool.with_suffix(UNFINISHED)
        try:
            with unfinished.open("wb") as file:
                rows = _write(parquet, file, facts, first, batches)
                file.flush()
                os.fsync(file.fileno())
            assert rows
            unfinished.rename(target)
        finally:
            unfinished.unlink(missing_ok=True)
    spool.unlink()
    return target


def _write(
    parquet: Any, file: Any, facts: FileFacts, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
) -> int:
    arrow = pyarrow()
    writer = parquet.ParquetWriter(
        file,
        arrow_schema(),
        compression="zstd",
        compression_level=3,
        use_dictionary=DICTIONARIES,
        column_encoding=DELTAS,
        store_schema=False,
        write_statistics=["time", "node", "kind"],
    )
    rows = dropped = 0
    waiting: list[pa.RecordBatch] = []
    with writer:
        for batch in (first, *rest):
            waiting.append(batch)
            rows += batch.num_rows
            dropped += _dropped(batch)
            if sum(one.num_rows for one in waiting) >= GROUP_ROWS:
                writer.write_table(arrow.Table.from_batches(waiting), row_group_size=GROUP_ROWS)
                waiting = []
        if waiting:
            writer.write_table(arrow.Table.from_batches(waiting), row_group_size=GROUP_ROWS)
        told = msgspec.structs.replace(facts, rows=rows, dropped=dropped)
        schema = arrow_schema(told)
        writer.add_key_value_metadata(schema.metadata)
    return rows


def _dropped(batch: pa.RecordBatch) -> int:
    """How many rows the recorder says are missing here."""
    kinds, counts = batch.column("kind"), batch.column("count")
    if ROWS_DROPPED.name not in kinds.unique().to_pylist():
        return 0
    pairs = zip(kinds.to_pylist(), counts.to_pylist(), strict=True)
    return sum(count for kind, count in pairs if kind == ROWS_DROPPED.name)


def _read(source: Any) -> tuple[FileFacts | None, Iterator[pa.RecordBatch]]:
    arrow = pyarrow()
    try:
        stream = arrow.ipc.open_stream(source)
    except (arrow.ArrowInvalid, OSError):  # it crashed before its head was written
        return None, iter(())
    facts = file_facts(stream.schema)
    if facts is None or not RUN_NAME.fullmatch(facts.run):
        return None, iter(())

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            try:
                batch = stream.read_next_batch()
            except (StopIteration, arrow.ArrowInvalid, OSError):  # or it ends in mid-batch
                return
            if batch.num_rows:
                yield batch

    return facts, batches()


def partition(run: str, micros: int) -> Path:
    """Where rows of that time lie, relative to the folder of the traces."""
    seconds = min(max(micros // MICRO, 0), LATEST)  # of a clock that jumped, perhaps
    hour = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H")
    return Path(f"run={run}", f"hour={hour}")


def recover(folder: Path) -> list[Path]:
    """Turn what crashed recorders left into Parquet; those that are being written are let be."""
    made: list[Path] = []
    for spool in sorted((folder / SPOOLS).glob(f"*{SUFFIX}")):
        try:
            lock = os.open(spool, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its writer may have finished, and removed it, between the two lines before.
            target = to_parquet(spool, folder) if spool.exists() else None
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
        if target is not None:
            made.append(target)
    return made
