"""What came too early waits in order, within a bound."""

from __future__ import annotations

from protocols.topics.history import Chunk
from protocols.topics.messages import MOST_GAPS
from protocols.topics.ordering import MESSAGE_BYTES, Order, weight


def chunk(first: int, count: int = 1, size: int = 4) -> Chunk:
    return Chunk(first, count, 0.0, b"x" * size)


def order(*early: Chunk, expected: int = 1, newest: int = 0, capacity: int = 10_000) -> Order:
    made = Order(capacity)
    made.expected = expected
    made.newest = max([newest, expected - 1, *(one.last for one in early)])
    for one in early:
        assert made.keep(one)
    return made


def test_what_is_in_order_lacks_nothing() -> None:
    made = order(expected=5)
    assert not made.lacks()
    assert made.gaps() == ()
    assert made.first() is None
    assert made.next_after_gap() == 5
    assert made.check() == ""


def test_what_is_only_heard_of_is_missing() -> None:
    made = order(expected=5, newest=9)
    assert made.lacks()
    assert made.gaps() == ((5, 9),)
    assert made.next_after_gap() == 10


def test_gaps_are_between_what_waits() -> None:
    made = order(chunk(7, 2), chunk(4), chunk(12), expected=2, newest=15)
    assert made.lacks()
    assert made.gaps() == ((2, 3), (5, 6), (9, 11), (13, 15))
    assert made.next_after_gap() == 4
    assert made.first() == chunk(4)


def test_what_is_next_and_waits_is_not_missing() -> None:
    """Nobody reads it: what lies behind is asked for later."""
    made = order(chunk(2, 3), chunk(9), expected=2)
    assert not made.lacks()
    assert made.gaps() == ((5, 8),)


def test_chunks_that_overlap_leave_no_gap() -> None:
    made = order(chunk(3, 5), chunk(4, 2), chunk(7, 3), expected=2)
    assert made.gaps() == ((2, 2),)
    made.expected = 5
    assert made.gaps() == ()


def test_no_more_gaps_are_named_than_a_message_holds() -> None:
    made = order(*[chunk(3 * place) for place in range(1, 200)], expected=1)
    gaps = made.gaps()
    assert len(gaps) == MOST_GAPS
    assert gaps[:2] == ((1, 2), (4, 5))


def test_a_chunk_waits_once() -> None:
    made = order(chunk(3), expected=1)
    assert not made.keep(chunk(3))
    assert made.bytes == weight(chunk(3)) == 4 + MESSAGE_BYTES
    made.drop(chunk(3))
    assert made.bytes == 0
    assert made.keep(chunk(3))


def test_the_bound_counts_messages_and_lets_one_in() -> None:
    made = order(capacity=100, expected=1)
    assert made.keep(chunk(3, size=1000)), "the first always finds room"
    assert not made.keep(chunk(5))
    made = order(capacity=2 * (4 + MESSAGE_BYTES), expected=1)
    assert made.keep(chunk(3))
    assert made.keep(chunk(5))
    assert not made.keep(chunk(7))
    assert made.check() == ""


def test_wrong_accounts_are_noticed() -> None:
    made = order(chunk(3))
    made.bytes += 1
    assert "bytes wait" in made.check()
    made = order(expected=4)
    made.newest = 2
    assert made.check() == "handed over 3 of 2"
