"""What a sender keeps: chunks in order, holes, and the bytes between two of them."""

from __future__ import annotations

import pytest

from protocols.topics.history import COMPACT_AT, History


def history(*counts: int, newest: int = 0) -> History:
    """Chunks of so many messages; each message is a byte."""
    made = History(newest)
    for count in counts:
        made.add(made.newest + 1, count, float(made.newest), b"x" * count)
    return made


def firsts(made: History, first: int, last: int) -> list[int]:
    return [chunk.first for chunk in made.overlapping(first, last)]


def test_an_empty_one_knows_what_comes_next() -> None:
    made = History(newest=7)
    assert (made.newest, made.oldest, made.messages, made.bytes, len(made)) == (7, 8, 0, 0, 0)
    assert made.first is None
    assert made.at(1) is None
    assert firsts(made, 1, 100) == []
    assert made.offset(7) == 0


def test_chunks_are_counted_as_they_come_and_go() -> None:
    made = history(3, 2, 4)
    assert [(chunk.first, chunk.last, chunk.end) for chunk in made] == [
        (1, 3, 3),
        (4, 5, 5),
        (6, 9, 9),
    ]
    assert (made.newest, made.oldest, made.messages, made.bytes) == (9, 1, 9, 9)
    assert made.drop_oldest().first == 1
    assert (made.newest, made.oldest, made.messages, made.bytes) == (9, 4, 6, 6)
    made.drop_oldest()
    made.drop_oldest()
    assert (made.newest, made.oldest, made.messages, made.bytes) == (9, 10, 0, 0)
    assert made.end == 9, "differences still count"


def test_a_message_is_found_in_its_chunk() -> None:
    made = history(3, 2, 4)
    found = [made.at(number) for number in range(11)]
    assert [chunk.first if chunk else None for chunk in found] == [
        1, 1, 1, 1, 4, 4, 6, 6, 6, 6, None,
    ]  # fmt: skip
    made.drop_oldest()
    late = made.at(1)
    assert late is not None
    assert late.first == 4, "the next one that is there"


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (1, 1, [1]),
        (3, 4, [1, 4]),
        (5, 6, [4, 6]),
        (1, 2**62, [1, 4, 6]),
        (10, 2**62, []),
        (2**62, 2**62, []),
    ],
)
def test_whole_chunks_overlap_a_range(first: int, last: int, found: list[int]) -> None:
    assert firsts(history(3, 2, 4), first, last) == found


def test_holes_are_stepped_over() -> None:
    made = history(3)
    made.skip_to(10)
    assert (made.newest, made.oldest) == (9, 1)
    made.add(10, 2, 0.0, b"xx")
    assert firsts(made, 4, 9) == []
    assert firsts(made, 3, 10) == [1, 10]
    after = made.at(5)
    assert after is not None
    assert after.first == 10
    assert [made.offset(number) for number in (0, 3, 5, 9, 11)] == [0, 3, 3, 3, 5]
    made.drop_oldest()
    assert made.oldest == 10


def test_an_empty_one_skips_and_does_not_go_back() -> None:
    made = History()
    made.skip_to(5)
    assert (made.newest, made.oldest) == (4, 5)
    made.skip_to(3)
    assert (made.newest, made.oldest) == (4, 5)


def test_an_offset_is_that_of_whole_chunks() -> None:
    made = history(3, 2)
    assert [made.offset(number) for number in range(6)] == [0, 0, 0, 3, 3, 5]
    made.drop_oldest()
    assert [made.offset(number) for number in (0, 3, 5)] == [3, 3, 5]


def test_trimmed_places_are_given_back() -> None:
    made = history(*[1] * (COMPACT_AT * 2))
    for number in range(1, COMPACT_AT * 2):
        assert made.drop_oldest().first == number
        assert made.oldest == number + 1
        assert len(made) == COMPACT_AT * 2 - number
        assert len(made._chunks) <= COMPACT_AT * 2
    assert len(made._chunks) <= COMPACT_AT
