"""The schema of the traces: every column, its unit and its meaning, for both drivers.

Files lie in `DIR/run=RUN/hour=YYYY-MM-DDTHH/LIFE-NUMBER-RECORDER.parquet`: `run` and `hour` are
columns by partition. What is true of a whole file is in its metadata (`FileFacts`); a file is the
same as another exactly when recorder, life and number are the same.

The schema grows by columns at the end, and VERSION with it. Columns that a file does not have are
null. A column is never renamed, and never changes its meaning.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from overlay.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
METADATA_KEY = b"overlay.traces"  # of the schema: a FileFacts as JSON


class Column(NamedTuple):
    """One column: `type` is int16 … int64, float64 or string."""

    name: str
    type: str
    unit: str
    meaning: str
    nullable: bool = True
    since: int = 1  # version of the schema


COLUMNS: tuple[Column, ...] = (
    Column("version", "int16", "", "version of the schema that wrote the row", nullable=False),
    Column(
        "time",
        "int64",
        "µs since 1970 (in the simulator since its start)",
        "overlay time: the node's clock and `offset`; the node's clock while `offset` is null",
        nullable=False,
    ),
    Column(
        "row",
        "int64",
        "",
        "number of the row in a life of its recorder: tells the order of equal times; one "
        "that is missing was dropped",
        nullable=False,
    ),
    Column("node", "string", "", "where it happened; null: nowhere (a fault of the network)"),
    Column(
        "life",
        "int64",
        "",
        "tells the lives of a node apart: greater is later (µs of its start by the node's clock; "
        "in the simulator 1, 2, …)",
        nullable=False,
    ),
    Column("zone", "string", "", "the base zone of the node; null: it has none"),
    Column("offset", "int64", "µs", "overlay time - the node's clock; null: not known yet"),
    Column("clock_error", "int64", "µs", "how far `time` may be off at most; null: not known"),
    Column(
        "protocol",
        "string",
        "",
        "whose row it is: a protocol's name, `driver`, or `traces` (the recorder)",
        nullable=False,
    ),
    Column("scope", "string", "", "of the protocol's instance: a zone; null: the node's own"),
    Column("kind", "string", "", "what happened: see the table of kinds", nullable=False),
    Column("message", "string", "", "type of message, where it is about messages"),
    Column("peer", "string", "", "the other node"),
    Column("topic", "string", "", "topic"),
    Column("origin", "string", "", "who began the flow: publisher, source of a route or request"),
    Column("stream", "int64", "", "number of the flow, unique together with `origin`"),
    Column("first", "int64", "", "number of the first message of a range in its flow"),
    Column(
        "count", "int32", "", "how many: of the range first … first + count - 1", nullable=False
    ),
    Column("bytes", "int64", "bytes", "of all that the row counts"),
    Column("hops", "int32", "", "links from `origin` to here"),
    Column("duration", "int64", "µs", "how long it took, until `time`; may be < 0 by clock error"),
    Column("detail", "string", "", "reason, mode or phase: few different words"),
    Column("key", "string", "", "key of a route or of the table (hexadecimal), or a digest"),
    Column("value", "float64", "as the kind says", "a measured value"),
    Column(
        "weight",
        "int32",
        "",
        "so many rows like this one it stands for: 1, or the sampling rate",
        nullable=False,
    ),
)

NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)


class FileFacts(msgspec.Struct, frozen=True):
    """What the metadata of a file says about all of it."""

    version: int
    run: str
    recorder: str  # the node; for a run of the simulator the name of the scenario
    life: int  # of the recorder
    number: int  # of the file in that life, from 0 on, without gaps
    rows: int = 0  # in this file
    dropped: int = 0  # rows dropped in this life until the end of this file


def file_name(recorder: str, life: int, number: int) -> str:
    """Name of a finished file: unique, and one that Hadoop neither hides nor stumbles over."""
    plain = re.sub(r"[^A-Za-z0-9.-]", "_", recorder)[:100]
    if plain != recorder:
        plain += "_" + blake2b(recorder.encode(), digest_size=4).hexdigest()
    return f"{life:016x}-{number:06d}-{plain}.parquet"


def arrow_schema(facts: FileFacts | None = None) -> pa.Schema:
    """Return the schema as Arrow knows it; strings are dictionaries on disk, plain here."""
    pa = pyarrow()
    types = {"string": pa.string(), "float64": pa.float64()}
    fields = [
        pa.field(
            column.name,
            types.get(column.type) or getattr(pa, column.type)(),
            nullable=column.nullable,
        )
        for column in COLUMNS
    ]
    metadata = None if facts is None else {METADATA_KEY: msgspec.json.encode(facts)}
    return pa.schema(fields, metadata=metadata)


def file_facts(schema: pa.Schema) -> FileFacts | None:
    """Read what a file says about itself; None: it is not one of ours."""
    raw = (schema.metadata or {}).get(METADATA_KEY)
    try:
        return None if raw is None else msgspec.json.decode(raw, type=FileFacts)
    except msgspec.MsgspecError:
        return None


def pyarrow() -> Any:
    """Import pyarrow when it is needed: it takes 50 MB and a fifth of a second."""
    try:
        import pyarrow as pa
    except ImportError:
        raise ConfigError(
            "traces need pyarrow: pip install 'zmq-overlay[traces]', or leave traces.level off"
        ) from None
    return pa


def describe() -> str:
    """Return all columns and kinds as Markdown, for the documentation."""
    from overlay.tracing.kinds import KINDS

    columns = [f"| `{one.name}` | {one.type} | {one.unit} | {one.meaning} |" for one in COLUMNS]
    kinds = [
        f"| `{one.name}` | {one.level.name.lower()} | {one.meaning} | "
        + "; ".join(f"`{column}`: {what}" for column, what in one.columns.items())
        + " |"
        for one in KINDS.values()
    ]
    return "\n".join(
        [
            "| Column | Type | Unit | Meaning |",
            "|---|---|---|---|",
            *columns,
            "",
            "| Kind | From level | Meaning | Columns |",
            "|---|---|---|---|",
            *kinds,
        ]
    )


PAGE = """# Traces: every column, and every kind of row

Made by `python -m overlay.traces.schema > docs/TRACES.md` from `overlay/traces/schema.py` and
`overlay/tracing/kinds.py`; a test holds it to them. What does not apply to a row is null. `run` and
`hour` are columns by partition.
"""

if __name__ == "__main__":
    print(f"{PAGE}\n{describe()}")
