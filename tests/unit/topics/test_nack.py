"""Nack mode: who is asked for what is missing, and who helps out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from overlay.ids import vid_of, vid_to_wire
from protocols.topics import Gap, PublisherAppeared, PublisherGone
from protocols.topics.messages import LAST, Accept, Begin, Data, Nack, Offer, Repair, TreeData
from protocols.topics.modes import Mode
from tests.recording import Recorded, Send
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    events,
    pack,
    read,
    repair,
    sends,
)


def chunk(first: int, *items: bytes, oldest: int = 1, flags: int = 0) -> Data:
    return data(first, *items, mode=Mode.NACK, oldest=oldest, flags=flags)


def tree_chunk(first: int, *items: bytes, hops: int) -> TreeData:
    upto = vid_to_wire(vid_of("me") + 1)  # nobody else is behind this node
    return TreeData(
        "pub", STREAM, TOPIC, Mode.NACK, first, len(items), 1, 0.0, 0,
        vid_to_wire(vid_of("me")), upto, hops, "pub", pack(*items),
    )  # fmt: skip


def receiving(**settings: Any) -> TopicsNode:
    """A node that takes part from message 1 on; "mate" does so, too."""
    node = TopicsNode("pub", **settings)
    node.says("mate", TOPIC)
    node.subscribe()
    node.receive("pub", chunk(1))
    node.receive("pub", Begin("pub", STREAM, 1))
    node.pass_time(0.1)
    return node


def nacks(done: list[Recorded]) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    return [(one.to, one.msg.gaps) for one in sends(done, Nack)]  # type: ignore[attr-defined]


# -- the publisher ---------------------------------------------------------------------------------


def test_nobody_is_offered_anything_and_everybody_interested_is_sent_to() -> None:
    node = TopicsNode()
    out, done = node.serve("b", reliability="nack")
    assert sends(done, Offer) == []
    assert out.relations == {}
    beat = Data(*out.key, TOPIC, Mode.NACK, 1, 0, 1, 0.0, 0, b"")
    assert sends(done) == [Send("b", beat)], "it learns of the publisher"
    sent = Data(*out.key, TOPIC, Mode.NACK, 1, 1, 1, 0.0, 0, pack(b"1"))
    assert sends(node.put(out, b"1")) == [Send("b", sent)]


def test_an_accept_is_answered_with_where_its_interest_began() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability="nack")
    node.put(out, b"1", b"2")
    node.says("c", TOPIC)
    node.put(out, b"3")
    assert node.receive("b", Accept(*out.key, LIFE, 0)) == [Send("b", Begin(*out.key, 1))]
    assert node.receive("c", Accept(*out.key, LIFE, 0)) == [Send("c", Begin(*out.key, 3))]
    replay = Accept(*out.key, LIFE, 0, 1, 1.0)  # the last one before its interest began
    assert node.receive("c", replay) == [Send("c", Begin(*out.key, 2))]


def test_a_nack_gets_what_is_there_and_hears_what_is_not() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability="nack", history_messages=2)
    node.put(out, b"1", b"2", b"3")
    node.now = 1.0
    done = node.receive("b", Nack(*out.key, ((1, 2),)))
    progress, again = (one.msg for one in sends(done))
    assert progress == Data(*out.key, TOPIC, Mode.NACK, 4, 0, 2, 0.0, 0, b"")
    assert isinstance(again, Data)
    assert (again.first, again.oldest) == (2, 2)


def test_an_idle_stream_tells_how_far_it_is_less_and_less_often() -> None:
    node = TopicsNode(heartbeat=1.0)
    out, _ = node.serve("b", reliability="nack")
    node.put(out, b"1")
    at: list[float] = []
    for _ in range(400):
        at += [round(node.now, 2) for _ in sends(node.pass_time(0.01), Data)]
    gaps = [round(late - early, 1) for early, late in pairwise(at)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 1.0


# -- the receiver ----------------------------------------------------------------------------------


def test_the_first_word_is_answered_by_accept_and_what_came_with_it_counts() -> None:
    node = TopicsNode("pub")
    one = node.subscribe()
    (accept,) = sends(node.receive("pub", chunk(4, b"4")))
    (stream,) = node.topics.streams
    assert accept == Send("pub", Accept("pub", STREAM, stream.receiver, 0))
    assert not one.queue
    done = node.receive("pub", Begin("pub", STREAM, 3))
    assert events(done) == [PublisherAppeared(TOPIC, "pub", STREAM)]
    node.receive("pub", chunk(3, b"3"))
    assert read(one) == [b"3", b"4"]


def test_accept_is_repeated_and_then_it_begins_with_what_is_here() -> None:
    node = TopicsNode("pub", nack_tries=3, nack_again=0.06)
    one = node.subscribe()
    node.receive("pub", chunk(4, b"4"))
    done = node.pass_time(1.0)
    assert len(sends(done, Accept)) == 2
    assert read(one) == [b"4"]


def test_a_gap_is_asked_for_at_the_neighbour_the_source_and_anybody() -> None:
    node = receiving(nack_delay=0.01, nack_again=0.06)
    node.receive("pub", chunk(3, b"3"))
    assert nacks(node.pass_time(0.004)) == [], "it may only be late"
    asked = nacks(node.pass_time(0.06))
    assert asked == [("pub", ((1, 2),))] * 4, "soon again, since a request may be lost"
    assert nacks(node.pass_time(0.4)) == [
        ("pub", ((1, 2),)),  # the source
        ("mate", ((1, 2),)),
        ("pub", ((1, 2),)),  # who handed the last one on
    ]


def test_in_a_tree_a_gap_is_asked_for_at_the_neighbour_the_source_and_anybody() -> None:
    node = receiving(nack_delay=0.01, nack_again=0.06)
    node.receive("mate", tree_chunk(3, b"3", hops=2))
    assert nacks(node.pass_time(0.4)) == [
        ("mate", ((1, 2),)),  # who handed the last one on
        ("pub", ((1, 2),)),  # the source
        ("mate", ((1, 2),)),  # anybody who shares the topic
        ("mate", ((1, 2),)),
    ]


def test_a_new_gap_is_asked_for_though_others_are_under_way() -> None:
    node = receiving(nack_delay=0.01, nack_again=0.06)
    node.receive("pub", chunk(2, b"2"))
    assert nacks(node.pass_time(0.011)) == [("pub", ((1, 1),))]
    node.receive("pub", chunk(4, b"4"))
    asked = nacks(node.pass_time(0.011))
    assert ("pub", ((3, 3),)) in asked or ("pub", ((1, 1), (3, 3))) in asked


def test_who_asked_tells_when_it_has_caught_up() -> None:
    node = receiving(nack_delay=0.01)
    node.receive("pub", chunk(2, b"2"))
    assert nacks(node.pass_time(0.011)) == [("pub", ((1, 1),))]
    assert nacks(node.receive("pub", chunk(1, b"1"))) == [("pub", ())]
    assert nacks(node.receive("pub", chunk(3, b"3"))) == []


def test_a_publisher_waits_for_who_is_behind_until_it_has_caught_up() -> None:
    node = TopicsNode()
    out, _ = node.serve("b", reliability="nack", history_messages=8)
    node.put(out, *[b"x"] * 4)
    node.receive("b", Nack(*out.key, ((1, 4),)))
    node.put(out, b"5")
    assert not out.has_room
    node.receive("b", Nack(*out.key, ()))
    node.pass_time(0.002)
    assert out.has_room


def test_a_gap_that_closes_is_asked_for_by_nobody() -> None:
    node = receiving()
    node.receive("pub", chunk(2, b"2"), chunk(1, b"1"))
    assert nacks(node.pass_time(1.0)) == []


def test_a_heartbeat_shows_what_is_missing_at_the_end() -> None:
    node = receiving()
    node.receive("pub", chunk(3))
    assert nacks(node.pass_time(0.007)) == [("pub", ((1, 2),))]


def test_what_is_too_old_is_a_gap_and_so_is_what_nobody_has() -> None:
    node = receiving(nack_tries=3)
    node.receive("pub", chunk(4, b"4", oldest=3))
    assert events(node.pass_time(0.02)) == [Gap(TOPIC, "pub", STREAM, 1, 2, "too old")]
    done = node.pass_time(5.0)
    assert events(done) == [Gap(TOPIC, "pub", STREAM, 3, 3, "nobody has it")]
    assert len(nacks(done)) <= 3


def test_a_receiver_helps_out_with_what_it_has_and_passes_on_what_comes() -> None:
    node = receiving()
    node.receive("pub", chunk(1, b"1"), chunk(2, b"2"))
    help_out = Repair("pub", STREAM, TOPIC, Mode.NACK, 2, 1, 0, 0.0, 0, pack(b"2"))
    assert sends(node.receive("mate", Nack("pub", STREAM, ((2, 4),)))) == [Send("mate", help_out)]
    done = node.receive("pub", chunk(3, b"3"))
    assert [(one.to, one.msg.first) for one in sends(done, Data)] == [("mate", 3)]  # type: ignore[attr-defined]
    assert [one.to for one in sends(node.receive("pub", chunk(4, b"4")), Data)] == ["mate"]
    assert sends(node.receive("pub", chunk(5, b"5"))) == [], "nobody asked for it"
    assert node.counts.repairs == 3


def test_a_repair_by_somebody_else_is_taken_and_says_nothing_of_the_source() -> None:
    node = receiving()
    node.receive("pub", chunk(2, b"2"))
    repair = Repair("pub", STREAM, TOPIC, Mode.NACK, 1, 1, 0, 0.0, 0, pack(b"1"))
    node.receive("mate", repair)
    (stream,) = node.topics.streams
    assert stream.order.expected == 3
    assert stream.source == "pub"


def test_what_helps_out_is_bounded() -> None:
    node = receiving(repair_bytes=1000)
    for number in (1, 2, 3):
        node.receive("pub", chunk(number, b"x" * 400))
    done = node.receive("mate", Nack("pub", STREAM, ((1, 3),)))
    assert [one.msg.first for one in sends(done, Data)] == [2, 3]  # type: ignore[attr-defined]


def test_the_end_comes_when_everything_is_here() -> None:
    node = receiving()
    assert events(node.receive("pub", chunk(2, flags=LAST))) == []
    assert events(node.receive("pub", chunk(1, b"1"))) == [PublisherGone(TOPIC, "pub", STREAM)]
    assert node.topics.streams == []
    node.receive("pub", chunk(1, b"1"))
    assert node.topics.streams == [], "a late copy is no new stream"


def test_a_stream_that_closed_before_its_member_was_known_is_not_lost() -> None:
    node = TopicsNode()
    one = node.subscribe()
    node.receive("pub", chunk(1, b"1"))
    assert node.counts.stray == 1, "of a stranger"
    node.says("pub")
    (accept,) = sends(node.receive("pub", chunk(2, flags=LAST)))
    assert isinstance(accept.msg, Accept)
    node.receive("pub", Begin("pub", STREAM, 1))
    node.receive("pub", chunk(2, flags=LAST))
    assert ("pub", ((1, 1),)) in nacks(node.pass_time(0.05))
    done = node.receive("pub", repair(1, b"1", mode=Mode.NACK))
    assert read(one) == [b"1"]
    assert PublisherGone(TOPIC, "pub", STREAM) in events(done)
