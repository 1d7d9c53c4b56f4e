"""Analysing a folder of traces, only what is new in it, exactly once.

A stream of Spark tells which files are new: its checkpoint remembers those that were handed out,
and hands out a batch again when it was not finished. Each batch writes its digests into folders
named after it, so a batch that runs again replaces what it had written. The tables are concluded
from the digests of all batches.

    OUT/.state/checkpoint       which files were handed out in which batch (Spark's)
    OUT/.state/batches/N.json   what was read and left out in batch N
    OUT/.state/digests/NAME/batch=N/
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from overlay.errors import ConfigError
from overlay.traces.jobs import JOBS, Digest, Job, Table
from overlay.traces.jobs.nodes import NODES, settle
from overlay.traces.reading import (
    Skipped,
    Source,
    identities,
    look_at,
    pattern_of,
    read,
    trace_files,
    unreadable_file,
)
from overlay.traces.session import is_remote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

STATE = ".state"
FORMAT = 1  # of the digests; another one starts over
FOR_EVER = "36500d"  # Spark forgets files that are a week older than the newest one otherwise
PART_ROWS = 500_000
AT_ONCE = 3  # tables
MOST_PARTS = 200
FILES = "path string, modificationTime timestamp, length bigint, content binary"  # Spark's own
Tell = Callable[[str, int, int], None]
"""What is being done, and which step of how many it is."""


class Batch(msgspec.Struct):
    """What one batch read."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    newer: int = 0
    skipped: list[Skipped] = []
    identities: list[str] = []


class State(msgspec.Struct, frozen=True):
    """What the digests in a folder are of."""

    traces: str
    digests: list[str]  # with their columns: those of an earlier version are made again
    format: int = FORMAT


def chosen_jobs(names: Iterable[str] = ()) -> list[Job]:
    """Jobs by name, in their order; ConfigError names the nearest one."""
    wanted = list(names) or list(JOBS)
    for name in wanted:
        if name not in JOBS:
            near = get_close_matches(name, JOBS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(JOBS)}"
            raise ConfigError(f"there is no job {name}: {hint}")
    return [job for name, job in JOBS.items() if name in wanted]


class Analysis:
    """One folder of traces and what is known of it so far."""

    def __init__(
        self,
        spark: SparkSession,
        traces: Path,
        out: Path,
        jobs: Sequence[Job],
        tell: Tell = lambda doing, step, steps: None,
    ) -> None:
        self._spark = spark
        self._traces = traces
        self._folder = out / STATE
        self._jobs = jobs
        self._tell = tell
        needed = (NODES, *(digest for job in jobs for digest in job.needs))
        self._digests = {digest.name: digest for digest in needed}
        self._tables = [table for job in jobs for table in job.tables]
        self._steps = 1 + len(self._digests) + len(self._tables)
        self._step = 0

    # -- reading ----------------------------------------------------------------------------------

    def take_new_files(self) -> None:
        """Digest what came since the last time; ConfigError: there never was anything."""
        self._begin("looking at the files")
        trace_files(self._traces)
        if is_remote(self._spark) or not self._continues():
            # A Connect server cannot call back: it reads everything, each time.
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "state.json").write_bytes(msgspec.json.encode(self._state()))
        if is_remote(self._spark):
            self.take(trace_files(self._traces), 0)
        else:
            self._stream()
        if not self._kept(NODES):
            raise ConfigError(f"no traces in {self._traces}{self._why()}")

    def _stream(self) -> None:
        files = (
            self._spark.readStream.format("binaryFile")
            .option("pathGlobFilter", "*.parquet")
            .option("recursiveFileLookup", "true")
            .option("maxFileAge", FOR_EVER)
            .schema(FILES)
            .load(pattern_of(self._traces))
            .select("path")
        )
        query = (
            files.writeStream.foreachBatch(self._take_batch)
            .option("checkpointLocation", f"file:{(self._folder / 'checkpoint').resolve()}")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _take_batch(self, names: DataFrame, batch: int) -> None:
        found = [Path(unquote(row.path.removeprefix("file:"))) for row in names.collect()]
        self.take(found, batch)

    def take(self, files: Sequence[Path], batch: int) -> None:
        """Digest these files as that batch; what it had written before is replaced."""
        others = [one for number, one in self._batches() if number != batch]
        known = [name for one in others for name in one.identities]
        source = look_at(self._traces.resolve(), [path.resolve() for path in files], known)
        first_step = self._step
        while source.files:
            try:
                self._digest(source, batch)
                break
            except Exception as error:
                broken = unreadable_file(error)
                if broken is None or broken not in source.files:
                    raise
                source.leave_out(broken, "corrupt: Spark cannot read its rows")
                self._step = first_step
        done = Batch(
            len(source.files),
            source.rows,
            source.bytes,
            source.newer,
            source.skipped,
            identities(source.files),
        )
        notes = self._folder / "batches"
        notes.mkdir(parents=True, exist_ok=True)
        (notes / f"{batch}.json").write_bytes(msgspec.json.encode(done))

    def _digest(self, source: Source, batch: int) -> None:
        self._divide(source.rows)
        rows = read(self._spark, source)
        self._write(NODES, NODES.take(rows, rows), batch)
        nodes = settle(self._read(NODES)).cache()
        try:
            for digest in self._digests.values():
                if digest is not NODES:
                    self._write(digest, digest.take(rows, nodes), batch)
        finally:
            nodes.unpersist()

    def _write(self, digest: Digest, frame: DataFrame, batch: int) -> None:
        self._begin(f"reading for {digest.name}")
        place = self._place(digest) / f"batch={batch}"
        frame.write.mode("overwrite").parquet(f"file:{place.resolve()}")

    # -- concluding -------------------------------------------------------------------------------

    def tables(self) -> Iterator[tuple[Table, pa.Table]]:
        """Each table of the jobs, concluded from all digests."""
        digests: Mapping[str, DataFrame] = {
            name: self._read(digest) for name, digest in self._digests.items()
        }
        self._divide(0)  # digests are small

        def conclude(table: Table) -> pa.Table:
            self._begin(f"concluding {table.name}")
            return table.of(digests).toArrow()

        # Most of it is Spark's planning, each on one core.
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from zip(self._tables, pool.map(conclude, self._tables), strict=True)

    def summary(self) -> Batch:
        """Everything that was read, in all batches."""
        whole = Batch()
        for _, one in self._batches():
            whole.files += one.files
            whole.rows += one.rows
            whole.bytes += one.bytes
            whole.newer += one.newer
            whole.skipped = whole.skipped + one.skipped
        return whole

    @property
    def batches(self) -> int:
        """How many batches there were so far."""
        return len(list(self._batches()))

    # -- what is kept -----------------------------------------------------------------------------

    def _state(self) -> State:
        digests = [f"{one.name} ({one.schema})" for one in self._digests.values()]
        return State(str(self._traces.resolve()), sorted(digests))

    def _continues(self) -> bool:
        """Whether what is kept is of these traces, and has all that the jobs need."""
        try:
            raw = (self._folder / "state.json").read_bytes()
            kept = msgspec.json.decode(raw, type=State)
        except (OSError, msgspec.MsgspecError):
            return False
        wanted = self._state()
        return (
            kept.traces == wanted.traces
            and kept.format == wanted.format
            and set(wanted.digests) == set(kept.digests)
        )

    def _batches(self) -> Iterator[tuple[int, Batch]]:
        for path in sorted((self._folder / "batches").glob("*.json")):
            yield int(path.stem), msgspec.json.decode(path.read_bytes(), type=Batch)

    def _place(self, digest: Digest) -> Path:
        return self._folder / "digests" / digest.name

    def _kept(self, digest: Digest) -> bool:
        return any(self._place(digest).glob("batch=*"))

    def _read(self, digest: Digest) -> DataFrame:
        return self._spark.read.schema(digest.schema).parquet(
            f"file:{self._place(digest).resolve()}"
        )

    def _why(self) -> str:
        skipped = self.summary().skipped
        if not skipped:
            return ": there is no Parquet file below it"
        more = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
        return f": {skipped[0].file} is {skipped[0].reason}{more}"

    def _divide(self, rows: int) -> None:
        """Into how many parts Spark sorts and groups: a task costs more than a few rows."""
        parts = max(2, min(MOST_PARTS, rows // PART_ROWS))
        self._spark.conf.set("spark.sql.shuffle.partitions", str(parts))

    def _begin(self, doing: str) -> None:
        self._step += 1
        self._tell(doing, min(self._step, self._steps), self._steps)


def write_tables(out: Path, tables: Iterable[tuple[Table, Any]]) -> dict[str, Any]:
    """Write each as `tables/NAME.parquet` and `.csv`; all of them, by name."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    folder = out / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for table, rows in tables:
        pq.write_table(rows, folder / f"{table.name}.parquet")
        csv.write_csv(rows, folder / f"{table.name}.csv")
        written[table.name] = rows
    return written
