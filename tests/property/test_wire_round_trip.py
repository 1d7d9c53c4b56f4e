"""What a lane takes arrives, in order and within the limits; what it refuses leaves nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import LocalProtocolError
from overlay.limits import Limits
from overlay.protocol import Message
from overlay.wire.bulk import BulkLane
from overlay.wire.frames import FRAMEWORK_MESSAGES
from overlay.wire.sizes import Sizes
from overlay.wire.writer import BatchWriter, Part
from tests.unit.wire.messages import KINDS, Labelled, Note, Pile, Tree, Word, put_together

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
    st.builds(Pile, st.integers(0, 2**63), payloads),
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
    taken: list[tuple[str, Message]] = []
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
    frames = [parts for parts, _ in writer.frames]
    for _ in frames:
        writer.sent()
    check_sizes(frames, limits)
    assert put_together(frames_of(frames), limits) == taken
    assert writer.room == CAPACITY
    assert not writer


def check_sizes(frames: list[list[Part]], limits: Limits) -> None:
    for parts in frames:
        assert all(len(part) <= limits.frame_bytes for part in parts)
        assert sum(map(len, parts[1:])) <= limits.frame_bytes


def frames_of(frames: list[list[Part]]) -> list[list[bytes]]:
    return [[bytes(part) for part in parts] for parts in frames]


steps = st.one_of(
    st.tuples(scopes, messages, st.booleans()),  # queue it; encoded for several peers or not
    st.integers(1, 5),  # so many frames leave
)


@given(limits_of_nodes, st.lists(steps, max_size=60), st.integers(0, 60))
def test_what_the_bulk_lane_takes_arrives_however_pieces_interleave(
    limits: Limits, script: list[tuple[str, Message, bool] | int], breaks_at: int
) -> None:
    sizes = Sizes((*FRAMEWORK_MESSAGES, *KINDS), limits)
    lane = BulkLane(sizes, limits, CAPACITY, lambda: 0.0)
    lives: list[list[list[Part]]] = [[]]  # frames of each connection
    taken: list[tuple[str, Message]] = []

    def leave(most: int) -> None:
        for _ in range(most):
            frame = lane.frame()
            if frame is None:
                return
            lives[-1].append(frame[0])
            lane.sent()

    for at, step in enumerate(script):
        if at == breaks_at:
            lane.begin_again()
            lives.append([])
        if isinstance(step, int):
            lane.pack()
            leave(step)
            continue
        scope, msg, for_several = step
        room, dropped = lane.room, lane.dropped
        try:
            if for_several:
                lane.put_encoded(scope, sizes.encoded(msg))
            else:
                lane.put(scope, msg)
        except LocalProtocolError:
            assert lane.room == room
            continue
        if lane.dropped == dropped:
            taken.append((scope, msg))
        assert 0 <= lane.room <= CAPACITY
    lane.pack()
    leave(1 << 30)
    assert not lane
    assert lane.room == CAPACITY
    arrived: list[tuple[str, Any]] = []
    for number, frames in enumerate(lives, 1):
        check_sizes(frames, limits)
        arrived += put_together(frames_of(frames), limits, complete=number == len(lives))
    ordinary = [one for one in taken if not in_pieces(one[1], limits)]
    assert [one for one in arrived if not in_pieces(one[1], limits)] == ordinary
    assert sorted(map(repr, arrived)) == sorted(map(repr, taken))  # each large one once, too


def in_pieces(msg: Message, limits: Limits) -> bool:
    return len(getattr(msg, "payload", b"")) > limits.frame_bytes


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
