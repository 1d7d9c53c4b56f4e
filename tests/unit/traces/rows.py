"""Rows for tests of the recorder: a node that records what it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from overlay.host import Host
from overlay.traces.rows import WIDTH, NodeTraces, Place, RowBuffer, Rows
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import DELIVERED

START = 1_794_992_700.0  # s since 1970: five minutes after an hour began


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def never_woken() -> None:
    """No writer waits."""


def host(name: str = "ada") -> Host:
    """A host that runs nothing."""

    def no_effects(_host: Any, _instance: Any) -> Any:
        raise AssertionError

    return Host(name, no_effects, "seed")


def node_traces(
    buffer: RowBuffer | None = None,
    *,
    name: str = "ada",
    level: Level = Level.ALL,
    sample: int = 1,
    clock: Callable[[], float] | None = None,
    of: Host | None = None,
) -> NodeTraces:
    """What a node called `name` records with."""
    return NodeTraces(
        buffer if buffer is not None else RowBuffer(1000, never_woken),
        of or host(name),
        Place(name, 1, "lab"),
        clock or Clock(),
        level=level,
        sample=sample,
    )


def delivery(first: int, count: int = 1, **columns: Any) -> Trace:
    """A batch of a stream of bob's."""
    return Trace(
        DELIVERED,
        "bob",
        "news",
        "bob",
        7,
        first,
        count,
        since=START - 0.25,
        detail="ack",
        **columns,
    )


class Taken(NamedTuple):
    """A row, by names."""

    number: int
    at: float
    clock: tuple[float, float] | None
    place: Place
    protocol: str
    scope: str
    weight: int
    record: Trace


def fetched(buffer: RowBuffer) -> list[Taken]:
    """All rows that wait."""
    values = buffer.fetch(buffer.capacity + 1)
    return [Taken(*values[at : at + WIDTH]) for at in range(0, len(values), WIDTH)]


def rows_of(records: Sequence[Trace], at: float = START) -> Rows:
    """Rows as a node takes them."""
    buffer = RowBuffer(len(records) + 1, never_woken)
    traces = node_traces(buffer, clock=Clock(at))
    for record in records:
        traces.take("topics", "", record)
    return buffer.fetch(len(records))


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """All rows of a file."""
    import pyarrow.parquet as parquet

    rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist()
    return rows


def read_folder(folder: Path) -> list[dict[str, Any]]:
    """All rows of all files of a folder of traces, by recorder and number."""
    paths = sorted(folder.glob("run=*/hour=*/*.parquet"), key=lambda path: path.name)
    return [row for path in paths for row in read_parquet(path)]
