"""What is wrong from outside is refused with its reason, and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overlay.errors import LocalProtocolError
from overlay.ids import vid_of, vid_to_wire
from overlay.protocol import Message
from protocols.topics.messages import (
    LARGEST,
    MOST_GAPS,
    RELAY,
    Accept,
    Ack,
    Begin,
    Data,
    Nack,
    Offer,
    TreeData,
)
from protocols.topics.modes import Mode
from protocols.topics.tree import MOST_HOPS
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    offer,
    pack,
    read,
    sends,
)

# -- at a sender -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upto", "gaps", "reason"),
    [
        (4, (), "ack-unsent"),
        (LARGEST, (), "ack-unsent"),
        (1, ((2, 4),), "ack-unsent"),
        (1, ((2, LARGEST),), "ack-unsent"),
        (2, ((2, 3),), "range-nonsense"),  # it has what it lacks
        (0, ((3, 2),), "range-nonsense"),  # descends
        (0, ((1, 2), (2, 3)), "range-nonsense"),  # overlap
        (0, ((3, 3), (1, 1)), "range-nonsense"),
        (0, ((0, 1),), "range-nonsense"),
    ],
)
def test_acks_of_nonsense(upto: int, gaps: tuple[tuple[int, int], ...], reason: str) -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1", b"2", b"3")
    assert node.refusal("b", Ack(*out.key, LIFE, upto, gaps)) == reason
    assert out.floor == 0
    assert out.history.messages == 3


def test_an_accept_of_what_was_never_sent() -> None:
    node = TopicsNode()
    node.says("b", TOPIC)
    out = node.publisher()
    node.put(out, b"1")
    assert node.refusal("b", Accept(*out.key, LIFE, 2)) == "accept-unsent"
    assert node.refusal("b", Accept(*out.key, LIFE, LARGEST)) == "accept-unsent"
    assert not next(iter(out.relations.values())).operational


@pytest.mark.parametrize("reliability", ["ack", "nack"])
def test_a_nack_for_everything_gets_what_there_is_once(reliability: Any) -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability=reliability)
    node.put(out, b"1", b"2")
    node.now = 1.0
    everything = Nack(*out.key, ((1, LARGEST),))
    done = node.receive("b", everything)
    assert [(one.to, one.msg.first) for one in sends(done, Data)] == [("b", 1), ("b", 2)]  # type: ignore[attr-defined]
    assert node.receive("b", everything) == []
    assert node.counts.suppressed == 2


@pytest.mark.parametrize("gaps", [((2, 1),), ((0, 5),), ((1, 3), (3, 4)), ((4, 5), (1, 2))])
def test_nacks_of_nonsense(gaps: tuple[tuple[int, int], ...]) -> None:
    node = TopicsNode("pub")
    out, _ = node.serve("b", reliability="nack")
    node.put(out, b"1", b"2")
    assert node.refusal("b", Nack(*out.key, gaps)) == "range-nonsense"
    node.subscribe()
    node.receive("pub", data(1, b"1", mode=Mode.NACK))
    node.receive("pub", Begin("pub", STREAM, 1))
    assert node.refusal("b", Nack("pub", STREAM, gaps)) == "range-nonsense"


def test_a_nack_of_a_chunk_in_many_pieces_costs_one_chunk() -> None:
    """Of a publisher, and of a receiver who helps out."""
    node = TopicsNode("pub")
    out, _ = node.serve("b", reliability="nack")
    out.put_many([b"x"] * 200, list(range(9, 9 * 201, 9)), 0, node.now)
    node.end_tick()
    pieces = tuple((2 * place + 1, 2 * place + 1) for place in range(MOST_GAPS))
    node.now = 1.0
    assert len(sends(node.receive("b", Nack(*out.key, pieces)), Data)) == 1
    node.subscribe()
    node.receive("pub", data(1, *[b"x"] * 200, mode=Mode.NACK), Begin("pub", STREAM, 1))
    assert len(sends(node.receive("b", Nack("pub", STREAM, pieces)), Data)) == 1


def test_a_subscriber_without_the_right_gets_nothing() -> None:
    node = TopicsNode("pub", may=lambda name, what, topic: (name, what) != ("eve", "subscribe"))
    out, _ = node.serve("b", reliability="nack")
    node.put(out, b"secret")
    node.says("eve", TOPIC)
    assert node.refusal("eve", Accept(*out.key, LIFE, 0)) == "may-not-subscribe"
    assert node.refusal("eve", Nack(*out.key, ((1, 1),))) == "may-not-subscribe"
    node.subscribe()
    node.receive("pub", data(1, b"secret", mode=Mode.NACK), Begin("pub", STREAM, 1))
    assert node.refusal("eve", Nack("pub", STREAM, ((1, 1),))) == "may-not-subscribe"
    with pytest.raises(LocalProtocolError, match="does not allow it to publish"):
        TopicsNode(may=lambda name, what, topic: what != "publish").publisher()
    with pytest.raises(LocalProtocolError, match="does not allow it to subscribe"):
        TopicsNode(may=lambda name, what, topic: what != "subscribe").subscribe()


# -- at a receiver ---------------------------------------------------------------------------------


def deep(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


@pytest.mark.parametrize(
    "payload",
    [
        pack(b"1"),  # one too few
        pack(b"1", b"2", b"3"),
        msgspec.msgpack.encode("ab"),
        msgspec.msgpack.encode({"a": 1, "b": 2}),
        b"",
        b"\xc1",
        b"\x92\xc4\xff",
        deep(100_000),
        b"\xdd\xff\xff\xff\xff",  # an array of 2^32 - 1
    ],
)
@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK, Mode.ORDERED, Mode.UNORDERED])
def test_malformed_chunks(mode: Mode, payload: bytes) -> None:
    node = TopicsNode("pub")
    one = node.subscribe()
    if mode is Mode.ACK:
        node.receive("pub", offer())
        node.receive("pub", Begin("pub", STREAM, 1))
    else:
        node.receive("pub", data(1, b"0", mode=mode), Begin("pub", STREAM, 1))
    (stream,) = node.topics.streams
    expected = stream.order.expected
    for first in (expected, expected + 5):  # next, and too early
        bad = Data("pub", STREAM, TOPIC, mode, first, 2, 1, 0.0, 0, payload)
        assert node.refusal("pub", bad) == "malformed-chunk"
    read(one)
    node.receive("pub", data(expected, b"1", b"2", mode=mode))
    assert read(one) == [b"1", b"2"], "a good one takes the place"


@pytest.mark.parametrize("payload", [pack(b"1"), deep(100_000)])
def test_malformed_chunks_before_a_nack_stream_began(payload: bytes) -> None:
    """It would wait in the way of the good one."""
    node = TopicsNode("pub")
    one = node.subscribe()
    node.receive("pub", data(1, mode=Mode.NACK))
    bad = Data("pub", STREAM, TOPIC, Mode.NACK, 1, 2, 1, 0.0, 0, payload)
    assert node.refusal("pub", bad) == "malformed-chunk"
    node.receive("pub", Begin("pub", STREAM, 1))
    node.receive("pub", data(1, b"1", b"2", mode=Mode.NACK))
    assert read(one) == [b"1", b"2"]


@pytest.mark.parametrize(("first", "count"), [(0, 0), (0, 1), (LARGEST, 1), (LARGEST - 5, 6)])
def test_numbers_of_nonsense(first: int, count: int) -> None:
    node = TopicsNode("pub")
    node.take_in()
    bad = Data("pub", STREAM, TOPIC, Mode.ACK, first, count, 1, 0.0, 0, b"\x90")
    assert node.refusal("pub", bad) == "data-nonsense"


BAD_TOPICS = ["a//b", "/a", "a/*", "**", "a\x00b", "a/" * 40 + "b", "é" * 200]


@pytest.mark.parametrize("topic", BAD_TOPICS)
def test_bad_topics(topic: str) -> None:
    node = TopicsNode("pub")
    node.subscribe("**")
    assert node.refusal("pub", offer(topic=topic)) == "bad-topic"
    bad = Data("pub", STREAM, topic, Mode.NACK, 1, 1, 1, 0.0, 0, pack(1))
    assert node.refusal("pub", bad) == "bad-topic"
    with pytest.raises(LocalProtocolError):
        node.publisher(topic)
    assert node.topics.streams == []
    assert node.topics.publishers == []


@pytest.mark.parametrize("pattern", ["", "a//b", "a*", "x" * 257, "a\nb"])
def test_bad_patterns(pattern: str) -> None:
    node = TopicsNode()
    with pytest.raises(LocalProtocolError):
        node.subscribe(pattern)
    assert node.end_tick() == []


def test_a_publisher_without_the_right_is_refused() -> None:
    def may(name: str, what: str, _topic: str) -> bool:
        return (name, what) != ("pub", "publish")

    node = TopicsNode("pub", "gateway", may=may)
    node.subscribe()
    assert node.refusal("pub", offer()) == "may-not-publish"
    assert node.refusal("pub", data(1, b"1", mode=Mode.NACK)) == "may-not-publish"
    assert node.refusal("gateway", data(1, b"1", mode=Mode.ORDERED)) == "may-not-publish"


def test_who_is_no_member_and_no_gateway_of_another_zone_sends_nothing() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("stranger", offer(), offer(relay=True), data(1, b"false"))
    node.receive("stranger", data(1, b"false", mode=Mode.NACK, origin="stranger"))
    assert node.counts.stray == 4
    assert [stream.source for stream in node.topics.streams] == ["pub"]
    assert not one.queue


def test_too_many_streams() -> None:
    node = TopicsNode("pub", max_streams=1)
    node.take_in()
    second = Offer("pub", STREAM + 1, TOPIC, Mode.ACK, 1, 0, 1000, 0)
    assert node.refusal("pub", second) == "too-many-streams"
    third = Data("pub", STREAM + 1, TOPIC, Mode.NACK, 1, 1, 1, 0.0, 0, pack(1))
    assert node.refusal("pub", third) == "too-many-streams"


def test_words_about_streams_that_are_not_known_are_counted() -> None:
    node = TopicsNode("b")
    node.receive("b", data(1, b"1"))
    node.receive("b", data(1, b"1", mode=Mode.NACK))
    node.receive("b", data(1, b"1", origin="me", mode=Mode.NACK))
    node.receive("b", data(1, b"1", flags=RELAY, mode=Mode.NACK))
    node.receive("b", Begin("b", 1, 1))
    node.receive("b", Nack("b", 1, ((1, 2),)))
    assert node.counts.stray == 6
    assert node.topics.streams == []


# -- in a tree -------------------------------------------------------------------------------------


def tree_data(start: int, upto: int, hops: int = 1) -> TreeData:
    return TreeData(
        "pub", STREAM, TOPIC, Mode.NACK, 1, 1, 1, 0.0, 0,
        vid_to_wire(start), vid_to_wire(upto), hops, "pub", pack(1),
    )  # fmt: skip


def test_bad_ranges_of_a_tree() -> None:
    node = TopicsNode("pub")
    node.subscribe()
    me, pub = vid_of("me"), vid_of("pub")
    assert node.refusal("pub", tree_data(pub + 1, me)) == "range-elsewhere"
    assert node.refusal("pub", tree_data(me, pub + 1)) == "range-too-wide"
    assert node.refusal("pub", tree_data(me, pub, MOST_HOPS)) == "hop-limit"
    node.receive("stranger", tree_data(me, pub))
    assert node.counts.stray == 1
    assert node.topics.streams == []
    node.receive("pub", tree_data(me, pub))
    assert len(node.topics.streams) == 1


# -- on the wire -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "msg",
    [
        Nack("b", 1, ((1, 1 << 62),)),
        Nack("b", 1, ((-1, 5),)),
        Nack("b", 1, tuple((n, n) for n in range(1, 200, 2))),
        Ack("b", 1, 1, -1),
        Accept("b", 1, 1, 0, 4),
        Accept("b", 1, 1, 0, 1, float("nan")),
        Accept("b", 1, 1, 0, 1, -1.0),
        Data("b", 1, "", Mode.ACK, 1, 0, 1, 0.0, 0, b""),
        Data("b", 1, "x" * 257, Mode.ACK, 1, 0, 1, 0.0, 0, b""),
        Data("b", 1, "t", Mode.ACK, 1, 1 << 17, 1, 0.0, 0, b""),
        Data("b", 1, "t", Mode.ACK, 1, 1, 1, 0.0, 32, b""),
        Data("b", 1, "t", 4, 1, 1, 1, 0.0, 0, b""),  # type: ignore[arg-type]
    ],
)
def test_what_no_reader_lets_in(msg: Message) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(msg), type=type(msg))
