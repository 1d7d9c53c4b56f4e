"""From rows to columns: what the writer makes of what nodes recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import sleep
from typing import TYPE_CHECKING, Any, TypeAlias

from overlay.traces.rows import Place, Row
from overlay.traces.schema import NAMES, VERSION, arrow_schema, pyarrow
from overlay.tracing import Trace

if TYPE_CHECKING:
    import pyarrow as pa

# Rows between two breaths: others need the interpreter, too. On cores that are busy it lies idle at
# each change of hands until the scheduler lets the other thread run, so slices must not be small.
SLICE = 2048
BREATH = 0.0005  # s: a pause of none gives the interpreter back before anybody else has it
MICRO = 1_000_000

Values: TypeAlias = dict[str, list[Any]]


def record_batch(rows: Sequence[Row], breathe: Callable[[float], None] = sleep) -> pa.RecordBatch:
    """Return these rows as Arrow; `breathe` is called now and then, so that other threads run."""
    values: Values = {name: [] for name in NAMES}
    for start in range(0, len(rows), SLICE):
        _extend(values, rows[start : start + SLICE])
        breathe(BREATH)
    schema = arrow_schema()
    arrow = pyarrow()
    columns = [arrow.array(values[field.name], type=field.type) for field in schema]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _extend(values: Values, rows: Sequence[Row]) -> None:
    numbers, moments, clocks, places, protocols, scopes, weights, records = zip(*rows, strict=True)
    # Rounded before they are added: a float has no room for microseconds and an epoch of today.
    times = [round(at * MICRO) for at in moments]
    offsets = [None if clock is None else round(clock[0] * MICRO) for clock in clocks]
    times = [at + offset if offset else at for at, offset in zip(times, offsets, strict=True)]
    for name, column in (
        ("version", [VERSION] * len(rows)),
        ("time", times),
        ("row", numbers),
        ("node", [place.node or None for place in places]),
        ("life", [place.life for place in places]),
        ("zone", [place.zone or None for place in places]),
        ("offset", offsets),
        ("clock_error", [None if clock is None else round(clock[1] * MICRO) for clock in clocks]),
        ("protocol", protocols),
        ("scope", [scope or None for scope in scopes]),
        ("kind", [record.kind.name for record in records]),
        ("message", [record.message or None for record in records]),
        ("peer", [record.peer or None for record in records]),
        ("topic", [record.topic or None for record in records]),
        ("origin", [*map(_origin, records, places)]),
        ("stream", [record.stream for record in records]),
        ("first", [record.first for record in records]),
        ("count", [record.count for record in records]),
        ("bytes", [record.bytes for record in records]),
        ("hops", [record.hops for record in records]),
        ("duration", [*map(_duration, records, times)]),
        ("detail", [record.detail or None for record in records]),
        ("key", [record.key or None for record in records]),
        ("value", [record.value for record in records]),
        ("weight", weights),
    ):
        values[name].extend(column)


def _origin(record: Trace, place: Place) -> str | None:
    """A flow without one began here."""
    return record.origin or (place.node if record.kind.flow else None)


def _duration(record: Trace, time: int) -> int | None:
    if record.since is not None:
        return time - round(record.since * MICRO)
    return None if record.duration is None else round(record.duration * MICRO)
