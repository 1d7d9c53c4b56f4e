"""History and Order against lists of numbers, for any chunks in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists, permutations, sets, tuples

from protocols.topics.history import Chunk, History
from protocols.topics.messages import MOST_GAPS
from protocols.topics.ordering import Order, weight

STEPS = lists(tuples(integers(0, 3), integers(1, 4)), min_size=1, max_size=30)
"""Of each chunk: how many numbers are left out before it, and how many it has."""


def chunks_of(steps: list[tuple[int, int]]) -> list[Chunk]:
    found, after = [], 0
    for hole, count in steps:
        found.append(Chunk(after + hole + 1, count, 0.0, b"x" * count))
        after = found[-1].last
    return found


@given(STEPS, integers(0, 30), integers(0, 130), integers(0, 20))
def test_history_finds_what_a_list_finds(
    steps: list[tuple[int, int]], dropped: int, at: int, more: int
) -> None:
    chunks, history = chunks_of(steps), History()
    for one in chunks:
        history.skip_to(one.first)
        history.add(one.first, one.count, one.sent_at, one.payload)
    total = sum(one.count for one in chunks)
    for _ in range(min(dropped, len(chunks))):
        assert history.drop_oldest().first == chunks.pop(0).first
    assert [one.first for one in history] == [one.first for one in chunks]
    assert history.messages == history.bytes == sum(one.count for one in chunks)
    assert history.oldest == (chunks[0].first if chunks else history.newest + 1)
    found = history.at(at)
    expected = next((one.first for one in chunks if one.last >= at), None)
    assert (found.first if found else None) == expected
    overlapping = [one.first for one in history.overlapping(at, at + more)]
    assert overlapping == [one.first for one in chunks if one.last >= at and one.first <= at + more]
    after = sum(one.count for one in chunks if one.last > at)
    assert history.offset(at) == total - after


def missing(held: set[int], expected: int, newest: int) -> list[tuple[int, int]]:
    """Ranges of what is not held, number by number."""
    found: list[tuple[int, int]] = []
    for number in range(expected, newest + 1):
        if number in held:
            continue
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


@given(STEPS.flatmap(lambda steps: permutations(chunks_of(steps))), integers(1, 20), integers(0, 9))
def test_gaps_are_what_is_missing(chunks: list[Chunk], expected: int, more: int) -> None:
    order = Order(1 << 20)
    order.expected = expected
    kept = [one for one in chunks if one.last >= expected]
    for one in kept:
        assert order.keep(one)
    order.newest = max([expected - 1, *(one.last for one in kept)]) + more
    held = {number for one in kept for number in range(one.first, one.last + 1)}
    gaps = missing(held, expected, order.newest)
    assert list(order.gaps()) == gaps[:MOST_GAPS]
    assert order.lacks() == (bool(gaps) and gaps[0][0] == expected)
    if order.lacks() and kept:
        assert order.next_after_gap() == min(one.first for one in kept)
    assert order.check() == ""


@given(
    STEPS.flatmap(lambda steps: permutations(chunks_of(steps))),
    integers(20, 300),
    sets(integers(0, 29)),
)
def test_the_bound_holds_and_what_leaves_makes_room(
    chunks: list[Chunk], capacity: int, leaving: set[int]
) -> None:
    order = Order(capacity)
    order.expected = 1
    kept: list[Chunk] = []
    for place, one in enumerate(chunks):
        if order.keep(one):
            kept.append(one)
        elif kept:
            assert order.bytes + weight(one) > capacity
        order.newest = max(order.newest, one.last)
        assert order.bytes <= capacity or len(kept) == 1
        if place in leaving and (first := order.first()) is not None:
            assert first == min(kept, key=lambda held: held.first)
            order.drop(first)
            kept.remove(first)
        assert order.bytes == sum(map(weight, kept))
        assert order.check() == ""
