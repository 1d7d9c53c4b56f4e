"""What topics leave in the traces: a row for each chunk, and nothing while nobody records."""

from __future__ import annotations

from overlay.tracing import Level, Trace
from overlay.tracing.kinds import DELIVERED, GAP, PUBLISHED, STREAM_ENDED
from protocols.topics import tracing
from protocols.topics.core import Core
from protocols.topics.events import Gap, PublisherGone
from protocols.topics.history import Chunk
from protocols.topics.modes import Mode
from tests.recording import RecordingEffects, Traced

CHUNK = Chunk(5, 3, 100.0, b"abc")


class Here(Core):
    """Only what rows need."""

    def __init__(self, effects: RecordingEffects) -> None:
        self.me = "ada"
        self.effects = effects


def test_a_chunk_is_one_row_with_its_range() -> None:
    effects = RecordingEffects()
    tracing.published(Here(effects), ("ada", 7), "news", Mode.ACK, CHUNK)
    (row,) = effects.drain()
    assert row == Traced(
        Trace(PUBLISHED, "", "news", "ada", 7, 5, 3, 3, detail="ack"),
    )


def test_a_delivery_tells_who_brought_it_and_since_when_it_is_under_way() -> None:
    effects = RecordingEffects()
    where = (Here(effects), ("bob", 7), "news", Mode.NACK, CHUNK)
    tracing.delivered(*where, source="bob", via="cyd", hops=2)
    tracing.delivered(*where, source="gateway", via="gateway", hops=1)
    direct, relayed = (one.record for one in effects.drain() if isinstance(one, Traced))
    assert direct == Trace(DELIVERED, "cyd", "news", "bob", 7, 5, 3, 3, 2, None, 100.0, "nack")
    assert relayed.hops is None  # how many there were before the gateway it does not know
    assert relayed.peer == "gateway"


def test_events_say_themselves_what_rows_they_are() -> None:
    gap = Gap("news", "bob", 7, 10, 14, "gone")
    assert tuple(gap.traces()) == (
        Trace(GAP, topic="news", origin="bob", stream=7, first=10, count=5, detail="gone"),
    )
    (ended,) = PublisherGone("news", "bob", 7).traces()
    assert ended == Trace(STREAM_ENDED, topic="news", origin="bob", stream=7, detail="closed")


def test_a_protocol_that_nobody_records_asks_one_attribute() -> None:
    assert RecordingEffects.tracing == Level.OFF
