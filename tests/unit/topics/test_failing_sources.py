"""When a source dies what is here is still handed over, and what is not is told: never silence."""

from __future__ import annotations

import pytest

from protocols.gateways.interface import RemoteGateway
from protocols.topics import Gap, PublisherAppeared, PublisherFailed, Subscription
from protocols.topics.messages import LAST, LOST, Accept, Ack, Begin, Data
from protocols.topics.modes import Mode
from tests.unit.topics.node import STREAM, TOPIC, TopicsNode, data, events, offer, read, sends

FAILED = PublisherFailed(TOPIC, "pub", STREAM, "failed")


def full(mode: Mode) -> tuple[TopicsNode, Subscription]:
    """A subscription that is full while more of a stream waits for it, with a gap in it."""
    node = TopicsNode("pub", remember=20.0)
    if mode is Mode.ACK:
        one, _ = node.take_in(capacity=1)
    else:
        one = node.subscribe(capacity=1)
        node.receive("pub", data(1, mode=mode))
        node.receive("pub", Begin("pub", STREAM, 1))
    node.receive("pub", data(1, b"1", mode=mode), data(2, b"2", mode=mode))
    node.receive("pub", data(5, b"5", mode=mode), data(8, mode=mode))
    return node, one


@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK])
def test_what_a_full_subscription_did_not_take_comes_when_it_reads(mode: Mode) -> None:
    node, one = full(mode)
    node.fails("pub")
    assert events(node.pass_time(3.0)) == [FAILED]
    assert read(one) == [b"1"]
    node.topics.resume(one, node.now)
    assert events(node.end_tick()) == [Gap(TOPIC, "pub", STREAM, 3, 4, "failed")]
    assert read(one) == [b"2"]
    assert len(node.topics.streams) == 1, "not all of it is read"
    node.topics.resume(one, node.now)
    assert events(node.end_tick()) == []
    assert read(one) == [b"5"]
    assert node.topics.streams == []


@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK])
def test_what_was_known_of_and_never_came_is_a_gap_once_nobody_can_bring_it(mode: Mode) -> None:
    node, one = full(mode)
    node.fails("pub")
    node.pass_time(3.0)
    for _ in range(3):
        read(one)
        node.topics.resume(one, node.now)
        node.end_tick()
    assert events(node.pass_time(15.0)) == [], "its publisher may come back with it"
    assert events(node.pass_time(10.0)) == [Gap(TOPIC, "pub", STREAM, 6, 7, "failed")]
    assert events(node.pass_time(60.0)) == []


def test_nobody_is_told_of_a_tail_whose_subscription_ended() -> None:
    node, one = full(Mode.NACK)
    node.fails("pub")
    node.pass_time(3.0)
    node.topics.unsubscribe(one, node.now)
    node.end_tick()
    assert node.topics.streams == []
    assert events(node.pass_time(60.0)) == []


def test_a_publisher_that_comes_back_before_all_is_read_goes_on() -> None:
    node, one = full(Mode.ACK)
    node.fails("pub")
    node.pass_time(3.0)
    node.base.put("pub", 100)
    done = node.receive("pub", offer(newest=7))
    assert events(done) == [PublisherAppeared(TOPIC, "pub", STREAM)]
    ((_, accept),) = sends(done, Accept)
    assert accept.have == 1  # type: ignore[attr-defined]
    node.receive("pub", data(3, b"3"), data(4, b"4"))
    got = []
    for _ in range(5):
        got += read(one)
        node.topics.resume(one, node.now)
        assert not any(isinstance(event, Gap) for event in events(node.end_tick()))
    assert got == [b"1", b"2", b"3", b"4", b"5"]


def test_in_nack_mode_its_next_word_is_enough_to_go_on() -> None:
    node, one = full(Mode.NACK)
    node.fails("pub")
    node.pass_time(3.0)
    node.base.put("pub", 100)
    node.receive("pub", data(8, b"8", mode=Mode.NACK))
    assert PublisherAppeared(TOPIC, "pub", STREAM) in events(node.pass_time(1.1))
    node.receive("pub", *(data(n, str(n).encode(), mode=Mode.NACK) for n in (3, 4, 6, 7)))
    got = []
    for _ in range(8):
        got += read(one)
        node.topics.resume(one, node.now)
        node.end_tick()
    assert got == [b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8"]


def test_a_relay_that_is_full_hands_on_the_rest_before_it_ends() -> None:
    node = TopicsNode("b", relay_bytes=1024)
    node.book.gateway = "me"
    node.says("b", TOPIC)
    node.book.remote = {"gate": RemoteGateway("far", publishes=True, subscribes=False)}
    node.receive("gate", offer(relay=True))
    node.receive("gate", Begin("pub", STREAM, 1, relay=True))
    node.receive("b", Accept("pub", STREAM, 99, 0))
    large = b"x" * 1500
    node.receive("gate", data(1, large, flags=8), data(2, large, flags=8), data(3, b"3", flags=8))
    (arriving,) = node.topics.streams
    assert arriving.order.expected == 2, "the others wait for room"
    arriving.fail("silent", node.now)
    node.end_tick()
    done = node.receive("b", Ack("pub", STREAM, 99, 1))
    done += node.receive("b", Ack("pub", STREAM, 99, 2))
    sent = [one.msg for one in sends(done, Data)]
    assert [msg.first for msg in sent if msg.count] == [2, 3]  # type: ignore[attr-defined]
    last = sent[-1]
    assert isinstance(last, Data)
    assert (last.first, last.flags & (LAST | LOST)) == (4, LAST | LOST)
