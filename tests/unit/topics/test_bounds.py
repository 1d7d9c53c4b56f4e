"""Nothing is remembered for ever, and nothing is taken for another."""

from __future__ import annotations

from protocols.gateways.events import GatewayAppointed
from protocols.gateways.interface import RemoteGateway
from protocols.topics.messages import (
    LAST,
    RELAY,
    REPLAY_ALL,
    Accept,
    Begin,
    Data,
    Knock,
    Nack,
)
from protocols.topics.modes import Mode
from tests.unit.topics.node import (
    LIFE,
    SIZE,
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    offer,
    pack,
    repair,
    sends,
)

FAR = RemoteGateway("far", publishes=True, subscribes=True)


def test_repairs_of_one_stream_do_not_hold_up_those_of_another() -> None:
    node = TopicsNode()
    first, _ = node.serve("a", reliability="nack")
    second, _ = node.serve("a", reliability="nack")
    node.put(first, b"1")
    node.put(second, b"1")
    done = node.receive("a", Nack(*first.key, ((1, 1),)), Nack(*second.key, ((1, 1),)))
    assert [one.msg.stream for one in sends(done)] == [first.key[1], second.key[1]]  # type: ignore[attr-defined]


def test_a_gateway_forgets_whom_it_called_long_ago() -> None:
    node = TopicsNode()
    node.book.gateway = "me"
    bridge = node.topics._bridge
    bridge.appointed(TOPIC)
    for number in range(50):
        node.book.publishers = (f"p{number}",)
        node.book.remote = {"fg": FAR}
        assert sends(node.pass_time(1.0), Knock)
    assert len(bridge._knocked) <= 2


def test_many_small_messages_after_a_full_chunk_are_queued_once() -> None:
    node = TopicsNode(chunk_bytes=512 * 1024)
    publisher, _ = node.serve("a")
    small = 40_000
    for _ in range(small):
        publisher.push(b"")
    publisher.left -= 8 * small
    items = [b"x"] * 10
    done = publisher.put_many(items, [9 * (at + 1) for at in range(10)], 0, node.now)
    assert done == 10
    node.end_tick()
    assert publisher.history.newest == small + 10


def test_a_link_that_is_gone_is_not_remembered() -> None:
    node = TopicsNode()
    publisher, _ = node.serve("a", "b", reliability="nack")
    assert publisher.mode is Mode.NACK
    node.effects.backlogs = {"a": 1 << 30}
    node.put(publisher, b"1")
    assert list(publisher._queues) == ["a"]
    node.leaves("a")
    node.pass_time(0.01)
    assert not publisher._queues


def test_what_a_gateway_gets_for_another_one_reaches_it_as_a_gateway() -> None:
    """It has nothing any more of what the far one lacks, and asks the publisher for it."""
    node = TopicsNode("pub")
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR}
    node.hear(GatewayAppointed(TOPIC))
    key = ("pub", STREAM)
    node.receive("pub", offer(relay=True, mode=Mode.NACK))
    node.receive("pub", Begin(*key, 1, relay=True))
    node.receive("fg", Accept(*key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.receive("pub", data(1, b"1", mode=Mode.NACK, flags=RELAY))
    node.now = 100.0  # history_age is over
    node.receive("pub", data(2, b"2", mode=Mode.NACK, flags=RELAY, sent_at=100.0))
    lack = Nack(*key, ((1, 1),), relay=True)
    assert ("pub", lack) in sends(node.receive("fg", lack))
    done = node.receive("pub", data(1, b"1", mode=Mode.NACK, flags=RELAY))
    assert sends(done) == [("fg", repair(1, b"1", mode=Mode.NACK, oldest=0, flags=RELAY))]


def test_without_acks_a_full_link_to_a_gateway_is_waited_for_too() -> None:
    node = TopicsNode("g")
    node.book.gateway = "g"
    publisher = node.publisher(reliability="nack")
    node.end_tick()
    node.receive("g", Accept(*publisher.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.effects.backlogs = {"g": 1 << 30}
    node.put(publisher, b"1")
    assert not publisher.put(b"2", SIZE, node.now)
    node.effects.backlogs = {}
    node.pass_time(0.01)
    assert publisher.put(b"2", SIZE, node.now)


def test_where_streams_ended_is_remembered_of_so_many_only() -> None:
    """A publisher that opens and closes streams all the time must not fill its subscribers."""
    node = TopicsNode("pub", max_streams=3)
    node.subscribe()
    for stream in range(10):
        one = Data("pub", stream, TOPIC, Mode.ORDERED, 1, 1, 1, 0.0, 0, pack(b"1"))
        end = Data("pub", stream, TOPIC, Mode.ORDERED, 2, 0, 1, 0.0, LAST, b"")
        node.receive("pub", one, end)
    assert node.topics.streams == []
    assert [key[1] for key in node.topics._arrivals._past] == [7, 8, 9]
