"""Broadcast and convergecast: ranges are split, parts are watched, reports are summed up."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import vid_of, vid_to_wire
from protocols.routing import (
    Aggregate,
    AggregateDone,
    BroadcastArrived,
    BroadcastDone,
    Interest,
    RangeDone,
    RoutingSettings,
    Spread,
    Taken,
)
from protocols.routing.aggregates import NOTHING, aggregate_of
from protocols.routing.arcs import Arc, after, everybody_but
from tests.recording import Emit, Send
from tests.unit.routing.machines import CLOCKWISE, NAMES, Bench, events, sends
from tests.unit.topology.fixed_view import ZONE, Roster

ME, NEXT, THIRD, MIDDLE, BEFORE = (CLOCKWISE[at] for at in (0, 1, 2, 4, 7))
TO_MIDDLE = Arc(vid_of(NEXT), vid_of(MIDDLE))  # three members: NEXT, THIRD and a fourth


def spread(arc: Arc, **changes: Any) -> Spread:
    """A range from the member before me."""
    fields: dict[str, Any] = {
        "transfer": 7,
        "origin": BEFORE,
        "id": 99,
        "start": vid_to_wire(arc.start),
        "upto": vid_to_wire(arc.upto),
        "hops": 1,
        "patience": 10.0,
        "interest_key": "",
        "interest": "",
        "gauge": "",
        "service": "",
        "payload": b"hello",
    }
    return Spread(**{**fields, **changes})


def report(sent: Send, reached: int, aggregate: Aggregate = NOTHING, **more: int) -> RangeDone:
    """The end of what was handed over."""
    assert isinstance(sent.msg, Spread)
    missing, depth = more.get("missing", 0), more.get("depth", 2)
    return RangeDone(sent.msg.transfer, reached, missing, depth, aggregate)


def arc_of(sent: Send) -> Arc:
    assert isinstance(sent.msg, Spread)
    return Arc(int.from_bytes(sent.msg.start, "big"), int.from_bytes(sent.msg.upto, "big"))


def test_alone_i_am_the_audience() -> None:
    bench = Bench([], roster=Roster([ME]))
    number = bench.router.broadcast(b"hello", 0.0, service="chat")
    assert events(bench.done()) == [
        BroadcastArrived(ZONE, ME, number, b"hello", 0, "chat"),
        BroadcastDone(ZONE, number, 1, 0, 0),
    ]


def test_the_ring_is_cut_at_the_neighbours_and_ends_with_all_reports() -> None:
    bench = Bench([MIDDLE, NEXT, BEFORE])
    number = bench.router.broadcast(b"hello", 0.0)
    effects = bench.done()
    assert events(effects) == [BroadcastArrived(ZONE, ME, number, b"hello", 0)]
    parts = sends(effects)
    assert [(sent.to, arc_of(sent)) for sent in parts] == [
        (NEXT, Arc(after(vid_of(ME)), vid_of(MIDDLE))),
        (MIDDLE, Arc(vid_of(MIDDLE), vid_of(BEFORE))),
        (BEFORE, Arc(vid_of(BEFORE), vid_of(ME))),
    ]
    for sent in parts:
        whole = spread(arc_of(sent), origin=ME, id=number, patience=19.75)
        assert isinstance(sent.msg, Spread)
        assert sent.msg == Spread(sent.msg.transfer, *_fields(whole)[1:])
    assert bench.hear(NEXT, report(parts[0], 3)) == []
    assert bench.hear(NEXT, report(parts[0], 3)) == []  # a copy
    assert bench.hear(BEFORE, report(parts[2], 1, depth=1)) == []
    assert bench.hear(MIDDLE, report(parts[1], 2, missing=1, depth=4)) == [
        Emit(BroadcastDone(ZONE, number, 7, 1, 4))
    ]
    assert bench.router.counts.late == 1


def _fields(msg: Spread) -> tuple[Any, ...]:
    return tuple(getattr(msg, field) for field in msg.__struct_fields__)


def test_a_head_delivers_splits_the_rest_and_reports() -> None:
    bench = Bench([THIRD, ME], me=NEXT)
    effects = bench.hear(BEFORE, spread(TO_MIDDLE))
    assert events(effects) == [BroadcastArrived(ZONE, BEFORE, 99, b"hello", 1)]
    part, taken = sends(effects)
    assert (part.to, arc_of(part)) == (THIRD, Arc(after(vid_of(NEXT)), vid_of(MIDDLE)))
    assert taken == Send(BEFORE, Taken(7))
    assert bench.hear(THIRD, report(part, 2, depth=3)) == [
        Send(BEFORE, RangeDone(7, 3, 0, 3, NOTHING))
    ]


def test_a_leaf_reports_at_once() -> None:
    bench = Bench([ME], me=NEXT)
    effects = bench.hear(BEFORE, spread(Arc(vid_of(NEXT), vid_of(THIRD))))
    assert effects == [
        Emit(BroadcastArrived(ZONE, BEFORE, 99, b"hello", 1)),
        Send(BEFORE, RangeDone(7, 1, 0, 1, NOTHING)),
    ]


def test_a_second_copy_is_spread_and_counted_but_not_delivered() -> None:
    bench = Bench([ME], me=NEXT)
    arc = Arc(vid_of(NEXT), vid_of(THIRD))
    bench.hear(BEFORE, spread(arc))
    assert bench.hear(BEFORE, spread(arc)) == [Send(BEFORE, RangeDone(7, 1, 0, 1, NOTHING))]
    other = spread(arc, transfer=8, hops=2)
    assert bench.hear(ME, other) == [Send(ME, RangeDone(8, 1, 0, 2, NOTHING))]


def test_a_member_known_only_to_the_head_is_reached() -> None:
    roster = Roster([name for name in NAMES if name != THIRD])
    bench = Bench([NEXT, MIDDLE], roster=roster)
    bench.router.broadcast(b"", 0.0)
    holding = [sent.to for sent in sends(bench.done()) if arc_of(sent).holds(vid_of(THIRD))]
    assert holding == [NEXT]


def test_the_part_of_a_dead_head_is_cut_anew() -> None:
    bench = Bench([MIDDLE])
    bench.router.broadcast(b"", 0.0)
    first = sends(bench.done())[0]
    assert first.to == NEXT  # the first of the arc, though it is no neighbour
    again = sends(bench.fail(NEXT, 0.1))
    assert [(sent.to, arc_of(sent)) for sent in again] == [(THIRD, arc_of(first))]


def test_the_part_of_a_dead_head_in_which_nobody_else_is_ends() -> None:
    bench = Bench([NEXT], roster=Roster([ME, NEXT]))
    number = bench.router.broadcast(b"", 0.0)
    bench.done()
    assert bench.fail(NEXT, 0.1) == [Emit(BroadcastDone(ZONE, number, 1, 0, 0))]


def test_the_part_of_a_silent_head_is_cut_anew_with_its_place_inside() -> None:
    config = RoutingSettings(take_timeout=0.25, take_tries=1)
    bench = Bench([NEXT], config, roster=Roster([ME, NEXT, THIRD]))
    bench.router.broadcast(b"", 0.0)
    (sent,) = sends(bench.done())
    assert sent.to == NEXT
    ((_, again),) = bench.sweep_until(0.25)
    assert isinstance(again, Send)
    assert (again.to, arc_of(again)) == (THIRD, everybody_but(ME))


def test_a_silent_member_alone_in_its_arc_is_tried_until_it_is_gone() -> None:
    config = RoutingSettings(take_timeout=0.25, take_tries=1)
    bench = Bench([NEXT], config, roster=Roster([ME, NEXT]))
    number = bench.router.broadcast(b"", 0.0)
    bench.done()
    tried = [effect for _, effect in bench.sweep_until(1.0)]
    assert len(tried) == 4
    assert all(isinstance(effect, Send) and effect.to == NEXT for effect in tried)
    assert bench.fail(NEXT, 1.1) == [Emit(BroadcastDone(ZONE, number, 1, 0, 0))]


def test_at_the_deadline_open_parts_count_as_missing() -> None:
    bench = Bench([NEXT, MIDDLE], RoutingSettings(spread_timeout=2.0))
    number = bench.router.broadcast(b"", 0.0)
    parts = sends(bench.done())
    bench.hear(MIDDLE, report(parts[1], 4), 0.1)
    happened = bench.sweep_until(5.0)
    assert happened[-1] == (2.0, Emit(BroadcastDone(ZONE, number, 5, 3, 2)))
    assert not bench.effects.timers


def test_a_head_reports_what_it_has_before_its_sender_loses_patience() -> None:
    bench = Bench([THIRD], me=NEXT)
    bench.hear(BEFORE, spread(TO_MIDDLE, patience=1.0))
    happened = bench.sweep_until(5.0)
    assert happened[-1] == (1.0, Send(BEFORE, RangeDone(7, 1, 2, 1, NOTHING)))


def test_no_patience_left_means_missing() -> None:
    bench = Bench([THIRD], me=NEXT)
    effects = bench.hear(BEFORE, spread(TO_MIDDLE, patience=0.1))
    assert sends(effects) == [Send(BEFORE, RangeDone(7, 1, 2, 1, NOTHING))]
    bench = Bench([THIRD], RoutingSettings(ttl=5), me=NEXT)
    effects = bench.hear(BEFORE, spread(TO_MIDDLE, hops=5, origin=ME))
    assert sends(effects) == [Send(BEFORE, RangeDone(7, 1, 2, 5, NOTHING))]


def test_deep_down_a_range_is_halved_though_no_link_leads_there() -> None:
    bench = Bench([], me=NEXT)
    arc = Arc(vid_of(NEXT), vid_of(BEFORE))
    parts = sends(bench.hear(BEFORE, spread(arc, hops=5, origin=ME)))[:-1]
    assert [sent.to for sent in parts] == [THIRD, CLOCKWISE[4]]  # of five: the first, the third


def test_ranges_without_interest_are_left_out() -> None:
    roster = Roster(NAMES, {MIDDLE: "ants, bees"})
    bench = Bench([NEXT, CLOCKWISE[3], CLOCKWISE[5]], roster=roster)
    number = bench.router.broadcast(b"", 0.0, interest=Interest("ants"))
    effects = bench.done()
    assert events(effects) == []  # it is not for me
    (part,) = sends(effects)
    assert part.to == CLOCKWISE[3]
    assert bench.hear(CLOCKWISE[3], report(part, 1)) == [Emit(BroadcastDone(ZONE, number, 1, 0, 2))]
    nobody = bench.router.broadcast(b"", 0.0, interest=Interest("cats"))
    assert bench.done() == [Emit(BroadcastDone(ZONE, nobody, 0, 0, 0))]


def test_a_relay_without_interest_hands_on_and_is_not_counted() -> None:
    roster = Roster(NAMES, {THIRD: "ants"})
    bench = Bench([THIRD], me=NEXT, roster=roster)
    msg = spread(TO_MIDDLE, interest_key="topics", interest="ants")
    effects = bench.hear(BEFORE, msg)
    assert events(effects) == []
    part = sends(effects)[0]
    assert isinstance(part.msg, Spread)
    assert (part.msg.interest_key, part.msg.interest) == ("topics", "ants")
    assert bench.hear(THIRD, report(part, 1)) == [Send(BEFORE, RangeDone(7, 1, 0, 2, NOTHING))]


def test_interest_follows_the_view() -> None:
    roster = Roster(NAMES, {})
    bench = Bench([NEXT, MIDDLE], roster=roster)
    bench.router.broadcast(b"", 0.0, interest=Interest("ants"))
    assert sends(bench.done()) == []
    roster.set(MIDDLE, "topics", "ants")
    bench.router.broadcast(b"", 0.0, interest=Interest("ants"))
    assert [sent.to for sent in sends(bench.done())] == [MIDDLE]


def test_an_aggregate_sums_up_attributes_and_gauges() -> None:
    roster = Roster([ME, NEXT])
    roster.set(ME, "load", 2)
    bench = Bench([NEXT], roster=roster)
    number = bench.router.aggregate("load", 0.0)
    (part,) = sends(bench.done())
    theirs = aggregate_of(5)
    assert bench.hear(NEXT, report(part, 1, theirs)) == [
        Emit(AggregateDone(ZONE, number, "load", aggregate_of(2).merged(theirs), 2, 0, 2))
    ]
    bench.router.offer("load", lambda: 40)
    bench.router.aggregate("load", 0.0)
    (part,) = sends(bench.done())
    (done,) = events(bench.hear(NEXT, report(part, 1, theirs)))
    assert isinstance(done, AggregateDone)
    assert (done.aggregate.count, done.aggregate.total, done.aggregate.greatest) == (2, 45.0, 40.0)


def test_a_member_contributes_to_an_aggregate_whenever_it_is_asked() -> None:
    roster = Roster(NAMES)
    roster.set(NEXT, "load", 3)
    bench = Bench([ME], me=NEXT, roster=roster)
    arc = Arc(vid_of(NEXT), vid_of(THIRD))
    for transfer in (7, 8):  # the second by another way: the first report may be lost
        msg = spread(arc, transfer=transfer, gauge="load", payload=b"")
        assert bench.hear(BEFORE, msg) == [
            Send(BEFORE, RangeDone(transfer, 1, 0, 1, aggregate_of(3)))
        ]


WHOLE = everybody_but(BEFORE)


@pytest.mark.parametrize(
    ("src", "msg", "reason"),
    [
        (BEFORE, spread(WHOLE, origin=THIRD), "forged-origin"),
        (BEFORE, spread(WHOLE, hops=49), "hop-limit"),
        (BEFORE, spread(Arc(vid_of(NEXT), vid_of(MIDDLE))), "range-elsewhere"),
        (BEFORE, spread(Arc(5, 5)), "range-elsewhere"),
        (BEFORE, spread(everybody_but(NEXT)), "range-too-wide"),
        (BEFORE, spread(WHOLE, origin=THIRD, hops=2), "range-too-wide"),
    ],
)
def test_bad_ranges_are_refused_with_a_reason(src: str, msg: Spread, reason: str) -> None:
    bench = Bench([NEXT])
    with pytest.raises(RemoteProtocolError) as refusal:
        bench.hear(src, msg)
    assert refusal.value.reason == reason
    assert bench.done() == []
    assert bench.router.in_custody == 0


def test_an_unsound_report_is_refused_and_the_part_stays_open() -> None:
    bench = Bench([NEXT], roster=Roster([ME, NEXT]))
    bench.router.aggregate("load", 0.0)
    (part,) = sends(bench.done())
    for reached, lie in (
        (1, Aggregate(count=1, numbers=1, total=float("nan"), least=1, greatest=1)),
        (1, Aggregate(count=1, sketch=b"short")),
        (1, Aggregate(count=2)),  # more values than members
        (2**40, NOTHING),  # with me one more than can be
    ):
        with pytest.raises(RemoteProtocolError, match="unsound-aggregate"):
            bench.hear(NEXT, report(part, reached, lie))
    assert bench.router.open_here == 1
    assert isinstance(events(bench.hear(NEXT, report(part, 1)))[0], AggregateDone)


@pytest.mark.parametrize("interest", [Interest("ants", ""), Interest("a" * 257)])
def test_wrong_interests_are_the_callers_fault(interest: Interest) -> None:
    bench = Bench([NEXT])
    with pytest.raises(LocalProtocolError, match="name an attribute"):
        bench.router.broadcast(b"", 0.0, interest=interest)
    with pytest.raises(LocalProtocolError, match="use 1 to 256 characters"):
        bench.router.aggregate("", 0.0)
    assert bench.done() == []
