"""Two ends agree on a link: each message has exactly these effects."""

from __future__ import annotations

import itertools

import pytest

from protocols.topology import (
    Kind,
    LinkAccept,
    LinkCheck,
    LinkDropped,
    LinkRefused,
    LinkRequest,
    NeighbourAdded,
    NeighbourRemoved,
    TopologySettings,
)
from protocols.topology.machine import CHECK, REVIEW
from tests.recording import Emit, Recorded, Send, SetTimer
from tests.unit.topology.fixed_view import ZONE
from tests.unit.topology.machines import CLOCKWISE, SPARSE, Bench

ME, NEXT, FAR, BEFORE = CLOCKWISE[0], CLOCKWISE[1], CLOCKWISE[4], CLOCKWISE[-1]
RING, RANDOM = int(Kind.RING), int(Kind.RANDOM)


def added(peer: str, kinds: Kind) -> Recorded:
    return Emit(NeighbourAdded(ZONE, peer, kinds))


def removed(peer: str, kinds: Kind, reason: str) -> Recorded:
    return Emit(NeighbourRemoved(ZONE, peer, kinds, reason))


def linked() -> Bench:
    """A member whose ring links are up."""
    bench = Bench()
    bench.start()
    bench.review(0.1)
    for peer in (NEXT, BEFORE):
        bench.hear(peer, LinkAccept(RING), 0.2)
    bench.review(0.4)  # nothing is asked any more
    return bench


def test_it_starts_with_a_review_and_a_check_at_a_random_moment() -> None:
    bench = Bench()
    check, review = bench.start(5.0)
    assert review == SetTimer(REVIEW, 5.0 + SPARSE.review_delay)
    assert isinstance(check, SetTimer)
    assert check.key == CHECK
    assert 5.0 <= check.at <= 5.0 + SPARSE.check_period


def test_a_review_asks_the_nearest_on_either_side() -> None:
    bench = Bench()
    bench.start()
    assert bench.review(0.1) == [Send(NEXT, LinkRequest(RING)), Send(BEFORE, LinkRequest(RING))]
    assert bench.topology.neighbours() == ()
    assert bench.effects.timers[REVIEW] == 0.1 + SPARSE.request_timeout


def test_an_accepted_request_is_a_link_and_the_other_end_is_told() -> None:
    bench = Bench()
    bench.start()
    bench.review(0.1)
    assert bench.hear(NEXT, LinkAccept(RING), 0.2) == [
        added(NEXT, Kind.RING),
        Send(NEXT, LinkCheck(RING)),
    ]
    assert bench.topology.is_neighbour(NEXT)
    assert bench.hear(NEXT, LinkAccept(RING), 0.3) == []  # a copy


def test_a_request_is_repeated_with_growing_pauses() -> None:
    bench = Bench()
    bench.start()
    bench.review(0.0)
    moments = [bench.effects.timers[REVIEW]]
    for _ in range(6):
        assert Send(NEXT, LinkRequest(RING)) in bench.review(moments[-1])
        moments.append(bench.effects.timers[REVIEW])
    pauses = [round(two - one, 6) for one, two in itertools.pairwise(moments)]
    assert pauses == [0.6, 1.2, 2.4, 2.4, 2.4, 2.4]


def test_a_request_of_another_is_accepted_and_goes_up_with_its_check() -> None:
    bench = linked()
    assert bench.hear(FAR, LinkRequest(RANDOM), 1.0) == [Send(FAR, LinkAccept(0))]
    assert not bench.topology.is_neighbour(FAR)
    assert bench.hear(FAR, LinkCheck(RANDOM), 1.1) == [added(FAR, Kind.RANDOM)]
    assert bench.topology.kinds(FAR) == Kind.RANDOM


def test_a_link_ends_when_neither_end_has_a_reason() -> None:
    bench = linked()
    bench.hear(FAR, LinkRequest(RANDOM), 1.0)
    bench.hear(FAR, LinkCheck(RANDOM), 1.1)
    assert bench.hear(FAR, LinkCheck(0), 2.0) == [
        removed(FAR, Kind.NONE, "unwanted"),
        Send(FAR, LinkDropped()),
    ]


def test_a_member_full_of_links_refuses_and_a_claim_on_the_ring_does_not_help() -> None:
    bench = Bench(TopologySettings(ring_links=1, structured_links=0, random_links=0, max_degree=2))
    bench.start()
    bench.review(0.1)
    for peer in CLOCKWISE[3:5]:
        bench.hear(peer, LinkRequest(RANDOM), 0.2)
    assert bench.hear(CLOCKWISE[5], LinkRequest(RANDOM), 0.2) == [Send(CLOCKWISE[5], LinkRefused())]
    assert bench.hear(CLOCKWISE[5], LinkRequest(RING), 0.2) == [Send(CLOCKWISE[5], LinkRefused())]
    assert bench.hear(NEXT, LinkRequest(RING), 0.2) == [Send(NEXT, LinkAccept(RING))]
    assert bench.topology.counts.refused == 2


def test_a_refusal_makes_it_choose_another_for_a_while() -> None:
    bench = Bench(TopologySettings(ring_links=1, structured_links=0, random_links=1, avoid=10.0))
    bench.start()
    asked = [effect.to for effect in bench.review(0.1) if isinstance(effect, Send)]
    chosen = asked[2]
    assert bench.hear(chosen, LinkRefused(), 0.2) == []
    again = [effect for effect in bench.review(0.3) if isinstance(effect, Send)]
    assert [effect.msg for effect in again] == [LinkRequest(RANDOM)]
    assert again[0].to != chosen


def test_the_ring_is_asked_again_after_a_refusal() -> None:
    bench = Bench()
    bench.start()
    bench.review(0.1)
    assert bench.hear(NEXT, LinkRefused(), 0.2) == []
    assert Send(NEXT, LinkRequest(RING)) in bench.review(0.4)


def test_a_check_of_a_link_that_is_unknown_here_mends_it() -> None:
    bench = linked()
    assert bench.hear(FAR, LinkCheck(RANDOM), 1.0) == [Send(FAR, LinkAccept(0))]
    assert bench.hear(CLOCKWISE[5], LinkCheck(0), 1.0) == [Send(CLOCKWISE[5], LinkDropped())]
    assert bench.hear(CLOCKWISE[5], LinkAccept(0), 1.0) == [Send(CLOCKWISE[5], LinkDropped())]
    assert bench.topology.counts.mended == 3


def test_a_dropped_ring_link_is_asked_for_again() -> None:
    bench = linked()
    assert bench.hear(NEXT, LinkDropped(), 1.0) == [removed(NEXT, Kind.RING, "dropped")]
    assert bench.review(1.1) == [Send(NEXT, LinkRequest(RING))]


def test_a_failed_neighbour_is_replaced_by_the_next() -> None:
    bench = linked()
    assert bench.fail(NEXT, 1.0) == [removed(NEXT, Kind.RING, "failed")]
    assert bench.review(1.1) == [Send(CLOCKWISE[2], LinkRequest(RING))]


def test_a_neighbour_that_left_is_replaced_too() -> None:
    bench = linked()
    assert bench.leave(BEFORE, 1.0) == [removed(BEFORE, Kind.RING, "left")]
    assert bench.review(1.1) == [Send(CLOCKWISE[-2], LinkRequest(RING))]


def test_a_restarted_neighbour_hears_that_its_earlier_link_is_over() -> None:
    bench = linked()
    assert bench.fail(NEXT, 1.0, restarted=True) == [
        removed(NEXT, Kind.RING, "failed"),
        Send(NEXT, LinkDropped()),
    ]
    assert bench.review(1.1) == [Send(NEXT, LinkRequest(RING))]


def test_a_newcomer_in_between_takes_the_place_of_a_ring_neighbour() -> None:
    bench = Bench(names=tuple(name for name in CLOCKWISE if name != NEXT))
    bench.start()
    bench.review(0.1)
    second = CLOCKWISE[2]
    bench.hear(second, LinkAccept(RING), 0.2)
    bench.join(NEXT, 1.0)
    effects = bench.review(1.1)
    assert Send(NEXT, LinkRequest(RING)) in effects
    assert Send(second, LinkCheck(0)) in effects  # I need it no longer; it decides
    assert bench.topology.is_neighbour(second)
    assert bench.hear(second, LinkCheck(0), 1.2) == [
        removed(second, Kind.NONE, "unwanted"),
        Send(second, LinkDropped()),
    ]


def test_each_period_both_ends_hear_that_the_link_is_held() -> None:
    bench = linked()
    bench.topology.on_timer(CHECK, 5.0)
    assert bench.done() == [Send(NEXT, LinkCheck(RING)), Send(BEFORE, LinkCheck(RING))]
    period = SPARSE.check_period
    assert 5.0 + 0.9 * period <= bench.effects.timers[CHECK] <= 5.0 + 1.1 * period


def test_a_silent_neighbour_is_given_up_and_asked_anew() -> None:
    bench = linked()
    now = 0.2
    while now <= 0.2 + SPARSE.silence * SPARSE.check_period:
        now = bench.effects.timers[CHECK]
        bench.hear(BEFORE, LinkCheck(RING), now)
        bench.topology.on_timer(CHECK, now)
        effects = bench.done()
    assert effects[:3] == [
        removed(NEXT, Kind.RING, "silent"),
        Send(NEXT, LinkDropped()),
        Send(NEXT, LinkRequest(RING)),
    ]


def test_a_node_that_slept_blames_nobody() -> None:
    bench = linked()
    bench.topology.on_timer(CHECK, 1000.0)
    assert bench.done() == [Send(NEXT, LinkCheck(RING)), Send(BEFORE, LinkCheck(RING))]


def test_a_clock_set_back_leaves_no_timer_far_away() -> None:
    bench = linked()
    bench.topology.on_timer(CHECK, 5000.0)
    bench.hear(NEXT, LinkCheck(RING), 100.0)
    assert bench.effects.timers[CHECK] <= 100.0 + SPARSE.check_period
    assert bench.effects.timers[REVIEW] <= 100.0 + SPARSE.review_delay


def test_on_stop_the_other_ends_are_told() -> None:
    bench = linked()
    bench.topology.on_stop(1.0)
    assert bench.done() == [Send(NEXT, LinkDropped()), Send(BEFORE, LinkDropped())]
    assert bench.hear(FAR, LinkRequest(RANDOM), 1.1) == []


@pytest.mark.parametrize(
    "msg", [LinkRequest(RING), LinkAccept(RING), LinkCheck(RING), LinkRefused(), LinkDropped()]
)
@pytest.mark.parametrize("src", ["stranger", ME])
def test_strangers_and_mirrors_change_nothing(src: str, msg: LinkRequest) -> None:
    bench = linked()
    assert bench.hear(src, msg, 1.0) == []
    assert bench.topology.counts.strangers == 1
    assert set(bench.topology.neighbours()) == {NEXT, BEFORE}
