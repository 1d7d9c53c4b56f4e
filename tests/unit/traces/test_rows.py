"""Rows are taken by level and sampled by flow; a full buffer drops and tells."""

from __future__ import annotations

import gc

from overlay.traces.columns import record_batch
from overlay.traces.rows import RowBuffer
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import LINK_UP, PUBLISHED, ROWS_DROPPED, SENT
from tests.unit.traces.rows import (
    START,
    Clock,
    delivery,
    fetched,
    host,
    never_woken,
    node_traces,
    rows_of,
)


def kinds(buffer: RowBuffer) -> list[str]:
    return [row.record.kind.name for row in fetched(buffer)]


def test_only_rows_of_the_level_are_taken() -> None:
    buffer = RowBuffer(100, never_woken)
    traces = node_traces(buffer, level=Level.DELIVERY)
    traces.take("topics", "", delivery(1))
    traces.take("topics", "", Trace(SENT, "bob"))
    assert kinds(buffer) == ["delivered"]
    traces.level = Level.MESSAGES
    traces.take("topics", "", Trace(SENT, "bob"))
    assert kinds(buffer) == ["sent"]


def test_a_full_buffer_drops_counts_and_says_so_in_the_next_row() -> None:
    buffer = RowBuffer(4, never_woken)
    traces = node_traces(buffer)
    for number in range(1, 8):
        traces.take("topics", "", delivery(number))
    assert (len(buffer), buffer.dropped, buffer.taken) == (4, 3, 7)
    fetched(buffer)
    traces.take("topics", "", delivery(8))
    told, row = fetched(buffer)
    assert (told.record, told.protocol) == (Trace(ROWS_DROPPED, count=3), "traces")
    assert (told.number, row.number) == (8, 9)  # the numbers of the missing ones are not used


def test_the_writer_is_woken_before_the_buffer_is_full() -> None:
    woken: list[int] = []
    buffer = RowBuffer(8, lambda: woken.append(len(buffer)))
    traces = node_traces(buffer)
    for number in range(1, 6):
        traces.take("topics", "", delivery(number))
    assert woken == [2]


def test_of_a_flow_all_is_kept_or_nothing_and_the_same_on_all_nodes() -> None:
    kept: list[list[int]] = []
    for name, kind in (("ada", PUBLISHED), ("bob", PUBLISHED)):
        buffer = RowBuffer(10_000, never_woken)
        traces = node_traces(buffer, name=name, sample=4)
        for stream in range(400):
            for first in (1, 2):
                origin = "" if name == "ada" else "ada"  # a flow without origin began here
                traces.take("topics", "", Trace(kind, origin=origin, stream=stream, first=first))
        rows = fetched(buffer)
        assert {row.weight for row in rows} == {4}
        kept.append([row.record.stream or 0 for row in rows])
    assert kept[0] == kept[1]
    assert 50 < len(set(kept[0])) < 150
    assert len(kept[0]) == 2 * len(set(kept[0]))


def test_messages_are_sampled_singly_and_facts_never() -> None:
    buffer = RowBuffer(1000, never_woken)
    traces = node_traces(buffer, sample=10)
    for _ in range(100):
        traces.take("topics", "", Trace(SENT, "bob"))
        traces.take("driver", "", Trace(LINK_UP, "bob"))
    rows = fetched(buffer)
    assert sum(row.weight for row in rows if row.record.kind is SENT) == 100
    assert [row.weight for row in rows if row.record.kind is LINK_UP] == [1] * 100


def test_columns_are_overlay_time_and_microseconds() -> None:
    clock = Clock()
    node = host()
    node.overlay_clock = lambda _local: (0.5, 0.000_2)
    buffer = RowBuffer(10, never_woken)
    traces = node_traces(buffer, clock=clock, of=node)
    traces.take("topics", "lab", delivery(5, 10, hops=2, bytes=100))
    (row,) = record_batch(buffer.fetch(10)).to_pylist()
    assert row["time"] == 1_794_992_700_500_000
    assert (row["offset"], row["clock_error"]) == (500_000, 200)
    assert row["duration"] == 750_000  # from overlay time to overlay time
    assert (row["first"], row["count"], row["hops"], row["bytes"]) == (5, 10, 2, 100)
    assert (row["node"], row["zone"], row["scope"], row["origin"]) == ("ada", "lab", "lab", "bob")


def test_what_does_not_apply_is_null() -> None:
    (row,) = record_batch(rows_of([Trace(LINK_UP, "bob")], START)).to_pylist()
    nulls = {name for name, value in row.items() if value is None}
    assert nulls == {
        *("scope", "message", "topic", "origin", "stream", "first", "bytes", "hops", "duration"),
        *("detail", "key", "value", "offset", "clock_error"),
    }


def test_rows_of_many_heads_keep_their_words_and_their_order() -> None:
    rows = [
        Trace(SENT, f"peer-{number % 7}", count=number, bytes=number) for number in range(1, 5000)
    ]
    found = record_batch(rows_of(rows), lambda _pause: None)
    assert found.column("peer").to_pylist() == [row.peer for row in rows]
    assert found.column("count").to_pylist() == [row.count for row in rows]


def test_rows_that_wait_are_nothing_for_the_garbage_collector() -> None:
    buffer = RowBuffer(10_000, never_woken)
    traces = node_traces(buffer)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(1000):
        traces.take("topics", "", delivery(number))
    assert len(buffer) == 1000
    assert len(gc.get_objects()) - before < 50
