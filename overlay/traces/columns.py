"""From rows to columns: what the writer makes of what nodes recorded.

Rows of a stream, or of a link, are alike in all words and differ in numbers. So the words of a row
are one code, of its *head*; Arrow spreads heads out to rows, without the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import TYPE_CHECKING, Any, TypeAlias

from overlay.traces.arrays import Numbers, microseconds, strings
from overlay.traces.rows import WIDTH, Place, Rows
from overlay.traces.schema import VERSION, arrow_schema, pyarrow
from overlay.tracing import Trace

if TYPE_CHECKING:
    import pyarrow as pa

# Rows between two breaths: others need the interpreter, too. On cores that are busy it lies idle at
# each change of hands until the scheduler lets the other thread run, so slices must not be small.
SLICE = 2048
BREATH = 0.0005  # s: a pause of none gives the interpreter back before anybody else has it

Head: TypeAlias = tuple[Place, str, str, int, str, bool, str, str, str, str, str]
"""Place, protocol, scope, weight, name of the kind, whether it has a flow, message, peer, topic,
origin, detail."""


def record_batch(rows: Rows, breathe: Callable[[float], None] = sleep) -> pa.RecordBatch:
    """Return these rows as Arrow; `breathe` is called now and then, so that other threads run."""
    columns = _Columns()
    for start in range(0, len(rows), SLICE * WIDTH):
        columns.extend(rows[start : start + SLICE * WIDTH])
        breathe(BREATH)
    return columns.batch()


class _Columns:
    """What is known of some rows, column by column."""

    def __init__(self) -> None:
        self.heads: dict[Head, int] = {}
        self.codes = Numbers("i")
        self.row = Numbers("q")
        self.at = Numbers("d")
        self.offset = Numbers("d")
        self.error = Numbers("d")
        self.stream = Numbers("q")
        self.first = Numbers("q")
        self.count = Numbers("i")
        self.bytes = Numbers("q")
        self.hops = Numbers("i")
        self.duration = Numbers("d")
        self.since = Numbers("d")
        self.value = Numbers("d")
        self.keys: list[str] = []

    def extend(self, rows: Rows) -> None:
        """Take in some more; the interpreter is held meanwhile."""
        records: list[Trace] = rows[7::WIDTH]
        heads = self.heads
        code_of = heads.setdefault  # of a tuple that is gone at once, unless it is a new one
        words = zip(*(rows[at::WIDTH] for at in (3, 4, 5, 6)), records, strict=True)
        self.codes.extend(
            [
                code_of(
                    (
                        place,
                        protocol,
                        scope,
                        weight,
                        one.kind.name,
                        one.kind.flow,
                        one.message,
                        one.peer,
                        one.topic,
                        one.origin,
                        one.detail,
                    ),
                    len(heads),
                )
                for place, protocol, scope, weight, one in words
            ]
        )
        self.row.extend(rows[0::WIDTH])
        self.at.extend(rows[1::WIDTH])
        clocks = rows[2::WIDTH]
        self.offset.extend([clock and clock[0] for clock in clocks])
        self.error.extend([clock and clock[1] for clock in clocks])
        self.stream.extend([one.stream for one in records])
        self.first.extend([one.first for one in records])
        self.count.extend([one.count for one in records])
        self.bytes.extend([one.bytes for one in records])
        self.hops.extend([one.hops for one in records])
        self.duration.extend([one.duration for one in records])
        self.since.extend([one.since for one in records])
        self.value.extend([one.value for one in records])
        self.keys += [one.key for one in records]

    def batch(self) -> pa.RecordBatch:
        """All of it as Arrow, in the order of the schema."""
        import pyarrow.compute as compute

        columns = _spread(self.heads, self.codes.arrow())
        length = len(self.keys)
        offset = microseconds(self.offset.arrow())
        # Rounded before they are added: a float has no room for microseconds and an epoch of today.
        at = microseconds(self.at.arrow())
        time = compute.coalesce(compute.add(at, offset), at)
        since = compute.subtract(time, microseconds(self.since.arrow()))
        columns |= {
            "version": Numbers("h", [VERSION] * length).arrow(),
            "time": time,
            "row": self.row.arrow(),
            "offset": offset,
            "clock_error": microseconds(self.error.arrow()),
            "stream": self.stream.arrow(),
            "first": self.first.arrow(),
            "count": self.count.arrow(),
            "bytes": self.bytes.arrow(),
            "hops": self.hops.arrow(),
            "duration": compute.coalesce(since, microseconds(self.duration.arrow())),
            "key": strings(self.keys),
            "value": self.value.arrow(),
        }
        schema = arrow_schema()
        return pyarrow().RecordBatch.from_arrays(
            [columns[name] for name in schema.names], schema=schema
        )


def _spread(heads: dict[Head, int], codes: Any) -> dict[str, Any]:
    """The columns that heads hold, a value for each row."""
    lists: list[tuple[Any, ...]] = [*zip(*heads, strict=True)] or [()] * 11
    places, protocols, scopes, weights, kinds, flows, messages, peers, topics, origins, details = (
        lists
    )
    begun_here = zip(origins, flows, places, strict=True)
    few = {
        "node": strings([place.node for place in places]),
        "life": Numbers("q", [place.life for place in places]).arrow(),
        "zone": strings([place.zone for place in places]),
        "protocol": strings(protocols),
        "scope": strings(scopes),
        "kind": strings(kinds),
        "message": strings(messages),
        "peer": strings(peers),
        "topic": strings(topics),
        # A flow without an origin began here.
        "origin": strings([one or (place.node if flow else "") for one, flow, place in begun_here]),
        "detail": strings(details),
        "weight": Numbers("i", weights).arrow(),
    }
    return {name: column.take(codes) for name, column in few.items()}
