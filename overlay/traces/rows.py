"""Rows on their way: taken in the tick, in memory and bounded, until the writer fetches them.

Nothing here needs pyarrow. One row extends a list; columns are made on the writer's side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import NODE_SCOPE
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import CAST, HEARD, LEVEL_SET, RECEIVED, ROWS_DROPPED, SENT

RECORDER = "traces"  # the protocol of the recorder's own rows
CLOCK_EVERY = 0.01  # s between two looks at overlay time: a slew moves it by 5 µs meanwhile
WAKE_AT = 4  # parts of the buffer: one of them full wakes the writer before its time
SAMPLED_SINGLY = (SENT, RECEIVED, CAST, HEARD)  # kinds without a flow of which there are many


class Place(NamedTuple):
    """Where rows come from: one life of a node."""

    node: NodeId
    life: int
    zone: str


Rows: TypeAlias = list[Any]
"""Rows in one flat list, `WIDTH` values each: number, time of the node's clock, offset and error of
overlay time (or None), place, protocol, scope, weight, record.

Flat, because a tuple for each row would be an object that the garbage collector counts and walks
through: with thousands of them waiting it goes through all objects of the process now and then.
"""

WIDTH = 8


class RowBuffer:
    """A bounded queue between nodes and one writer; what finds it full is counted."""

    def __init__(self, capacity: int, wake: Callable[[], None]) -> None:
        self.wake = wake  # called when a quarter of the buffer waits
        self.wake_at = capacity // WAKE_AT * WIDTH  # values
        self.full_at = capacity * WIDTH
        self.values: Rows = []  # always the same list: extended by nodes, cut by the writer
        self.capacity = capacity
        self.taken = 0  # rows so far, dropped ones too
        self.dropped = 0

    def __len__(self) -> int:
        return len(self.values) // WIDTH

    def fetch(self, most: int) -> Rows:
        """Take out the oldest rows; nodes may add others meanwhile, in another thread."""
        end = min(most * WIDTH, len(self.values))
        rows = self.values[:end]
        del self.values[:end]
        return rows

    def clear(self) -> None:
        """Let go of what waits."""
        self.values.clear()


class NodeTraces:
    """Takes the rows of one life of a node into a buffer, as `overlay.tracing.TraceSink`."""

    def __init__(
        self,
        buffer: RowBuffer,
        host: Host,
        place: Place,
        clock: Callable[[], float],
        *,
        level: Level,
        sample: int = 1,
    ) -> None:
        self.level = level
        self.sample = sample
        self._buffer = buffer
        self._host = host
        self._place = place
        self._clock = clock
        self._overlay: tuple[float, float] | None = None
        self._overlay_at = float("-inf")
        self._untold = 0  # rows dropped since the last one that was not
        self._singles = 0

    def begin(self) -> None:
        """Say from when on, and how much, is recorded."""
        name, one_of = self.level.name.lower(), float(self.sample)
        self.take(RECORDER, NODE_SCOPE, Trace(LEVEL_SET, detail=name, value=one_of))

    def take(self, protocol: str, scope: str, record: Trace) -> None:
        """Keep a row, unless its level is not recorded; never waits, and never fails."""
        if record.kind.level > self.level:
            return
        weight = 1 if self.sample == 1 else self._weight(record)
        if not weight:
            return
        buffer = self._buffer
        values = buffer.values
        if len(values) >= buffer.wake_at and not self._finds_room(buffer):
            return
        if self._untold:
            count, self._untold = self._untold, 0
            self.take(RECORDER, NODE_SCOPE, Trace(ROWS_DROPPED, count=count))
        at = self._clock()
        if not 0.0 <= at - self._overlay_at < CLOCK_EVERY:
            self._read_clock(at)
        buffer.taken += 1
        values.extend(
            (buffer.taken, at, self._overlay, self._place, protocol, scope, weight, record)
        )

    def _finds_room(self, buffer: RowBuffer) -> bool:
        waiting = len(buffer.values)
        if waiting == buffer.wake_at:
            buffer.wake()
        if waiting < buffer.full_at:
            return True
        buffer.taken += 1
        buffer.dropped += 1
        self._untold += 1
        return False

    def _read_clock(self, at: float) -> None:
        self._overlay_at = at
        clock = self._host.overlay_clock
        self._overlay = None if clock is None else clock(at)

    def _weight(self, record: Trace) -> int:
        """How many rows it stands for; 0: it is left out.

        Of a flow all or nothing is kept, and the same on every node.
        """
        if record.kind.flow:
            flow = f"{record.origin or self._place.node}/{record.stream}"
            return 0 if crc32(flow.encode()) % self.sample else self.sample
        if record.kind not in SAMPLED_SINGLY:
            return 1
        self._singles += 1
        return 0 if self._singles % self.sample else self.sample
