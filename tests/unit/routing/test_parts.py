"""The small parts: what is remembered, sums, and settings."""

from __future__ import annotations

from math import inf, nan

import pytest

from overlay.errors import ConfigError
from protocols.routing import Aggregate, RoutingSettings
from protocols.routing.aggregates import LARGEST, NOTHING, SKETCH_VALUES, aggregate_of, is_sound
from protocols.routing.arcs import Arc, everybody_but, members_in, split
from protocols.routing.recent import Recent
from protocols.routing.steering import next_hop
from tests.unit.routing.machines import CLOCKWISE, FixedLinks
from tests.unit.topology.fixed_view import Roster


def test_recent_things_are_remembered_for_their_time() -> None:
    recent: Recent[str, int] = Recent(100, 10.0)
    recent.put("a", 1, 0.0)
    recent.put("b", 2, 9.0)
    recent.put("c", 3, 15.0)  # a generation later
    assert [recent.get(key) for key in "abc"] == [1, 2, 3]
    recent.put("d", 4, 26.0)
    assert [recent.get(key) for key in "abcd"] == [None, None, 3, 4]
    assert recent.forgotten == 0


def test_recent_things_are_bounded_and_the_cost_is_counted() -> None:
    recent: Recent[int, bool] = Recent(100, 10.0)
    for key in range(1000):
        recent.put(key, True, 0.0)
        assert len(recent) <= 100
        assert all(recent.get(past) for past in range(max(0, key - 49), key + 1))
    assert recent.forgotten == 900


def test_a_clock_set_back_does_not_make_it_forget() -> None:
    recent: Recent[str, int] = Recent(100, 10.0)
    recent.put("a", 1, 5000.0)
    recent.put("b", 2, 1.0)
    recent.put("c", 3, 9.0)
    assert [recent.get(key) for key in "abc"] == [1, 2, 3]


def test_values_are_summed_up_and_other_things_counted() -> None:
    total = NOTHING
    for value in (3, 4.5, True, "text", b"bytes", None, nan, inf, 10**400):
        total = total.merged(aggregate_of(value))
    assert (total.count, total.numbers, total.total) == (8, 3, 8.5)
    assert (total.least, total.greatest, total.mean) == (1.0, 4.5, 8.5 / 3)
    assert total.distinct == 8
    assert is_sound(total)
    assert NOTHING.mean is None


def test_distinct_values_are_estimated() -> None:
    total = NOTHING
    for value in range(10_000):
        total = total.merged(aggregate_of(value % 5000))
    assert 3500 < total.distinct < 6500  # three standard errors
    assert len(total.sketch) == SKETCH_VALUES * 8


@pytest.mark.parametrize(
    "lie",
    [
        Aggregate(count=1, numbers=2, total=1, least=1, greatest=1),
        Aggregate(count=1, numbers=1, total=nan, least=1, greatest=1),
        Aggregate(count=1, numbers=1, total=inf, least=1, greatest=1),
        Aggregate(count=1, numbers=1, total=LARGEST * 2, least=1, greatest=1),
        Aggregate(count=1, numbers=1, total=1, least=2, greatest=1),
        Aggregate(count=1, numbers=1, total=1, least=nan, greatest=1),
        Aggregate(count=1, numbers=1, total=1, least=-inf, greatest=1),
        Aggregate(total=1.0),
        Aggregate(count=1, sketch=b"1234567"),
        Aggregate(count=1, sketch=b"aaaaaaaabbbbbbbb"),  # more values than members
        Aggregate(count=2, sketch=b"bbbbbbbbaaaaaaaa"),
        Aggregate(count=2, sketch=b"aaaaaaaaaaaaaaaa"),
    ],
)
def test_impossible_aggregates_are_recognised(lie: Aggregate) -> None:
    assert not is_sound(lie)


def test_an_arc_holds_its_start_and_not_its_end() -> None:
    arc = Arc(10, 20)
    assert [arc.holds(place) for place in (9, 10, 19, 20)] == [False, True, True, False]
    over_zero = Arc(2**128 - 5, 5)
    assert [over_zero.holds(place) for place in (2**128 - 5, 0, 4, 5)] == [True, True, True, False]
    assert not Arc(7, 7).holds(7)


def test_an_arc_without_a_place_is_its_two_sides() -> None:
    assert Arc(10, 20).without(15) == (Arc(10, 15), Arc(16, 20))
    assert Arc(10, 20).without(10) == (Arc(11, 20),)
    assert Arc(10, 20).without(19) == (Arc(10, 19),)
    assert Arc(10, 20).without(20) == (Arc(10, 20),)
    assert Arc(10, 11).without(10) == ()


def test_nobody_is_in_an_empty_ring_or_arc() -> None:
    ring = Roster([]).ring
    assert members_in(Arc(1, 2), ring) == []
    assert split(Arc(1, 2), ring, ()) == []
    assert members_in(Arc(3, 3), Roster(["a"]).ring) == []


def test_everybody_but_me_is_clockwise_from_me() -> None:
    ring = Roster(CLOCKWISE).ring
    for at, name in enumerate(CLOCKWISE):
        others = [*CLOCKWISE[at + 1 :], *CLOCKWISE[:at]]
        assert members_in(everybody_but(name), ring) == others


def test_without_links_the_ring_is_walked_by_the_view() -> None:
    ring = Roster(CLOCKWISE).ring
    links = FixedLinks([])
    hop = next_hop(CLOCKWISE[0], CLOCKWISE[4], links, ring)
    assert hop in (CLOCKWISE[1], CLOCKWISE[7])
    assert next_hop(CLOCKWISE[0], CLOCKWISE[1], links, ring) == CLOCKWISE[1]


def test_a_message_is_remembered_as_long_as_it_may_be_repeated() -> None:
    with pytest.raises(ConfigError, match=r"remember_for = 10\.0 s: at least 20\.0 s"):
        RoutingSettings(remember_for=10.0)
