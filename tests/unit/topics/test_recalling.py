"""A subscription that comes later than others of its node gets its replay, then what they get."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.gateways.interface import RemoteGateway
from protocols.topics import Gap, PublisherFailed, PublisherGone, Replay, Subscription
from protocols.topics.messages import (
    LAST,
    REPLAY_ALL,
    REPLAY_LAST,
    Accept,
    Ack,
    Begin,
    Leave,
    Offer,
    Recall,
    Recalled,
)
from protocols.topics.modes import Mode
from tests.recording import CancelTimer, Send, SetTimer
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    events,
    offer,
    pack,
    read,
    sends,
    timers,
)

HERE = ("pub", STREAM, False)


def serial_of(node: TopicsNode) -> int:
    ((request,),) = [one.recalls for one in node.topics.streams if one.recalls]
    return request.serial


def late(node: TopicsNode, replay: Replay, **options: Any) -> tuple[Subscription, int]:
    """A second subscription, and the number of its request."""
    two = node.topics.subscribe(TOPIC, node.now, replay=replay, **options)
    node.end_tick()
    return two, serial_of(node)


def answer(
    serial: int, first: int, *items: Any, start: int = 0, until: int = 0, relay: bool = False
) -> Recalled:
    last = first + len(items) - 1
    payload = pack(*items) if items else b""
    begin, end = start or first, until or last
    return Recalled("pub", STREAM, serial, begin, end, first, len(items), 0.0, payload, relay)


def two_of(mode: Mode = Mode.ACK, **settings: Any) -> tuple[TopicsNode, Subscription]:
    """A node with one subscription that has messages 1 to 4 of a stream."""
    node = TopicsNode("pub", **settings)
    if mode is Mode.ACK:
        one, _ = node.take_in()
    else:
        one = node.subscribe()
        node.receive("pub", data(1, mode=mode))
        node.receive("pub", Begin("pub", STREAM, 1))
    node.receive("pub", data(1, b"1", b"2", mode=mode), data(3, b"3", b"4", mode=mode))
    assert read(one) == [b"1", b"2", b"3", b"4"]
    return node, one


# -- at the receiver -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK, Mode.ORDERED])
def test_a_second_subscription_asks_for_its_replay(mode: Mode) -> None:
    node, _ = two_of(mode)
    node.topics.subscribe(TOPIC, node.now, replay=Replay.last(3))
    done = node.end_tick()
    serial = serial_of(node)
    assert done == [
        Send("pub", Recall("pub", STREAM, serial, 0, 4, REPLAY_LAST, 3.0)),
        SetTimer(("recall", (HERE, serial)), 0.15),
    ]


def test_nothing_is_asked_for_where_nothing_is_wanted_or_was_before() -> None:
    node, _ = two_of()
    node.topics.subscribe(TOPIC, node.now)
    assert sends(node.end_tick(), Recall) == []
    fresh = TopicsNode("pub")
    fresh.take_in()
    two = fresh.subscribe(replay=Replay.all())
    assert fresh.topics.streams[0].recalls == ()
    fresh.receive("pub", data(1, b"1"))
    assert read(two) == [b"1"]
    unordered, _ = two_of(Mode.UNORDERED)
    unordered.topics.subscribe(TOPIC, unordered.now, replay=Replay.all())
    assert sends(unordered.end_tick(), Recall) == []


@pytest.mark.parametrize("mode", [Mode.ACK, Mode.NACK, Mode.ORDERED])
def test_the_replay_comes_before_what_arrives_meanwhile_and_only_to_who_asked(mode: Mode) -> None:
    node, one = two_of(mode)
    two, serial = late(node, Replay.all())
    node.receive("pub", data(5, b"5", mode=mode))
    assert read(one) == [b"5"], "the first one does not wait"
    assert read(two) == []
    done = node.receive("pub", answer(serial, 1, b"1", b"2", until=4))
    assert read(two) == [b"1", b"2"]
    assert sends(done) == [], "more of this part is on its way"
    done = node.receive("pub", answer(serial, 3, b"3", b"4", start=1))
    assert CancelTimer(("recall", (HERE, serial))) in done
    assert [(batch.first, batch.items) for batch in two.queue] == [(3, [b"3", b"4"]), (5, [b"5"])]
    read(two)
    node.receive("pub", data(6, b"6", mode=mode))
    assert read(one) == read(two) == [b"6"]
    assert node.counts.replayed == 4


def test_parts_are_asked_for_one_after_the_other() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    node.now = 1.0
    done = node.receive("pub", answer(serial, 1, b"1", b"2"))
    assert done == [
        Send("pub", Recall("pub", STREAM, serial, 2, 4, REPLAY_ALL, 0.0)),
        SetTimer(("recall", (HERE, serial)), 1.15),
    ]
    node.receive("pub", answer(serial, 3, b"3", b"4"))
    assert read(two) == [b"1", b"2", b"3", b"4"]


def test_what_is_lost_on_the_way_is_asked_for_again_and_overtaking_is_harmless() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    again = node.pass_time(0.2)
    assert sends(again, Recall) == [
        Send("pub", Recall("pub", STREAM, serial, 0, 4, REPLAY_ALL, 0.0))
    ]
    assert timers(again) == [SetTimer(("recall", (HERE, serial)), 0.15 + 0.15 * 1.5)]
    node.receive("pub", answer(serial, 3, b"3", b"4", start=1))
    assert read(two) == []
    node.receive("pub", answer(serial, 1, b"1", b"2"), answer(serial, 1, b"1", b"2"))
    assert read(two) == [b"1", b"2", b"3", b"4"]


def test_only_what_was_before_is_taken_from_a_chunk() -> None:
    node, one = two_of()
    node.receive("pub", data(5, b"5", b"6"))
    two, serial = late(node, Replay.last(3))
    node.receive("pub", answer(serial, 3, b"3", b"4", b"5", b"6", b"7", start=4, until=6))
    assert [(batch.first, batch.items) for batch in two.queue] == [(4, [b"4", b"5", b"6"])]
    node.receive("pub", data(7, b"7"))
    assert read(one)[-1:] == read(two)[-1:] == [b"7"]


def test_nothing_that_is_left_ends_the_replay() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    node.receive("pub", answer(serial, 5, start=5, until=4))
    node.receive("pub", data(5, b"5"))
    assert read(two) == [b"5"]
    assert node.topics.streams[0].recalls == ()


def test_what_leaves_the_history_meanwhile_is_a_gap_of_that_subscription_alone() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    heard: list[Gap] = []
    two.tell_gap = heard.append
    node.receive("pub", answer(serial, 1, b"1"))
    done = node.receive("pub", answer(serial, 4, b"4", start=4))
    assert read(two) == [b"1", b"4"]
    assert heard == [Gap(TOPIC, "pub", STREAM, 2, 3, "gone")]
    assert events(done) == [], "others have these messages"


def test_a_replay_that_nobody_reads_waits_and_does_not_hold_the_others_up() -> None:
    node, one = two_of()
    two, serial = late(node, Replay.all(), capacity=1)
    node.receive(
        "pub", answer(serial, 1, b"1", b"2", until=4), answer(serial, 3, b"3", b"4", start=1)
    )
    assert [batch.items for batch in two.queue] == [[b"1", b"2"]]
    assert two.held
    node.receive("pub", data(5, b"5"))
    assert read(one) == [b"5"]
    read(two)
    node.topics.resume(two, node.now)
    node.end_tick()
    assert read(two) == [b"3", b"4", b"5"]


def test_what_waits_behind_a_replay_is_bounded() -> None:
    node, one = two_of()
    two, serial = late(node, Replay.all(), capacity=1)
    node.receive("pub", data(5, b"5"))
    node.receive("pub", data(6, b"6"))
    assert read(one) == [b"5"], "one batch more than there is room for, as everywhere"
    done = node.receive("pub", answer(serial, 5, start=5, until=4))
    assert read(two) == [b"5"]
    node.topics.resume(two, node.now)
    done += node.end_tick()
    assert read(one) == read(two) == [b"6"]
    assert [one.msg.upto for one in sends(done, Ack)] == [6]  # type: ignore[attr-defined]


def test_who_unsubscribes_in_the_midst_of_a_replay_does_not_leave_the_others_waiting() -> None:
    node, one = two_of()
    two, _ = late(node, Replay.all(), capacity=1)
    node.receive("pub", data(5, b"5"))
    node.receive("pub", data(6, b"6"))
    node.topics.unsubscribe(two, node.now)
    node.end_tick()
    assert read(one) == [b"5", b"6"]


def test_a_source_that_never_answers_is_given_up() -> None:
    node, _ = two_of(nack_tries=3)
    two, _ = late(node, Replay.all())
    node.receive("pub", data(5, b"5"))
    asked = sends(node.pass_time(5.0), Recall)
    assert len(asked) == 2, "after the first"
    assert read(two) == [b"5"]


def test_answers_that_bring_nothing_do_not_make_requests() -> None:
    node, _ = two_of()
    _, serial = late(node, Replay.all())
    node.receive("pub", answer(serial, 1, b"1", until=3))
    for _ in range(5):
        done = node.receive("pub", answer(serial, 1, b"1", start=1, until=1))
        assert sends(done) == []


def test_who_unsubscribes_recalls_no_more() -> None:
    node, one = two_of()
    two, serial = late(node, Replay.all())
    node.topics.unsubscribe(two, node.now)
    assert CancelTimer(("recall", (HERE, serial))) in node.end_tick()
    stray = node.counts.stray
    node.receive("pub", answer(serial, 1, b"1"))
    assert node.counts.stray == stray + 1
    node.receive("pub", data(5, b"5"))
    assert read(one) == [b"5"]
    assert read(two) == []


def test_answers_of_others_and_of_other_requests_are_stray() -> None:
    node, _ = two_of()
    node.base.put("else", 100)
    two, serial = late(node, Replay.all())
    node.receive("else", answer(serial, 1, b"x"))
    node.receive("pub", answer(serial + 1, 1, b"x"))
    assert node.counts.stray == 2
    assert read(two) == []


def test_an_answer_that_makes_no_sense_is_refused() -> None:
    node, _ = two_of()
    _, serial = late(node, Replay.all())
    broken = Recalled("pub", STREAM, serial, 1, 2, 1, 2, 0.0, b"\xff")
    assert node.refusal("pub", broken) == "malformed-chunk"
    nowhere = Recalled("pub", STREAM, serial, 0, 2, 1, 1, 0.0, pack(b"1"))
    assert node.refusal("pub", nowhere) == "data-nonsense"


def test_a_stream_that_closes_ends_after_the_replay() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    assert events(node.receive("pub", data(5, flags=LAST))) == []
    done = node.receive("pub", answer(serial, 1, b"1", b"2", b"3", b"4"))
    assert read(two) == [b"1", b"2", b"3", b"4"]
    assert events(done) == [PublisherGone(TOPIC, "pub", STREAM)]
    assert Send("pub", Leave("pub", STREAM)) in done


def test_a_source_that_dies_leaves_what_is_here_and_a_gap() -> None:
    node, _ = two_of()
    two, serial = late(node, Replay.all())
    heard: list[Gap] = []
    two.tell_gap = heard.append
    node.receive("pub", answer(serial, 1, b"1", until=4), data(5, b"5"))
    node.fails("pub")
    done = node.pass_time(3.0)
    assert read(two) == [b"1", b"5"]
    assert heard == [Gap(TOPIC, "pub", STREAM, 2, 4, "failed")]
    assert events(done) == [PublisherFailed(TOPIC, "pub", STREAM, "failed")]
    assert node.topics.streams == []


def test_subscriptions_that_differ_begin_together_and_one_catches_up() -> None:
    node = TopicsNode("pub")
    one = node.subscribe()
    two = node.subscribe(replay=Replay.all())
    ((_, accept),) = sends(node.receive("pub", offer(start=5, newest=4)), Accept)
    assert accept.replay == 0  # type: ignore[attr-defined]
    done = node.receive("pub", Begin("pub", STREAM, 5))
    assert sends(done) == [
        Send("pub", Recall("pub", STREAM, serial_of(node), 0, 4, REPLAY_ALL, 0.0))
    ]
    node.receive("pub", data(5, b"5"), answer(serial_of(node), 4, b"4"))
    assert (read(one), read(two)) == ([b"5"], [b"4", b"5"])


def test_a_replay_is_not_repeated_when_its_publisher_comes_back() -> None:
    node = TopicsNode("pub")
    one, _ = node.take_in(replay=Replay.all())
    node.receive("pub", data(1, b"1", b"2"))
    node.fails("pub")
    node.pass_time(3.0)
    two = node.subscribe(replay=Replay.all())
    node.base.put("pub", 100)
    done = node.receive("pub", offer(newest=2))
    assert [one.msg for one in sends(done, Recall)] == [
        Recall("pub", STREAM, serial_of(node), 0, 2, REPLAY_ALL, 0.0)
    ]
    node.receive("pub", Begin("pub", STREAM, 3), answer(serial_of(node), 1, b"1", b"2"))
    assert (read(one), read(two)) == ([b"1", b"2"], [b"1", b"2"])


def test_in_ordered_mode_a_new_subscription_recalls_what_is_kept() -> None:
    node = TopicsNode("pub")
    two = node.subscribe(replay=Replay.last(2))
    done = node.receive("pub", data(5, mode=Mode.ORDERED))
    assert sends(done) == [
        Send("pub", Recall("pub", STREAM, serial_of(node), 0, 4, REPLAY_LAST, 2.0))
    ]
    node.receive("pub", data(5, b"5", mode=Mode.ORDERED), answer(serial_of(node), 3, b"3", b"4"))
    assert read(two) == [b"3", b"4", b"5"]


# -- at the sender ---------------------------------------------------------------------------------


def recalled(done: list[Any]) -> list[tuple[str, int, int, int, int]]:
    found = []
    for one in sends(done, Recalled):
        assert isinstance(one.msg, Recalled)
        found.append((one.to, one.msg.start, one.msg.until, one.msg.first, one.msg.count))
    return found


@pytest.mark.parametrize("mode", ["ack", "nack", "ordered"])
@pytest.mark.parametrize(
    ("replay", "have", "answers"),
    [
        (Replay.all(), 0, [("b", 1, 4, n, 1) for n in (1, 2, 3, 4)]),
        (Replay.last(2), 0, [("b", 3, 4, n, 1) for n in (3, 4)]),
        (Replay.since(2.0), 0, [("b", 2, 4, n, 1) for n in (2, 3, 4)]),
        (Replay.since(9.0), 0, [("b", 5, 4, 5, 0)]),
        (Replay.all(), 3, [("b", 4, 4, 4, 1)]),
    ],
)
def test_a_publisher_sends_what_it_keeps(
    mode: str, replay: Replay, have: int, answers: list[tuple[str, int, int, int, int]]
) -> None:
    node = TopicsNode()
    publisher, _ = node.serve("b", reliability=mode, keep=10)
    for number in (1, 2, 3, 4, 5):
        node.now = float(number)
        node.put(publisher, number)
    if mode == "ack":
        node.receive("b", Ack(*publisher.key, LIFE, 5))
    done = node.receive("b", Recall(*publisher.key, 77, have, 4, replay.kind, replay.amount))
    assert recalled(done) == answers
    assert node.counts.recalls == 1


def test_what_is_not_kept_any_more_is_said_by_the_start() -> None:
    node = TopicsNode()
    publisher, _ = node.serve("b", reliability="ordered", keep=2)
    node.put(publisher, 1, 2, 3, 4)
    request = Recall(*publisher.key, 77, 1, 4, REPLAY_ALL, 0.0)
    assert recalled(node.receive("b", request)) == [("b", 3, 4, 3, 1), ("b", 3, 4, 4, 1)]


def test_a_part_is_a_window_at_most() -> None:
    node = TopicsNode()
    publisher, _ = node.serve("b", reliability="nack", window_bytes=2048)
    for _ in range(3):
        node.put(publisher, b"x" * 1000, size=1008)
    request = Recall(*publisher.key, 77, 0, 3, REPLAY_ALL, 0.0)
    assert recalled(node.receive("b", request)) == [("b", 1, 2, 1, 1), ("b", 1, 2, 2, 1)]
    rest = Recall(*publisher.key, 77, 2, 3, REPLAY_ALL, 0.0)
    assert recalled(node.receive("b", rest)) == [("b", 3, 3, 3, 1)]


def test_requests_for_what_was_never_sent_are_counted_and_dropped() -> None:
    node = TopicsNode()
    publisher, _ = node.serve("b", reliability="nack")
    node.put(publisher, 1)
    for have, upto in ((0, 2), (2, 1), (0, 1 << 61)):
        request = Recall(*publisher.key, 77, have, upto, REPLAY_ALL, 0.0)
        assert node.receive("b", request) == []
    assert node.counts.stray == 3


def test_who_may_not_subscribe_may_not_recall() -> None:
    def may(name: str, what: str, _topic: str) -> bool:
        return what == "publish" or name != "b"

    node = TopicsNode("b", may=may)
    publisher = node.publisher(reliability="nack")
    node.put(publisher, 1)
    request = Recall(*publisher.key, 77, 0, 1, REPLAY_ALL, 0.0)
    assert node.refusal("b", request) == "may-not-subscribe"


# -- at a gateway ----------------------------------------------------------------------------------


def test_an_ordered_relay_fetches_what_is_kept_before_it_answers() -> None:
    node = TopicsNode("b")
    node.book.gateway = "me"
    node.says("b", TOPIC)
    node.book.remote = {"gate": RemoteGateway("far", publishes=True, subscribes=False)}
    kept = Offer("pub", STREAM, TOPIC, Mode.ORDERED, 5, 4, 4096, 3, relay=True)
    ((_, accept),) = sends(node.receive("gate", kept), Accept)
    assert (accept.replay, accept.relay) == (0, True)  # type: ignore[attr-defined]
    done = node.receive("gate", Begin("pub", STREAM, 5, relay=True))
    (request,) = sends(done, Recall)
    serial = serial_of(node)
    assert request == Send(
        "gate", Recall("pub", STREAM, serial, 0, 4, REPLAY_LAST, 3.0, relay=True)
    )
    asked = Recall("pub", STREAM, 77, 0, 4, REPLAY_ALL, 0.0)
    assert sends(node.receive("b", asked)) == [], "it does not know yet"
    node.receive("gate", answer(serial, 2, b"2", b"3", b"4", relay=True))
    assert recalled(node.receive("b", asked)) == [("b", 2, 4, 2, 3)]


def test_a_part_has_no_more_chunks_however_small_they_are() -> None:
    """A megabyte of chunks with one byte each would be half a million messages at once."""
    node = TopicsNode()
    out, _ = node.serve("b", keep=10_000, window_bytes=64 * 1024)
    for _ in range(1000):
        node.put(out, b"")
    node.receive("b", Ack(*out.key, LIFE, 1000))
    part = sends(node.receive("b", Recall(*out.key, 5, 0, 1000, REPLAY_ALL, 0.0)), Recalled)
    assert 200 < len(part) < 260
    assert {one.msg.until for one in part} == {len(part)}  # type: ignore[attr-defined]
