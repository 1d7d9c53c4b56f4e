"""A publisher packs messages into chunks, and never keeps more than its bounds."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest

from overlay.errors import LocalProtocolError
from protocols.topics import Publisher, SubscriberFailed, SubscriberSlow
from protocols.topics.events import StreamEnded
from protocols.topics.messages import MOST_MESSAGES, Ack, Data, Failed, Leave
from protocols.topics.publishing import ITEM_BYTES
from tests.recording import Recorded, Send, SetTimer
from tests.unit.topics.node import LIFE, TOPIC, TopicsNode, events, pack, sends


def chunks(done: list[Recorded]) -> list[tuple[int, int]]:
    """First and count of what was sent, once for each receiver."""
    return [(one.msg.first, one.msg.count) for one in sends(done, Data)]  # type: ignore[attr-defined]


def ack(out: Publisher, upto: int, *gaps: tuple[int, int]) -> Ack:
    return Ack(*out.key, LIFE, upto, gaps)


def put_many(node: TopicsNode, out: Publisher, sizes: list[int]) -> int:
    items = [b"x" * (size - ITEM_BYTES) for size in sizes]
    return out.put_many(items, list(accumulate(sizes)), 0, node.now)


def within_bounds(out: Publisher) -> bool:
    history, config = out.history, out.config
    return history.messages <= config.history_messages and history.bytes <= config.history_bytes


# -- the open chunk --------------------------------------------------------------------------------


def test_messages_of_a_tick_leave_together() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    for item in (b"1", b"2", b"3"):  # as `nodes/topics.py` does it
        out.left -= 1 + ITEM_BYTES
        out.push(item)
    assert out.next_number == 4
    out.wake(node.now)
    (sent, *timers) = node.end_tick()
    data = Data(*out.key, TOPIC, out.mode, 1, 3, 1, 0.0, 0, pack(b"1", b"2", b"3"))
    assert sent == Send("b", data)
    assert timers == [SetTimer(("out", out.key), 0.15)]
    assert (node.counts.published, node.counts.chunks) == (3, 1)
    assert out.left == node.topics.config.chunk_bytes, "a new chunk is open"


def test_a_message_that_does_not_fit_closes_the_chunk() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    assert out.put(b"1", 100, 0.0)
    assert out.put(b"2", 100, 0.0)
    assert chunks(node.effects.recorded) == [(1, 1)], "the first did not wait for the tick's end"
    assert chunks(node.end_tick()) == [(1, 1), (2, 1)]


def test_many_messages_are_cut_into_chunks_by_bytes() -> None:
    node = TopicsNode(chunk_bytes=1024)
    out, _ = node.serve("b")
    assert put_many(node, out, [100] * 25) == 25
    assert chunks(node.end_tick()) == [(1, 10), (11, 10), (21, 5)]


def test_many_messages_are_cut_into_chunks_by_number() -> None:
    node = TopicsNode(chunk_bytes=1 << 19)
    out, _ = node.serve()
    assert put_many(node, out, [ITEM_BYTES] * 70_000) == 70_000
    node.end_tick()
    assert node.counts.chunks == 3
    assert out.history.newest == 70_000


def test_no_chunk_has_more_messages_than_a_message_tells() -> None:
    """Even the smallest ones, by the fast path, in the largest chunk that can be set."""
    node = TopicsNode(chunk_bytes=1 << 19)
    out, _ = node.serve(history_messages=10_000_000)
    assert out.left // ITEM_BYTES <= MOST_MESSAGES


def test_a_large_message_is_a_chunk_of_its_own() -> None:
    node = TopicsNode(chunk_bytes=1024)
    out, _ = node.serve("b")
    assert put_many(node, out, [100, 5000, 100]) == 3
    assert chunks(node.end_tick()) == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize("many", [False, True])
def test_a_message_over_a_limit_is_a_clear_error(many: bool) -> None:
    node = TopicsNode(message_bytes=2048)

    def publish(out: Publisher, size: int) -> None:
        if many:
            put_many(node, out, [size + ITEM_BYTES])
        else:
            out.put(b"x" * size, size + ITEM_BYTES, node.now)

    out, _ = node.serve()
    publish(out, 2048)
    with pytest.raises(
        LocalProtocolError,
        match=r"a message of 2049 bytes for 'plant/7': topics\.message_bytes allows 2048",
    ):
        publish(out, 2049)
    out, _ = node.serve(history_bytes=1024)
    publish(out, 1024 - ITEM_BYTES)
    node.end_tick()
    with pytest.raises(LocalProtocolError, match=r"1017 bytes .* history_bytes allows 1016"):
        publish(out, 1024 - ITEM_BYTES + 1)
    assert node.counts.published == 2


def test_a_closed_publisher_says_so() -> None:
    node = TopicsNode()
    out, _ = node.serve()
    out.put(b"x", 9, node.now)
    node.topics.close_publisher(out, node.now)
    assert out.history.newest == 1, "what was published before is"
    with pytest.raises(LocalProtocolError, match="the publisher of 'plant/7' is closed"):
        out.put(b"x", 9, node.now)
    with pytest.raises(LocalProtocolError, match="closed"):
        put_many(node, out, [9])
    assert out.left == 0


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reliability", ["ack", "nack"])
@pytest.mark.parametrize("bounds", [(7, 1 << 20), (10_000, 1024), (1, 1024), (50, 1500)])
def test_bounds_hold_at_every_moment(reliability: Any, bounds: tuple[int, int]) -> None:
    node = TopicsNode(chunk_bytes=1024)
    out, _ = node.serve(
        "b", reliability=reliability, history_messages=bounds[0], history_bytes=bounds[1]
    )
    taken = 0
    for step in range(200):
        size = ITEM_BYTES + step % 90
        if size <= out.left:  # the fast path
            out.left -= size
            out.push(b"x" * (size - ITEM_BYTES))
            out.wake(node.now)
            taken += 1
        else:
            taken += out.put(b"x" * (size - ITEM_BYTES), size, node.now)
        assert within_bounds(out)
        if step % 5 == 0:
            node.end_tick()
            assert within_bounds(out)
    node.end_tick()
    assert within_bounds(out)
    assert out.history.newest == taken
    if reliability == "nack":
        assert taken == 200
    else:
        assert taken < 200
        assert out.history.oldest == 1, "what b lacks was dropped"


def test_nack_mode_keeps_nothing_that_is_too_old() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability="nack", history_age=10.0)
    node.put(out, b"1")
    node.pass_time(6.0)
    node.put(out, b"2")
    node.pass_time(4.0 + node.topics.config.heartbeat)  # each heartbeat looks
    assert (out.history.oldest, out.history.messages) == (2, 1)
    node.pass_time(60.0)
    assert (out.history.oldest, out.history.messages) == (3, 0)


@pytest.mark.parametrize("reliability", ["ordered", "unordered"])
def test_unreliable_modes_keep_what_keep_says(reliability: Any) -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability=reliability, keep=2)
    node.put(out, b"1", b"2", b"3")
    assert (out.history.oldest, out.history.messages) == (2, 2)
    none, _ = node.serve("b", reliability=reliability)
    node.put(none, b"1")
    assert none.history.messages == 0


def test_keep_keeps_acknowledged_messages_until_room_is_needed() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", keep=2, history_messages=3, history_age=60.0)
    node.put(out, b"1", b"2", b"3")
    node.receive("b", ack(out, 3))
    assert (out.history.oldest, out.history.messages) == (2, 2)
    node.put(out, b"4", b"5")
    assert within_bounds(out)
    assert out.history.oldest == 4, "what is only kept makes place for the next one"
    node.receive("b", ack(out, 5))
    assert (out.history.oldest, out.history.messages) == (4, 2)
    node.now = 100.0
    node.receive("b", ack(out, 5))
    node.put(out, b"6")
    node.receive("b", ack(out, 6))
    assert out.history.oldest == 6, "what is older than history_age is not kept"


# -- who waits -------------------------------------------------------------------------------------


def full(node: TopicsNode, slow: Any, *receivers: str) -> Publisher:
    out, _ = node.serve(*receivers, slow=slow, history_messages=3)
    node.put(out, b"1", b"2", b"3")
    return out


def test_wait_waits_until_the_slowest_has_the_oldest() -> None:
    node = TopicsNode()
    out = full(node, "wait", "b", "c")
    woken: list[float] = []
    out.on_room(lambda: woken.append(node.now))
    assert not out.put(b"4", 10, node.now)
    assert not out.has_room
    assert node.end_tick() == [SetTimer(("slow", out.key), 1.0)]
    node.receive("b", ack(out, 3))
    assert woken == []
    node.receive("c", ack(out, 1))
    assert woken == [0.0]
    assert not out.waiting
    assert out.put(b"4", 10, node.now)
    assert chunks(node.end_tick()) == [(4, 1), (4, 1)]


def test_who_waits_for_long_says_for_whom_once() -> None:
    node = TopicsNode()
    out = full(node, "wait", "b", "c")
    node.receive("b", ack(out, 2))
    assert not out.put(b"4", 10, node.now)
    slow = SubscriberSlow(TOPIC, "c", out.key[1], 3)
    assert events(node.pass_time(1.0)) == [slow]
    assert not out.put(b"4", 10, node.now)
    assert events(node.pass_time(3.0)) == []


def test_many_messages_stop_where_there_is_no_room() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", history_messages=5)
    assert put_many(node, out, [10] * 8) == 5
    node.end_tick()
    assert out.waiting
    node.receive("b", ack(out, 5))
    items = [b"xx"] * 8
    assert out.put_many(items, list(accumulate([10] * 8)), 5, node.now) == 8
    node.end_tick()
    assert out.history.newest == 8


def test_drop_oldest_drops_for_the_slow_and_says_so() -> None:
    node = TopicsNode()
    out = full(node, "drop-oldest", "b", "c")
    node.receive("b", ack(out, 3))
    done = node.put(out, b"4")
    assert events(done) == [SubscriberSlow(TOPIC, "c", out.key[1], 3)]
    (to_c,) = [one.msg for one in sends(done, Data) if one.to == "c"]
    assert isinstance(to_c, Data)
    assert (to_c.first, to_c.oldest) == (4, 2), "so c knows that 1 is gone"
    assert events(node.put(out, b"5")) == [], "it was said"
    assert within_bounds(out)
    node.receive("b", ack(out, 5))
    node.receive("c", ack(out, 4))
    assert events(node.put(out, b"6", b"7")) == [], "it has caught up"
    assert events(node.put(out, b"8")) == [SubscriberSlow(TOPIC, "c", out.key[1], 3)]


def test_disconnect_lets_go_of_the_slowest() -> None:
    node = TopicsNode()
    out = full(node, "disconnect", "b", "c")
    node.receive("b", ack(out, 1))
    done = node.put(out, b"4")
    assert events(done) == [SubscriberFailed(TOPIC, "c", out.key[1], "slow")]
    assert sends(done, Failed) == [Send("c", Failed(*out.key, "slow"))]
    assert out.receivers == ("b",)
    assert out.history.oldest == 2
    assert node.counts.failed_subscribers == 1


# -- flush and close -------------------------------------------------------------------------------


def test_flush_asks_those_who_lack_something() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", "c")
    woken: list[str] = []
    out.on_room(lambda: woken.append("x") if out.all_settled else None)
    node.put(out, b"1")
    node.receive("b", ack(out, 1))
    out.ask_all(node.now)
    (asked,) = sends(node.end_tick())
    assert asked == Send("c", Data(*out.key, TOPIC, out.mode, 2, 0, 1, 0.0, 1, b""))
    assert woken == []
    out.waiting = True
    node.receive("c", ack(out, 1))
    assert woken == ["x"]


def test_flush_without_subscribers_is_done_at_once() -> None:
    node = TopicsNode()
    out, _ = node.serve()
    out.put(b"1", 10, node.now)
    out.ask_all(node.now)
    assert out.all_settled
    assert not out.waiting


def test_a_closed_publisher_ends_when_all_have_everything() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1")
    node.topics.close_publisher(out, node.now)
    (last,) = sends(node.end_tick())
    assert last == Send("b", Data(*out.key, TOPIC, out.mode, 2, 0, 1, 0.0, 1 | 2, b""))
    assert events(node.receive("b", ack(out, 1))) == []
    assert events(node.receive("b", Leave(*out.key)))[-1] == StreamEnded(TOPIC, out.key[1], True)
    assert node.topics.publishers == []
    assert node.effects.timers.keys() == {"sweep"}


def test_a_closed_publisher_lingers_no_longer_than_it_was_told() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", linger=2.0)
    node.put(out, b"1")
    node.topics.close_publisher(out, node.now)
    assert StreamEnded(TOPIC, out.key[1], False) not in events(node.pass_time(1.9))
    done = node.pass_time(0.2)
    assert events(done) == [
        SubscriberFailed(TOPIC, "b", out.key[1], "closed"),
        StreamEnded(TOPIC, out.key[1], False),
    ]
    assert sends(done)[-1] == Send("b", Failed(*out.key, "closed"))
    assert node.topics.publishers == []


def test_what_a_node_publishes_is_declared_and_withdrawn() -> None:
    node = TopicsNode()
    one, two = node.publisher(), node.publisher()
    node.topics.close_publisher(one, node.now)
    node.topics.close_publisher(two, node.now)
    assert node.book.declared == [
        (TOPIC, True, False),
        (TOPIC, True, False),
        (TOPIC, True, False),
        (TOPIC, False, False),
    ]
