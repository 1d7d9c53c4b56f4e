"""What a sender does with acknowledgements, with silence, and with windows."""

from __future__ import annotations

from protocols.topics import Publisher, SubscriberFailed, SubscriberLeft
from protocols.topics.messages import ASK, GONE, Ack, Begin, Data, Failed, Leave
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat
from tests.recording import Recorded, Send
from tests.unit.topics.node import LIFE, TOPIC, TopicsNode, events, sends


def ack(out: Publisher, upto: int, *gaps: tuple[int, int]) -> Ack:
    return Ack(*out.key, LIFE, upto, gaps)


def firsts(done: list[Recorded], to: str) -> list[int]:
    """Chunks that were sent to one."""
    found = [one.msg for one in sends(done, Data) if one.to == to]
    return [msg.first for msg in found if isinstance(msg, Data) and msg.count]


def asked(done: list[Recorded], out: Publisher) -> list[str]:
    newest, oldest = out.history.newest, out.history.oldest
    ask = Data(*out.key, TOPIC, Mode.ACK, newest + 1, 0, oldest, 0.0, ASK, b"")
    return [one.to for one in sends(done) if one.msg == ask]


def test_the_history_is_trimmed_to_what_all_have() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", "c")
    node.put(out, b"1", b"2", b"3")
    node.receive("b", ack(out, 3))
    assert (out.floor, out.history.oldest) == (0, 1)
    node.receive("c", ack(out, 2))
    assert (out.floor, out.history.oldest) == (2, 3)
    node.receive("c", ack(out, 1))
    assert out.floor == 2, "an old ack takes nothing back"
    node.receive("c", ack(out, 3))
    assert out.history.messages == 0


def test_a_gap_is_filled_and_not_twice_at_once() -> None:
    node = TopicsNode(resend_after=0.03)
    out, _ = node.serve("b")
    node.put(out, *[b"x"] * 6)
    node.now = 0.01
    assert firsts(node.receive("b", ack(out, 1, (2, 3), (5, 5))), "b") == [2, 3, 5]
    node.now = 0.02
    assert firsts(node.receive("b", ack(out, 2, (3, 3), (5, 5))), "b") == []
    assert node.counts.suppressed == 2
    node.now = 0.05
    assert firsts(node.receive("b", ack(out, 2, (3, 3), (5, 5))), "b") == [3, 5]
    assert node.counts.resent == 5


def test_a_window_limits_what_is_under_way() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", "c", window_bytes=1024)
    done: list[Recorded] = []
    for _ in range(5):
        done += node.put(out, b"x" * 400, size=408)
    assert firsts(done, "b") == firsts(done, "c") == [1, 2]
    assert firsts(node.receive("b", ack(out, 1)), "b") == [3]
    assert firsts(node.receive("b", ack(out, 3)), "b") == [4, 5]
    assert firsts(node.pass_time(0.1), "c") == [], "others wait for nobody but themselves"


def test_a_chunk_larger_than_the_window_goes_alone() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", window_bytes=1024)
    assert firsts(node.put(out, b"x" * 5000, size=5008), "b") == [1]
    assert firsts(node.put(out, b"2"), "b") == []
    assert firsts(node.receive("b", ack(out, 1)), "b") == [2]


def test_gaps_are_filled_a_window_at_a_time() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", window_bytes=1024)
    for _ in range(2):
        node.put(out, b"x" * 200, size=208)
    node.put(out, b"x" * 50, size=58)
    node.now = 1.0
    assert firsts(node.receive("b", ack(out, 0, (1, 3))), "b") == [1, 2, 3]


def test_who_is_silent_is_asked_less_and_less_often() -> None:
    node = TopicsNode(ask_after=0.1, heartbeat=0.5, fail_after=3.0)
    out, _ = node.serve("b")
    node.put(out, b"1")
    at: list[float] = []
    for _ in range(250):
        at += [round(node.now, 2) for _ in asked(node.pass_time(0.01), out)]
    assert [round(late, 1) for late in at] == [0.1, 0.3, 0.7, 1.2, 1.7, 2.2]
    assert node.counts.asked == len(at)


def test_who_has_everything_is_asked_at_heartbeats_only() -> None:
    node = TopicsNode(heartbeat=2.0)
    out, _ = node.serve("b")
    node.put(out, b"1")
    node.receive("b", ack(out, 1))
    assert asked(node.pass_time(1.9), out) == []
    assert asked(node.pass_time(0.2), out) == ["b"]


def test_who_is_silent_for_too_long_failed_and_is_told() -> None:
    node = TopicsNode(fail_after=3.0)
    out, _ = node.serve("b", "c")
    node.put(out, b"1")
    node.receive("c", ack(out, 1))
    while node.now < 2.8:
        assert events(node.pass_time(0.2)) == []
        node.receive("c", ack(out, 1))
    done = node.pass_time(0.3)
    assert events(done) == [SubscriberFailed(TOPIC, "b", out.key[1], "silent")]
    assert Send("b", Failed(*out.key, "silent")) in sends(done)
    assert out.history.messages == 0, "nobody waits for it any more"
    assert node.receive("b", ack(out, 1)) == [Send("b", Failed(*out.key, "silent"))]
    assert out.receivers == ("c",)


def test_a_member_that_failed_has_a_grace() -> None:
    node = TopicsNode(lost_grace=1.0)
    out, _ = node.serve("b")
    node.put(out, b"1")
    assert events(node.fails("b")) == []
    assert events(node.pass_time(0.9)) == []
    assert events(node.pass_time(0.2)) == [SubscriberFailed(TOPIC, "b", out.key[1], "silent")]


def test_a_member_that_comes_back_in_time_goes_on() -> None:
    node = TopicsNode(lost_grace=1.0)
    out, _ = node.serve("b")
    node.put(out, b"1")
    node.fails("b")
    node.pass_time(0.5)
    node.says("b", TOPIC)
    assert events(node.pass_time(1.0)) == []
    node.receive("b", ack(out, 1))
    assert out.floor == 1


def test_a_member_that_left_is_waited_for_no_more() -> None:
    node = TopicsNode()
    out, _ = node.serve("b")
    node.put(out, b"1")
    assert events(node.leaves("b")) == [SubscriberLeft(TOPIC, "b", out.key[1])]
    assert out.history.messages == 0


def test_a_receiver_that_leaves_is_waited_for_no_more() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", "c")
    node.put(out, b"1")
    node.receive("c", ack(out, 1))
    done = node.receive("b", Leave(*out.key))
    assert events(done) == [SubscriberLeft(TOPIC, "b", out.key[1])]
    assert out.history.messages == 0
    assert list(out.relations) == [Seat("c")]
    assert node.receive("b", Leave(*out.key)) == []


def test_acks_of_streams_that_are_gone_are_answered() -> None:
    node = TopicsNode("b")
    assert node.receive("b", Ack("me", 5, LIFE, 1)) == [Send("b", Failed("me", 5, GONE))]
    out = node.publisher()
    node.put(out, b"1")
    assert node.receive("b", ack(out, 1)) == [Send("b", Failed(*out.key, "unknown"))]


def test_what_was_dropped_for_the_slow_is_no_reason_to_wait() -> None:
    """Its acks may be older than what was dropped."""
    node = TopicsNode()
    out, _ = node.serve("b", slow="drop-oldest", history_messages=2)
    node.put(out, b"1", b"2", b"3", b"4")
    assert out.floor == 2
    node.now = 1.0
    done = node.receive("b", ack(out, 0, (1, 4)))
    assert firsts(done, "b") == [3, 4]
    assert sends(done, Begin) == [Send("b", Begin(*out.key, 3))]
    assert all(one.msg.oldest == 3 for one in sends(done, Data))  # type: ignore[attr-defined]
