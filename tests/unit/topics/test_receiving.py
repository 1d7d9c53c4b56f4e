"""What arrives is put in order, handed over once, and acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.topics import (
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    SubscriptionFailed,
)
from protocols.topics.messages import ASK, GONE, LAST, Ack, Begin, Failed, Knock, Leave
from protocols.topics.modes import Mode
from tests.recording import Recorded, Send, SetTimer
from tests.unit.topics.node import (
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    events,
    offer,
    read,
    sends,
    timers,
)

ACK_TIMER = ("ack", ("pub", STREAM, False))
GAP_TIMER = ("gap", ("pub", STREAM, False))


def acks(done: list[Recorded]) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    return [(one.msg.upto, one.msg.gaps) for one in sends(done, Ack)]  # type: ignore[attr-defined]


def ack_at(timer: Recorded) -> float:
    """When the next ack is due."""
    assert isinstance(timer, SetTimer)
    assert timer.key == ACK_TIMER
    return timer.at


def test_receivers_do_not_acknowledge_in_step() -> None:
    node = TopicsNode("pub")
    node.take_in()
    pauses = set()
    for number in range(1, 20):
        (timer,) = node.receive("pub", data(number, b"x"))
        pauses.add(round(ack_at(timer) - node.now, 6))
        node.pass_time(0.06)
    assert len(pauses) > 15
    assert 0.04 <= min(pauses) <= max(pauses) <= 0.05


# -- order -----------------------------------------------------------------------------------------
def test_what_comes_in_order_is_handed_over_at_once() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    (timer,) = node.receive("pub", data(1, b"1", b"2"))
    assert ack_at(timer) <= 0.05
    assert node.receive("pub", data(3, b"3")) == []
    batches = [(batch.first, batch.items, batch.publisher, batch.topic) for batch in one.queue]
    assert batches == [(1, [b"1", b"2"], "pub", TOPIC), (3, [b"3"], "pub", TOPIC)]


def test_what_comes_early_waits_and_the_gap_is_told() -> None:
    node = TopicsNode("pub", gap_delay=0.003, resend_after=0.02)
    one, life = node.take_in()
    assert node.receive("pub", data(3, b"3")) == [SetTimer(GAP_TIMER, 0.003)]
    assert not one.queue
    (told, again) = node.pass_time(0.01)
    assert told == Send("pub", Ack("pub", STREAM, life, 0, ((1, 2),)))
    assert again == SetTimer(GAP_TIMER, 0.003 + 1.25 * 0.02)
    node.receive("pub", data(1, b"1", b"2"))
    assert read(one) == [b"1", b"2", b"3"]


def test_what_comes_twice_is_dropped_and_acknowledged() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"), data(1, b"1"))
    node.receive("pub", data(3, b"3"), data(3, b"3"))
    assert read(one) == [b"1"]
    assert node.counts.duplicates == 2
    assert acks(node.pass_time(0.06))[-1] == (1, ((2, 2),))
    (timer,) = timers(node.receive("pub", data(1, b"1")))
    assert ack_at(timer) <= 0.11


def test_a_chunk_of_which_a_part_is_known_brings_the_rest() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in(start=3)
    node.receive("pub", data(1, b"1", b"2", b"3", b"4"))
    node.receive("pub", data(7, b"7"), data(5, b"5", b"6", b"7", b"8"))
    assert [(batch.first, batch.items) for batch in one.queue] == [
        (3, [b"3", b"4"]),
        (5, [b"5", b"6", b"7", b"8"]),
    ]
    assert node.topics.streams[0].order.bytes == 0


def test_more_than_may_wait_comes_again_later() -> None:
    node = TopicsNode("pub", pending_bytes=1024)
    one, _ = node.take_in()
    node.receive("pub", data(2, b"x" * 900), data(3, b"x" * 900))
    node.receive("pub", data(1, b"1"))
    assert len(read(one)) == 2
    assert acks(node.pass_time(0.01)) == [(2, ((3, 3),))]


# -- a reader that does not read -------------------------------------------------------------------
def test_a_full_subscription_holds_back_and_goes_on() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in(capacity=100)
    node.receive("pub", data(1, b"x" * 100), data(2, b"2"), data(3, b"3"))
    assert [batch.first for batch in one.queue] == [1]
    assert one.held
    assert node.counts.held_back == 1
    assert acks(node.pass_time(0.06)) == [(1, ())], "what it did not get is not acknowledged"
    assert read(one) == [b"x" * 100]
    node.topics.resume(one, node.now)
    assert acks(node.end_tick()) == [(3, ())]
    assert read(one) == [b"2", b"3"]
    assert not one.held


def test_one_full_subscription_holds_back_the_others_of_its_node() -> None:
    node = TopicsNode("pub")
    full, _ = node.take_in(capacity=100)
    other = node.subscribe()
    node.receive("pub", data(1, b"x" * 100), data(2, b"2"))
    assert [batch.first for batch in other.queue] == [1]
    node.topics.unsubscribe(full, node.now)
    node.topics.resume(other, node.now)
    node.end_tick()
    assert [batch.first for batch in other.queue] == [1, 2]


@pytest.mark.parametrize("mode", [Mode.ORDERED, Mode.UNORDERED])
def test_without_reliability_a_full_subscription_loses(mode: Mode) -> None:
    node = TopicsNode("pub")
    one = node.subscribe(capacity=100)
    node.receive("pub", data(1, b"x" * 100, mode=mode), data(2, b"2", mode=mode))
    assert [batch.first for batch in one.queue] == [1]
    assert node.counts.dropped == 1


# -- acknowledging ---------------------------------------------------------------------------------
def test_acks_come_by_time_by_bytes_and_when_asked() -> None:
    node = TopicsNode("pub", ack_every=0.05, ack_share=0.125)  # of 4096 bytes: 512
    node.take_in()
    assert acks(node.receive("pub", data(1, b"x" * 100))) == []
    assert acks(node.pass_time(0.04)) == []
    assert acks(node.pass_time(0.02)) == [(1, ())]
    assert acks(node.pass_time(1.0)) == [], "once is enough"
    assert acks(node.receive("pub", data(2, b"x" * 300))) == []
    assert acks(node.receive("pub", data(3, b"x" * 300))) == [(3, ())]
    assert acks(node.receive("pub", data(4, flags=ASK), data(4, flags=ASK))) == [(3, ())]
    assert acks(node.receive("pub", data(6, flags=ASK))) == [(3, ((4, 5),))]


def test_what_is_gone_at_the_source_is_a_gap() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"), data(5, b"5", oldest=5), data(3, b"3", oldest=5))
    done = node.pass_time(0.01)
    assert events(done) == [
        Gap(TOPIC, "pub", STREAM, 2, 2, "too old"),
        Gap(TOPIC, "pub", STREAM, 4, 4, "too old"),
    ]
    assert read(one) == [b"1", b"3", b"5"], "what is here is not lost"
    assert node.counts.gaps == 2


def test_a_later_begin_is_a_gap() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"))
    assert events(node.receive("pub", Begin("pub", STREAM, 4))) == [
        Gap(TOPIC, "pub", STREAM, 2, 3, "gone")
    ]
    node.receive("pub", data(4, b"4"))
    assert read(one) == [b"1", b"4"]


# -- the end ---------------------------------------------------------------------------------------
def test_the_end_comes_when_everything_is_here() -> None:
    node = TopicsNode("pub")
    one, life = node.take_in()
    assert events(node.receive("pub", data(3, flags=LAST | ASK))) == []
    done = node.receive("pub", data(1, b"1", b"2"))
    assert events(done) == [PublisherGone(TOPIC, "pub", STREAM)]
    assert sends(done)[:2] == [
        Send("pub", Ack("pub", STREAM, life, 2)),
        Send("pub", Leave("pub", STREAM)),
    ]
    assert read(one) == [b"1", b"2"]
    assert node.topics.streams == []
    assert node.effects.timers.keys() == {"sweep"}
    assert node.receive("pub", offer(newest=2)) == [Send("pub", Leave("pub", STREAM))]
    assert sends(node.receive("pub", data(3, flags=LAST | ASK))) == [
        Send("pub", Leave("pub", STREAM))
    ]
    assert not one.queue


def test_who_is_told_that_it_failed_says_so_and_knocks() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"))
    done = node.receive("pub", Failed("pub", STREAM, "silent"))
    assert events(done) == [SubscriptionFailed(TOPIC, "pub", STREAM, "silent")]
    assert sends(done) == [Send("pub", Knock(TOPIC))]
    assert node.receive("evil", Failed("pub", STREAM, "silent")) == []
    node.now = 1.0
    (accept,) = sends(node.receive("pub", offer(start=4, newest=3)))
    assert accept.msg.have == 1  # type: ignore[attr-defined]
    assert events(node.receive("pub", Begin("pub", STREAM, 2))) == []
    node.receive("pub", data(2, b"2", b"3"))
    assert read(one) == [b"1", b"2", b"3"]


def test_a_source_without_the_stream_is_no_failure_yet() -> None:
    node = TopicsNode("pub")
    node.take_in()
    done = node.receive("pub", Failed("pub", STREAM, GONE))
    assert events(done) == []
    assert sends(done) == [Send("pub", Knock(TOPIC))]


def test_a_stream_that_falls_silent_fails() -> None:
    node = TopicsNode("pub", heartbeat=1.0, silence=4.0)
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"), data(3, b"3"))
    done = node.pass_time(6.0)
    assert events(done) == [
        Gap(TOPIC, "pub", STREAM, 2, 2, "silent"),
        PublisherFailed(TOPIC, "pub", STREAM, "silent"),
    ]
    assert read(one) == [b"1", b"3"]
    assert node.topics.streams == []


def test_a_publisher_that_died_fails_soon_and_its_stream_may_go_on() -> None:
    node = TopicsNode("pub", lost_grace=1.0)
    one, _ = node.take_in()
    node.receive("pub", data(1, b"1"))
    node.fails("pub")
    assert events(node.pass_time(3.0)) == [PublisherFailed(TOPIC, "pub", STREAM, "failed")]
    node.says("pub")  # it is back
    (accept,) = sends(node.receive("pub", offer(start=2, newest=1)))
    assert accept.msg.have == 1, "it was only cut off"  # type: ignore[attr-defined]
    node.receive("pub", Begin("pub", STREAM, 2), data(2, b"2"))
    assert read(one) == [b"1", b"2"]


# -- modes that may lose ---------------------------------------------------------------------------
def ordered(node: TopicsNode, *chunks: tuple[int, Any], mode: Mode) -> list[Recorded]:
    return node.receive("pub", *[data(first, item, mode=mode) for first, item in chunks])


def test_unordered_hands_over_whatever_comes() -> None:
    node = TopicsNode("pub")
    one = node.subscribe()
    done = ordered(node, (5, b"5"), (3, b"3"), (5, b"5"), mode=Mode.UNORDERED)
    assert events(done) == [PublisherAppeared(TOPIC, "pub", STREAM)]
    assert sends(done) == []
    assert timers(done) == []
    assert read(one) == [b"5", b"3", b"5"]


def test_ordered_waits_a_little_and_skips() -> None:
    node = TopicsNode("pub", order_wait=0.05)
    one = node.subscribe()
    done = ordered(node, (5, b"5"), (8, b"8"), (7, b"7"), (5, b"5"), mode=Mode.ORDERED)
    assert timers(done) == [SetTimer(GAP_TIMER, 0.05)]
    assert read(one) == [b"5"]
    assert sends(node.pass_time(0.06)) == []
    assert read(one) == [b"7", b"8"]
    assert node.counts.skipped == 1
    ordered(node, (6, b"6"), (9, b"9"), mode=Mode.ORDERED)
    assert read(one) == [b"9"], "too late"
