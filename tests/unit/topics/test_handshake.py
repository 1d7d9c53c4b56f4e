"""Offer, Accept, Begin, Data: how a receiver comes to take part, and where it begins."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.membership.events import AttributesChanged
from protocols.topics import (
    PublisherAppeared,
    Replay,
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
)
from protocols.topics.messages import (
    GONE,
    REPLAY_ALL,
    REPLAY_LAST,
    REPLAY_SINCE,
    Accept,
    Ack,
    Begin,
    Data,
    Failed,
    Knock,
    Leave,
    Offer,
    Reject,
)
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat
from tests.recording import Emit, Send, SetTimer
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    WINDOW,
    ZONE,
    TopicsNode,
    data,
    events,
    offer,
    pack,
    read,
    sends,
)

# -- the sender's side -----------------------------------------------------------------------------


def test_offer_accept_begin_data() -> None:
    node = TopicsNode()
    out = node.publisher(window_bytes=WINDOW)
    out_timer = ("out", out.key)
    assert node.put(out, b"1") == [], "nobody is interested"
    assert node.says("b", TOPIC) == [
        Send("b", Offer(*out.key, TOPIC, Mode.ACK, 2, 1, WINDOW, 0, oldest=2)),
        SetTimer(out_timer, 0.2),
    ]
    assert node.put(out, b"2") == [], "it did not accept yet"
    assert node.receive("b", Accept(*out.key, LIFE, 0)) == [
        Emit(SubscriberJoined(TOPIC, "b", out.key[1], 2)),
        Send("b", Begin(*out.key, 2)),
        Send("b", Data(*out.key, TOPIC, Mode.ACK, 2, 1, 2, 0.0, 0, pack(b"2"))),
        SetTimer(out_timer, 0.15),
    ]
    assert out.receivers == ("b",)


def test_an_offer_is_repeated_less_and_less_often_until_it_failed() -> None:
    node = TopicsNode(handshake_within=2.0)
    node.says("b", TOPIC)
    out = node.publisher()
    node.end_tick()
    at: list[float] = []
    while node.now < 1.9:
        at += [round(node.now, 3) for _ in sends(node.pass_time(0.01), Offer)]
    assert at == [0.2, 0.5, 0.95, 1.63]
    done = node.pass_time(0.2)
    assert sends(done) == [Send("b", Failed(*out.key, "no answer"))]
    assert events(done) == [SubscriberFailed(TOPIC, "b", out.key[1], "no answer")]
    assert sends(node.pass_time(1.8)) == []
    assert sends(node.receive("b", Knock(TOPIC)), Offer) != [], "it may come back"


def test_who_never_heard_of_an_offer_is_tried_again() -> None:
    """It cannot knock at a publisher of which it knows nothing."""
    node = TopicsNode(handshake_within=2.0)
    node.says("b", TOPIC)
    out = node.publisher()
    node.pass_time(2.1)
    assert out.relations == {}
    assert sends(node.pass_time(1.8), Offer) == []
    assert len(sends(node.pass_time(0.2), Offer)) == 1
    node.says("b")
    assert sends(node.pass_time(20.0), Offer) == [], "it wants it no more"


def test_a_repeated_accept_hears_once_more_where_it_began() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1", b"2")
    done = node.receive("b", Accept(*out.key, LIFE, 0))
    assert sends(done) == [Send("b", Begin(*out.key, 1))]
    assert events(done) == []


def test_a_new_life_of_a_receiver_begins_where_the_old_one_was() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1", b"2", b"3")
    node.receive("b", Ack(*out.key, LIFE, 1))
    done = node.receive("b", Accept(*out.key, LIFE + 1, 0))
    assert events(done) == [SubscriberJoined(TOPIC, "b", out.key[1], 2)]
    assert sends(done)[0].msg == Begin(*out.key, 2)
    assert [one.msg.first for one in sends(done, Data)] == [2, 3]  # type: ignore[attr-defined]
    assert node.receive("b", Ack(*out.key, LIFE, 3)) == [], "its old life has no say"
    assert node.counts.stray == 1
    assert out.floor == 1


def test_a_rejected_offer_is_not_repeated_until_its_interest_changes() -> None:
    node = TopicsNode()
    node.says("b", TOPIC)
    out = node.publisher()
    node.end_tick()
    node.receive("b", Reject(*out.key, "not admitted"))
    assert out.relations == {}
    assert sends(node.pass_time(5.0)) == []
    done = node.hear(AttributesChanged(ZONE, "b", ("topics",)))
    assert len(sends(done, Offer)) == 1
    node.receive("b", Reject(*out.key, "not admitted"))
    assert len(sends(node.receive("b", Knock(TOPIC)), Offer)) == 1


def test_who_was_not_offered_is_told_so() -> None:
    node = TopicsNode("b")
    out = node.publisher()
    node.end_tick()
    assert node.receive("b", Accept(*out.key, LIFE, 0)) == [
        Send("b", Failed(*out.key, "not offered"))
    ]
    assert node.receive("b", Accept("me", 1, LIFE, 0)) == [Send("b", Failed("me", 1, GONE))]


def test_who_wants_it_no_more_is_let_go() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1")
    done = node.says("b", "something/else")
    assert events(done) == [SubscriberLeft(TOPIC, "b", out.key[1])]
    assert out.relations == {}
    assert out.history.messages == 0


def test_a_closed_publisher_offers_nothing() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.topics.close_publisher(out, node.now)
    node.end_tick()
    assert sends(node.says("c", TOPIC), Offer) == []


def test_who_may_not_subscribe_is_offered_nothing() -> None:
    node = TopicsNode(may=lambda name, what, topic: (name, what) != ("b", "subscribe"))
    out = node.publisher()
    node.end_tick()
    assert sends(node.says("b", TOPIC)) == []
    assert sends(node.says("c", TOPIC), Offer) != []
    assert list(out.relations) == [Seat("c")]


# -- where it begins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("have", "replay", "amount", "start"),
    [
        (0, 0, 0, 5),  # whatever is published from its discovery on
        (4, 0, 0, 5),
        (3, 0, 0, 4),  # it goes on where it was
        (1, 0, 0, 3),  # 2 is gone: it hears of a gap
        (0, REPLAY_ALL, 0, 3),
        (0, REPLAY_LAST, 1, 4),
        (0, REPLAY_LAST, 100, 3),
        (0, REPLAY_LAST, 0, 5),
        (0, REPLAY_LAST, 1e18, 3),
        (0, REPLAY_SINCE, 3.5, 4),
        (0, REPLAY_SINCE, 0.0, 3),
        (0, REPLAY_SINCE, 99.0, 5),
    ],
)
def test_a_late_joiner_begins_where_it_asks_for(
    have: int, replay: int, amount: float, start: int
) -> None:
    node = TopicsNode()
    out = node.publisher(keep=2)
    for number in (1, 2, 3, 4):
        node.now = float(number)
        node.put(out, number)
    assert out.history.oldest == 3
    node.says("b", TOPIC)
    done = node.receive("b", Accept(*out.key, LIFE, have, replay, amount))
    assert sends(done, Begin) == [Send("b", Begin(*out.key, start))]
    assert [one.msg.first for one in sends(done, Data)] == list(range(start, 5))  # type: ignore[attr-defined]


# -- the receiver's side ---------------------------------------------------------------------------


def accept_of(node: TopicsNode, *, have: int = 0, **rest: Any) -> Accept:
    (stream,) = node.topics.streams
    return Accept("pub", STREAM, stream.receiver, have, **rest)


def test_an_offer_is_accepted_and_begins() -> None:
    node = TopicsNode("pub")
    node.subscribe()
    assert node.receive("pub", offer()) == [Send("pub", accept_of(node))]
    assert node.receive("pub", offer()) == [], "it was just answered"
    node.now = 1.0
    assert node.receive("pub", offer()) == [Send("pub", accept_of(node))]
    assert node.receive("pub", Begin("pub", STREAM, 3)) == [
        Emit(PublisherAppeared(TOPIC, "pub", STREAM))
    ]
    node.now = 2.0
    assert node.receive("pub", offer()) == [Send("pub", accept_of(node, have=2))]
    assert node.receive("pub", Begin("pub", STREAM, 3)) == []


@pytest.mark.parametrize(("replay", "got"), [(None, [b"3"]), (Replay.last(5), [b"1", b"2", b"3"])])
def test_what_a_gateway_fetched_is_for_who_wants_a_replay(
    replay: Replay | None, got: list[bytes]
) -> None:
    node = TopicsNode("gate")
    one = node.subscribe(replay=replay)
    node.receive("gate", offer())
    node.receive("gate", Begin("pub", STREAM, 1, live=3), data(1, b"1", b"2"), data(3, b"3"))
    assert read(one) == got
    (ack,) = sends(node.pass_time(0.06), Ack)
    assert ack.msg.upto == 3  # type: ignore[attr-defined]


def test_data_before_begin_is_answered_by_another_accept() -> None:
    node = TopicsNode("pub")
    one = node.subscribe()
    node.receive("pub", offer())
    node.now = 1.0
    assert node.receive("pub", data(1, b"1")) == [Send("pub", accept_of(node))]
    assert not one.queue


def test_begin_of_somebody_else_is_stray() -> None:
    node = TopicsNode("pub", "evil")
    node.subscribe()
    node.receive("pub", offer())
    assert node.receive("evil", Begin("pub", STREAM, 1)) == []
    assert node.receive("pub", Begin("pub", STREAM + 1, 1)) == []
    assert node.counts.stray == 2


def test_what_nobody_wants_is_rejected_with_a_reason() -> None:
    node = TopicsNode("pub")
    assert node.receive("pub", offer()) == [Send("pub", Reject("pub", STREAM, "no interest"))]
    node.subscribe(admit=lambda publisher, topic: (publisher, topic) == ("bob", TOPIC))
    assert node.receive("pub", offer()) == [Send("pub", Reject("pub", STREAM, "not admitted"))]
    assert node.counts.refused_publishers == 1
    assert node.topics.streams == []
    node.subscribe("plant/*")
    assert sends(node.receive("pub", offer()), Accept) != []


@pytest.mark.parametrize(
    ("wanted", "replay", "amount"),
    [
        ([None], 0, 0.0),
        ([Replay.last(3)], REPLAY_LAST, 3),
        ([Replay.since(9.0)], REPLAY_SINCE, 9.0),
        ([Replay.all(), Replay.all()], REPLAY_ALL, 0.0),
        ([None, Replay.last(3)], 0, 0.0),  # they differ: who wants more recalls it for itself
        ([Replay.last(5), Replay.last(3)], 0, 0.0),
    ],
)
def test_what_all_subscriptions_want_is_asked_for(
    wanted: list[Replay | None], replay: int, amount: float
) -> None:
    node = TopicsNode("pub")
    for one in wanted:
        node.subscribe(replay=one)
    done = node.receive("pub", offer())
    assert done == [Send("pub", accept_of(node, replay=replay, amount=amount))]


def test_unsubscribing_leaves_and_a_new_subscription_begins_anew() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    two = node.subscribe()
    node.receive("pub", data(1, b"1"))
    node.topics.unsubscribe(one, node.now)
    assert sends(node.end_tick()) == []
    node.topics.unsubscribe(two, node.now)
    assert sends(node.end_tick()) == [Send("pub", Leave("pub", STREAM))]
    assert node.topics.streams == []
    assert node.effects.timers.keys() == {"sweep"}
    node.subscribe()
    done = node.receive("pub", offer(start=2, newest=1))
    assert done == [Send("pub", accept_of(node, have=0))]


def test_the_subscriptions_of_one_node_share_a_stream() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in()
    two = node.subscribe("plant/*")
    node.receive("pub", data(1, b"1", b"2"))
    assert [batch.items for batch in one.queue] == [[b"1", b"2"]]
    assert [batch.items for batch in two.queue] == [[b"1", b"2"]]
    assert node.counts.delivered == 4


def test_a_stream_of_my_own_comes_to_me_too() -> None:
    node = TopicsNode()
    node.subscribe()
    out = node.publisher()
    assert sends(node.end_tick()) == [
        Send("me", Offer(*out.key, TOPIC, Mode.ACK, 1, 0, out.config.window_bytes, 0, oldest=1))
    ]
