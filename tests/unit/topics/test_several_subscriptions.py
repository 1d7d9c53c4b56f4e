"""Several subscriptions of one node share a stream, and do not stand in each other's way."""

from __future__ import annotations

from protocols.topics import Replay
from protocols.topics.messages import REPLAY_ALL, Accept, Ack
from tests.unit.topics.node import STREAM, TopicsNode, data, offer, read, sends


def test_a_reader_does_not_wait_for_a_full_subscription_that_was_closed() -> None:
    node = TopicsNode("pub")
    idle, _ = node.take_in(capacity=1)
    reader = node.subscribe()
    node.receive("pub", data(1, b"1"))
    node.receive("pub", data(2, b"2"), data(3, b"3"))
    assert read(reader) == [b"1"], "the others wait for the one that nobody reads"
    node.topics.unsubscribe(idle, node.now)
    done = node.end_tick()
    assert read(reader) == [b"2", b"3"]
    assert [one.msg.upto for one in sends(done, Ack)] == [3]  # type: ignore[attr-defined]


def test_a_new_subscription_does_not_make_another_one_begin_again() -> None:
    node = TopicsNode("pub")
    one, life = node.take_in()
    node.receive("pub", data(1, b"1", b"2"))
    node.fails("pub")
    node.pass_time(3.0)
    assert node.topics.streams == []
    node.subscribe("elsewhere")
    node.base.put("pub", 100)
    ((_, accept),) = sends(node.receive("pub", offer(newest=2)), Accept)
    assert accept == Accept("pub", STREAM, life, 2), "it goes on where it was"
    assert read(one) == [b"1", b"2"]


def test_a_subscription_begins_anew_where_an_earlier_one_failed_and_ended() -> None:
    node = TopicsNode("pub")
    one, life = node.take_in()
    node.receive("pub", data(1, b"1", b"2"))
    node.fails("pub")
    node.pass_time(3.0)
    node.topics.unsubscribe(one, node.now)
    node.subscribe(replay=Replay.all())
    node.base.put("pub", 100)
    ((_, accept),) = sends(node.receive("pub", offer(newest=2)), Accept)
    assert isinstance(accept, Accept)
    assert (accept.have, accept.replay) == (0, REPLAY_ALL)
    assert accept.receiver != life
