"""Which files of a folder are traces, and why the others are left out.

Spark ends a whole job at the first file that it cannot read. So every footer is looked at before:
what is empty, truncated, foreign or there twice is skipped and named. Damage behind a good footer
shows only when the rows are read: `unreadable_file` finds the file in Spark's complaint, and the
caller leaves it out and tries again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from overlay.errors import ConfigError
from overlay.traces.schema import COLUMNS, VERSION, FileFacts, file_facts, pyarrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_TYPES = {"string": "string", "float64": "double", "int64": "bigint", "int32": "int"}
SPARK_TYPES |= {"int16": "smallint"}
SCHEMA = ", ".join(f"`{column.name}` {SPARK_TYPES[column.type]}" for column in COLUMNS)
REQUIRED = tuple(column for column in COLUMNS if not column.nullable and column.since == 1)
THREADS = 8  # footers are read, not computed
PATTERN = re.compile(r"[\\*?\[\]{}]")
FOOTER = re.compile(r"FAILED_READ_FILE.*?(file:[^\s'\"]+?\.parquet)", re.DOTALL)


class Skipped(msgspec.Struct, frozen=True):
    """A file that was left out."""

    file: str  # below the folder
    reason: str


class Source(msgspec.Struct):
    """What a folder holds: files to read, and files that were left out."""

    folder: Path
    files: list[Path] = []
    runs: dict[str, str] = {}  # of each file
    skipped: list[Skipped] = []
    rows: int = 0
    bytes: int = 0
    newer: int = 0  # files of a later version: read, without what this one does not know

    def leave_out(self, path: Path, reason: str) -> None:
        """Skip a file, whatever was thought of it before."""
        if path in self.files:
            self.files.remove(path)
        self.skipped.append(Skipped(_below(path, self.folder), reason))


def trace_files(folder: Path) -> list[Path]:
    """Every Parquet file below a folder, in a fixed order; what is still being written is not."""
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: it should hold traces (run=…/hour=…/)")
    return sorted(
        path for path in folder.rglob("*.parquet") if not path.name.startswith((".", "_"))
    )


def look_at(folder: Path, files: Iterable[Path] | None = None, known: Sequence[str] = ()) -> Source:
    """Look at the footers of these files, or of all below `folder`.

    `known` are identities (`identity`) of files that were read before: the same again is a copy.
    """
    source = Source(folder)
    paths = trace_files(folder) if files is None else sorted(files)
    seen = dict.fromkeys(known, "a file that was read before")
    with ThreadPoolExecutor(THREADS) as pool:
        for path, found in zip(paths, pool.map(_examine, paths), strict=True):
            if isinstance(found, str):
                source.skipped.append(Skipped(_below(path, folder), found))
                continue
            facts, rows = found
            name = identity(facts)
            if name in seen:
                source.skipped.append(Skipped(_below(path, folder), f"a copy of {seen[name]}"))
                continue
            seen[name] = _below(path, folder)
            source.files.append(path)
            source.runs[str(path)] = facts.run
            source.rows += rows
            source.bytes += path.stat().st_size
            source.newer += facts.version > VERSION
    return source


def identity(facts: FileFacts) -> str:
    """Two files are the same exactly when this is the same."""
    return f"{facts.run}/{facts.recorder}/{facts.life}/{facts.number}"


def identities(files: Iterable[Path]) -> list[str]:
    """Of files that were found good."""
    found = map(_examine, files)
    return [identity(one[0]) for one in found if not isinstance(one, str)]


def read(spark: SparkSession, source: Source) -> DataFrame:
    """The rows of a source, with their `run`; columns that a file lacks are null."""
    from pyspark.sql import functions

    in_place: list[str] = []
    elsewhere: dict[str, list[str]] = {}  # by run
    for path in source.files:
        run = source.runs[str(path)]
        inside = path.is_relative_to(source.folder)  # a link may lead out of it
        parts = path.relative_to(source.folder).parts if inside else ()
        laid_out = len(parts) == 3 and parts[0] == f"run={run}" and parts[1].startswith("hour=")
        (in_place if laid_out else elsewhere.setdefault(run, [])).append(pattern_of(path))
    frames = []
    if in_place:
        # One scan, however many runs there are: Spark takes the run from the folder's name.
        reader = spark.read.schema(f"{SCHEMA}, run string, hour string")
        base = f"file:{source.folder.resolve()}"
        frames.append(reader.option("basePath", base).parquet(*in_place).drop("hour"))
    for run, paths in elsewhere.items():
        moved = spark.read.schema(SCHEMA).option("recursiveFileLookup", "true").parquet(*paths)
        frames.append(moved.withColumn("run", functions.lit(run)))
    if not frames:
        return spark.createDataFrame([], f"{SCHEMA}, run string")
    return reduce(lambda one, other: one.unionByName(other), frames)


def pattern_of(path: Path) -> str:
    """What Spark reads as this path and no other: it takes paths for patterns."""
    return PATTERN.sub(r"\\\g<0>", f"file:{path.resolve()}")


def unreadable_file(error: Exception) -> Path | None:
    """Which file Spark could not read; None: it failed for another reason."""
    found = FOOTER.search(str(error))
    if found is None:
        return None
    return Path(unquote(re.sub(r"^file:/*", "/", found[1])))


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def _examine(path: Path) -> tuple[FileFacts, int] | str:
    """What a file says about itself, and its rows; or why it cannot be read."""
    pa = pyarrow()
    import pyarrow.parquet as pq

    try:
        if path.stat().st_size == 0:
            return "empty"
        with pq.ParquetFile(path) as file:
            return _judge(file.schema_arrow, file.metadata)
    except pa.ArrowException as error:
        return f"corrupt or truncated: {_first_line(error)}"
    except (OSError, ValueError) as error:
        return f"unreadable: {_first_line(error)}"


def _judge(schema: Any, metadata: Any) -> tuple[FileFacts, int] | str:
    facts = file_facts(schema)
    if facts is None:
        return "foreign: not written by a recorder"
    for column in COLUMNS:
        place = schema.get_field_index(column.name)
        if place < 0:
            if column in REQUIRED:
                return f"foreign: no column {column.name}"
        elif not _fits(schema.field(place).type, column.type):
            return f"foreign: column {column.name} is {schema.field(place).type}"
    if metadata.num_rows == 0:
        return "no rows"
    return facts, metadata.num_rows


def _fits(found: Any, wanted: str) -> bool:
    plain = str(getattr(found, "value_type", found))
    names = {"string": ("string", "large_string"), "float64": ("double", "float")}
    return plain in names.get(wanted, (wanted,))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
