"""A long message that is alone in its chunk travels as the payload itself."""

from __future__ import annotations

import msgspec
import pytest

from protocols.topics.history import Chunk
from protocols.topics.messages import (
    BARE,
    RELAY,
    REPLAY_ALL,
    Accept,
    Ack,
    Begin,
    Data,
    Nack,
    Recall,
    Recalled,
    Repair,
)
from protocols.topics.modes import Mode
from protocols.topics.packing import BARE_FROM, pack, repack, unpack
from protocols.topics.publishing import ITEM_BYTES
from tests.recording import Send
from tests.unit.topics import node as topics_node
from tests.unit.topics.node import LIFE, STREAM, TOPIC, TopicsNode, read, sends
from tests.unit.topics.test_relays import KEY, outward

LONG = bytes(range(256)) * (BARE_FROM // 256)
ROOM = 2 * len(LONG)  # in a chunk: one of them, not two


def bare(first: int, mode: Mode = Mode.ACK, flags: int = 0, payload: bytes = LONG) -> Data:
    return Data("pub", STREAM, TOPIC, mode, first, 1, 1, 0.0, flags | BARE, payload)


def test_only_long_bytes_that_are_alone_are_bare() -> None:
    assert pack([LONG]) == (LONG, True)
    assert pack([LONG])[0] is LONG, "nobody copies it"
    for items in ([LONG[1:]], [LONG, b""], [msgspec.Raw(LONG)], [bytearray(LONG)], ["x" * 5000]):
        assert pack(items) == (topics_node.pack(*items), False)


def test_what_is_packed_can_be_unpacked() -> None:
    for items in ([LONG], [LONG, b"2"], [b"1"]):
        payload, is_bare = pack(items)
        assert unpack(Chunk(1, len(items), 0.0, payload, bare=is_bare)) == items
    rest = repack(Chunk(1, 2, 5.0, topics_node.pack(b"1", LONG)), 2, [LONG])
    assert rest == Chunk(2, 1, 5.0, LONG, bare=True)


def test_a_publisher_sends_long_messages_as_they_are_and_again_as_they_are() -> None:
    node = TopicsNode(chunk_bytes=ROOM)
    out, _ = node.serve("b")
    done = node.put(out, LONG, LONG, b"3", size=len(LONG) + ITEM_BYTES)
    chunks = [one.msg for one in sends(done, Data)]
    assert [(one.first, one.count, one.flags) for one in chunks] == [  # type: ignore[attr-defined]
        (1, 1, BARE),
        (2, 1, BARE),
        (3, 1, 0),
    ]
    assert out.history.bytes == 2 * len(LONG) + len(topics_node.pack(b"3"))
    again = sends(node.receive("b", Ack(*out.key, LIFE, 1, ((2, 2),))), Repair)
    assert [(one.msg.first, one.msg.flags) for one in again] == [(2, BARE)]  # type: ignore[attr-defined]


def test_put_many_makes_a_chunk_of_each_long_one() -> None:
    node = TopicsNode(chunk_bytes=ROOM)
    out, _ = node.serve("b")
    size = len(LONG) + ITEM_BYTES
    assert out.put_many([LONG] * 3, [size, 2 * size, 3 * size], 0, node.now) == 3
    assert [one.msg.flags for one in sends(node.end_tick(), Data)] == [BARE] * 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK, Mode.ORDERED, Mode.UNORDERED])
def test_a_reader_gets_it_whole(mode: Mode) -> None:
    node = TopicsNode("pub")
    if mode is Mode.ACK:
        one, _ = node.take_in()
    else:
        one = node.subscribe()
    node.receive("pub", bare(1, mode))
    if mode is Mode.NACK:
        node.receive("pub", Begin("pub", STREAM, 1))
    assert read(one) == [LONG]


def test_one_that_came_early_waits_as_it_is() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("pub", bare(2))
    assert read(one) == []
    node.receive("pub", bare(1, payload=LONG[::-1]))
    assert read(one) == [LONG[::-1], LONG]


def test_two_messages_cannot_be_bare() -> None:
    node = TopicsNode("pub")
    node.take_in()
    two = Data("pub", STREAM, TOPIC, Mode.ACK, 1, 2, 1, 0.0, BARE, LONG)
    assert node.refusal("pub", two) == "malformed-chunk"


def test_a_relay_and_whoever_helps_out_hand_it_on_as_it_is() -> None:
    node = outward()
    sent = bare(1, flags=RELAY)
    assert sends(node.receive("pub", sent)) == [Send("fg", sent)]
    node = TopicsNode("pub", "b")
    node.subscribe()
    node.receive("pub", bare(1, Mode.NACK))
    node.receive("pub", Begin("pub", STREAM, 1))
    (help_out,) = sends(node.receive("b", Nack("pub", STREAM, ((1, 1),))), Repair)
    assert (help_out.msg.flags, help_out.msg.payload) == (BARE, LONG)  # type: ignore[attr-defined]


def test_what_came_before_is_recalled_as_it_is() -> None:
    node = TopicsNode(chunk_bytes=ROOM)
    out, _ = node.serve("b", keep=10)
    node.put(out, LONG, size=len(LONG) + ITEM_BYTES)
    node.receive("b", Ack(*out.key, LIFE, 1))
    ((_, part),) = sends(node.receive("b", Recall(*out.key, 5, 0, 1, REPLAY_ALL, 0.0)))
    assert part == Recalled(*out.key, 5, 1, 1, 1, 1, 0.0, LONG, bare=True)


def test_a_relay_keeps_its_place_in_the_flags() -> None:
    """RELAY and BARE are told apart: a bare chunk for this node is not one for others."""
    node = outward()
    node.receive("pub", bare(1, flags=RELAY))
    assert node.topics.streams[0].order.expected == 2
    node.receive("fg", Accept(*KEY, LIFE, 1, REPLAY_ALL, 0.0, True))
    node.receive("pub", bare(2))
    assert node.topics.streams[0].order.expected == 2
    assert node.counts.stray == 1
