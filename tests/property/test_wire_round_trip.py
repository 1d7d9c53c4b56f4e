"""What the writer takes arrives, in order and within the limits; what it refuses leaves nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import LocalProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.frames import FRAMEWORK_MESSAGES, Piece, PieceStart
from overlay.wire.pieces import Reassembly
from overlay.wire.sizes import Sizes
from overlay.wire.writer import BatchWriter
from tests.unit.wire.messages import KINDS, Labelled, Note, Tree, Word, make_reader, messages_of

CAPACITY = 1 << 20

limits_of_nodes = st.builds(
    lambda frame, batch, strings, inline, message: Limits(
        frame_bytes=frame,
        batch_messages=batch,
        string_bytes=strings,
        payload_inline=min(inline, frame),
        message_bytes=max(message, frame),
    ),
    st.sampled_from([4096, 5000, 16_384, 1 << 20]),
    st.sampled_from([1, 2, 7, 4096]),
    st.sampled_from([64, 1000, 4096]),
    st.sampled_from([0, 1, 100, 4095, 4096, 5000]),
    st.sampled_from([4096, 20_000, 60_000]),
)

lengths = st.one_of(
    st.integers(0, 200),
    st.sampled_from([950, 1000, 3000, 4000, 4050, 4090, 4095, 4096, 4097, 5000, 8192, 20_000]),
)
payloads = lengths.map(bytes)
texts = st.builds(lambda letter, n: letter * (n // 4), st.sampled_from("xü語𝄞"), lengths)
messages = st.one_of(
    st.builds(Note, st.integers(0, 2**63), payloads),
    st.builds(Labelled, texts, payloads),
    st.builds(Word, texts),
    st.builds(Tree, st.lists(texts, max_size=9).map(tuple)),
)
scopes = st.sampled_from(["", "zone", "語" * 256, "x" * 200])


def queue(writer: BatchWriter, sizes: Sizes, scope: str, msg: Message, inline: int) -> None:
    """As `NetEffects.send` does: mostly without a call of the writer."""
    base = sizes.with_payload.get(type(msg))
    if base is not None:
        size = base + len(msg.payload)  # type: ignore[attr-defined]
        left = writer.left - size
        if left >= 0 and writer.scope == scope and size < inline:
            writer.left = left
            writer.push(msg)
            return
    writer.put(scope, msg)


@given(limits_of_nodes, st.lists(st.tuples(scopes, messages), max_size=30))
def test_what_the_writer_takes_arrives(limits: Limits, wanted: list[tuple[str, Message]]) -> None:
    sizes = Sizes((*FRAMEWORK_MESSAGES, *KINDS), limits)
    writer = BatchWriter(sizes, limits, CAPACITY, lambda: 0.0)
    reader = make_reader(limits)
    reassembly = Reassembly(reader, limits)
    taken: list[tuple[str, Message]] = []
    arrived: list[tuple[str, Any]] = []

    def deliver() -> None:
        while writer.frames:
            parts = [bytes(part) for part in writer.frames[0][0]]
            assert all(len(part) <= limits.frame_bytes for part in parts)
            assert sum(map(len, parts[1:])) <= limits.frame_bytes
            frame = reader.read(parts)
            assert frame.refused == []
            for scope, msg in messages_of(frame):
                if isinstance(msg, PieceStart):
                    reassembly.begin(msg)
                elif isinstance(msg, Piece):
                    whole = reassembly.add(msg)
                    arrived.extend([whole] if whole is not None else [])
                else:
                    arrived.append((scope, msg))
            writer.sent()

    for scope, msg in wanted:
        room, dropped = writer.room, writer.dropped
        try:
            queue(writer, sizes, scope, msg, limits.payload_inline)
        except LocalProtocolError:
            assert writer.room == room
            continue
        if writer.dropped == dropped:
            taken.append((scope, msg))
        assert 0 <= writer.room <= CAPACITY
    writer.pack()
    deliver()
    assert arrived == taken
    assert writer.room == CAPACITY
    assert not writer


@given(st.integers(0, 40_000), st.lists(st.tuples(scopes, messages), max_size=40))
def test_a_queue_never_holds_more_than_its_capacity(
    capacity: int, wanted: list[tuple[str, Message]]
) -> None:
    limits = Limits(frame_bytes=4096, string_bytes=4096, payload_inline=1000)
    sizes = Sizes((*FRAMEWORK_MESSAGES, *KINDS), limits)
    writer = BatchWriter(sizes, limits, capacity, lambda: 0.0)
    for scope, msg in wanted:
        try:
            queue(writer, sizes, scope, msg, limits.payload_inline)
        except LocalProtocolError:
            continue
        assert writer.room >= 0
        assert writer.left <= writer.room
    writer.pack()
    assert sum(size for _, size in writer.frames) <= capacity
    writer.discard()
    assert writer.room == capacity
