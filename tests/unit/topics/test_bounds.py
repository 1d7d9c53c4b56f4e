"""Nothing is remembered for ever, and nothing is taken for another."""

from __future__ import annotations

from protocols.gateways.interface import RemoteGateway
from protocols.topics.messages import Knock, Nack
from protocols.topics.modes import Mode
from tests.unit.topics.node import TOPIC, TopicsNode, sends

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
