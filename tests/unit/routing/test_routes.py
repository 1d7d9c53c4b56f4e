"""Routes: each hop takes over, hands on, and passes the end back."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import vid_of, vid_to_wire
from protocols.routing import (
    Ask,
    RouteArrived,
    Routed,
    RouteDone,
    RouteFailed,
    RouteStep,
    RoutingSettings,
    Taken,
)
from tests.recording import Emit, Send
from tests.unit.routing.machines import CLOCKWISE, Bench, events, sends
from tests.unit.topology.fixed_view import ZONE, Roster

ME, NEXT, THIRD, FAR, BEFORE = (CLOCKWISE[at] for at in (0, 1, 2, 4, 7))
KEY_OF_FAR, KEY_OF_ME = vid_of(FAR), vid_of(ME)


def step(**changes: Any) -> RouteStep:
    """A first step from the member before me to FAR."""
    fields: dict[str, Any] = {
        "transfer": 7,
        "origin": BEFORE,
        "id": 99,
        "key": vid_to_wire(KEY_OF_FAR),
        "hops": 1,
        "patience": 20.0,
        "service": "",
        "direct": False,
        "payload": b"hello",
    }
    return RouteStep(**{**fields, **changes})


def arrived(hops: int, origin: str = BEFORE, id: int = 99) -> Emit:
    return Emit(RouteArrived(ZONE, KEY_OF_ME, origin, id, b"hello", hops))


def test_what_i_am_responsible_for_arrives_at_once() -> None:
    bench = Bench([NEXT])
    number = bench.router.route(KEY_OF_ME, b"hello", 0.0)
    assert bench.done() == [arrived(0, ME, number), Emit(Routed(ZONE, number, ME, 0))]


def test_a_route_goes_to_the_neighbour_nearest_to_its_target_and_ends_with_its_answer() -> None:
    bench = Bench([NEXT, CLOCKWISE[3], BEFORE])
    number = bench.router.route(KEY_OF_FAR, b"hello", 0.0)
    (sent,) = sends(bench.done())
    assert sent.to == CLOCKWISE[3]
    assert isinstance(sent.msg, RouteStep)
    assert sent.msg == step(transfer=sent.msg.transfer, origin=ME, id=number)
    assert bench.hear(CLOCKWISE[3], Taken(sent.msg.transfer), 0.1) == []
    done = RouteDone(sent.msg.transfer, FAR, 2)
    assert bench.hear(CLOCKWISE[3], done, 0.2) == [Emit(Routed(ZONE, number, FAR, 2))]
    assert bench.hear(CLOCKWISE[3], done, 0.3) == []  # a copy
    assert bench.router.counts.late == 1


@pytest.mark.parametrize(
    ("setting", "asked", "first"), [(True, None, FAR), (False, True, FAR), (True, False, NEXT)]
)
def test_direct_goes_past_the_overlay_in_one_hop(
    setting: bool, asked: bool | None, first: str
) -> None:
    bench = Bench([NEXT], RoutingSettings(direct=setting))
    bench.router.route(KEY_OF_FAR, b"", 0.0, direct=asked)
    assert [sent.to for sent in sends(bench.done())] == [first]


def test_a_hop_takes_over_hands_on_and_passes_the_end_back() -> None:
    bench = Bench([NEXT, FAR, BEFORE])
    first, taken = sends(bench.hear(BEFORE, step()))
    assert isinstance(first.msg, RouteStep)
    assert first == Send(FAR, step(transfer=first.msg.transfer, hops=2))
    assert taken == Send(BEFORE, Taken(7))
    assert bench.hear(FAR, RouteDone(first.msg.transfer, FAR, 2)) == [
        Send(BEFORE, RouteDone(7, FAR, 2))
    ]
    assert bench.router.in_custody == 0


def test_the_responsible_member_delivers_and_ends_it() -> None:
    bench = Bench([NEXT, BEFORE])
    msg = step(key=vid_to_wire(KEY_OF_ME))
    assert bench.hear(BEFORE, msg) == [arrived(1), Send(BEFORE, RouteDone(7, ME, 1))]


def test_a_repetition_is_answered_and_not_delivered_again() -> None:
    bench = Bench([NEXT, BEFORE])
    msg = step(key=vid_to_wire(KEY_OF_ME))
    bench.hear(BEFORE, msg)
    assert bench.hear(BEFORE, msg) == [Send(BEFORE, RouteDone(7, ME, 1))]
    again = step(key=vid_to_wire(KEY_OF_ME), transfer=8, hops=2)
    assert bench.hear(NEXT, again) == [Send(NEXT, RouteDone(8, ME, 2))]  # by another way
    assert bench.router.counts.repeated == 1


def test_a_repetition_of_what_is_under_way_hears_that() -> None:
    bench = Bench([FAR, BEFORE])
    bench.hear(BEFORE, step())
    assert bench.hear(BEFORE, step()) == [Send(BEFORE, Taken(7))]
    assert bench.hear(BEFORE, Ask(7)) == [Send(BEFORE, Taken(7))]
    assert bench.hear(BEFORE, Ask(8)) == []
    assert bench.hear(NEXT, Ask(7)) == []  # that number is another one's


def test_a_silent_hop_is_asked_again_then_another_way_is_taken() -> None:
    config = RoutingSettings(take_timeout=0.25, take_tries=2)
    bench = Bench([NEXT, THIRD, CLOCKWISE[3], BEFORE], config)
    bench.router.route(KEY_OF_FAR, b"hello", 0.0)
    (sent,) = sends(bench.done())
    happened = bench.sweep_until(0.8)
    assert happened[0] == (0.25, sent)  # the same message again
    assert [(at, effect.to) for at, effect in happened if isinstance(effect, Send)] == [
        (0.25, CLOCKWISE[3]),
        (0.75, THIRD),
    ]


def test_a_hop_that_took_it_is_asked_for_the_end_without_the_payload() -> None:
    config = RoutingSettings(take_timeout=0.25, ask_again=1.0, take_tries=2)
    bench = Bench([NEXT, CLOCKWISE[3], BEFORE], config)
    bench.router.route(KEY_OF_FAR, b"hello", 0.0)
    (sent,) = sends(bench.done())
    assert isinstance(sent.msg, RouteStep)
    number = sent.msg.transfer
    bench.hear(CLOCKWISE[3], Taken(number), 0.0)
    assert bench.sweep_until(1.05) == [(1.0, Send(CLOCKWISE[3], Ask(number)))]


def test_a_dead_hop_is_left_out_as_soon_as_membership_says_so() -> None:
    bench = Bench([NEXT, CLOCKWISE[3], BEFORE])
    bench.router.route(KEY_OF_FAR, b"hello", 0.0)
    bench.done()
    assert [sent.to for sent in sends(bench.fail(CLOCKWISE[3], 0.1))] == [NEXT]


def test_an_answer_of_another_peer_changes_nothing() -> None:
    bench = Bench([CLOCKWISE[3]])
    bench.router.route(KEY_OF_FAR, b"hello", 0.0)
    (sent,) = sends(bench.done())
    assert isinstance(sent.msg, RouteStep)
    assert bench.hear(NEXT, RouteDone(sent.msg.transfer, FAR, 2)) == []
    assert bench.hear(NEXT, Taken(sent.msg.transfer)) == []
    assert bench.router.open_here == 1


def test_a_target_lost_to_me_is_tried_over_its_other_neighbour_and_never_sent_back() -> None:
    config = RoutingSettings(take_timeout=0.25, take_tries=1)
    before_far, after_far = CLOCKWISE[3], CLOCKWISE[5]
    bench = Bench([FAR, NEXT], config, me=before_far)
    bench.hear(THIRD, step(origin=THIRD))
    assert [effect.to for _, effect in bench.sweep_until(0.3) if isinstance(effect, Send)] == [
        after_far
    ]
    back = [effect for _, effect in bench.sweep_until(2.0)]
    assert back == [Send(THIRD, RouteDone(7, before_far, 1, "no way"))]


def test_a_route_without_a_way_is_tried_again_until_its_deadline() -> None:
    config = RoutingSettings(take_timeout=0.25, take_tries=1, route_pause=1.0, route_timeout=3.0)
    roster = Roster([ME, FAR])
    bench = Bench([FAR], config, roster=roster)
    number = bench.router.route(KEY_OF_FAR, b"", 0.0)
    bench.done()
    happened = bench.sweep_until(10.0)
    tries = [at for at, effect in happened if isinstance(effect, Send)]
    assert tries == [1.25, 2.5]
    assert happened[-1] == (3.0, Emit(RouteFailed(ZONE, number, "no way")))
    assert bench.router.counts.retried == 2


def test_a_route_that_nobody_answers_fails_at_its_deadline() -> None:
    bench = Bench([FAR], RoutingSettings(route_timeout=1.0, take_timeout=0.25))
    number = bench.router.route(KEY_OF_FAR, b"", 0.0)
    bench.done()
    last = bench.sweep_until(5.0)[-1]
    assert last == (1.0, Emit(RouteFailed(ZONE, number, "timeout")))
    assert not bench.effects.timers


def test_nobody_keeps_a_route_longer_than_its_origin_has_patience() -> None:
    bench = Bench([FAR, BEFORE], RoutingSettings(route_timeout=2.0))
    bench.hear(BEFORE, step(patience=1.0))
    bench.hear(BEFORE, step(transfer=8, id=100, patience=3000.0))  # no more than I would have
    ended = [(at, effect) for at, effect in bench.sweep_until(60.0) if effect[0] == BEFORE]
    assert ended == [
        (1.0, Send(BEFORE, RouteDone(7, ME, 1, "timeout"))),
        (2.0, Send(BEFORE, RouteDone(8, ME, 1, "timeout"))),
    ]
    assert bench.router.in_custody == 0


def test_a_route_that_went_too_far_ends() -> None:
    bench = Bench([FAR], RoutingSettings(ttl=3))
    assert bench.hear(BEFORE, step(hops=3)) == [Send(BEFORE, RouteDone(7, ME, 3, "hop limit"))]


@pytest.mark.parametrize(
    ("src", "changes", "reason"),
    [
        (BEFORE, {"origin": NEXT}, "forged-origin"),
        (BEFORE, {"hops": 49}, "hop-limit"),
    ],
)
def test_bad_steps_are_refused_with_a_reason(
    src: str, changes: dict[str, Any], reason: str
) -> None:
    bench = Bench([NEXT])
    with pytest.raises(RemoteProtocolError) as refusal:
        bench.hear(src, step(**changes))
    assert refusal.value.reason == reason
    assert bench.done() == []
    assert bench.router.in_custody == 0


@pytest.mark.parametrize(
    ("src", "changes"),
    [
        ("stranger", {"origin": "stranger"}),
        (ME, {"origin": ME}),
        (BEFORE, {"origin": "stranger", "hops": 2}),
    ],
)
def test_what_strangers_send_or_began_is_not_taken(src: str, changes: dict[str, Any]) -> None:
    bench = Bench([NEXT])
    assert bench.hear(src, step(**changes)) == []
    assert (bench.router.counts.strangers, bench.router.in_custody) == (1, 0)


def test_who_is_no_member_any_more_takes_nothing_and_its_routes_fail() -> None:
    bench = Bench([FAR], RoutingSettings(take_timeout=0.25, take_tries=1, route_timeout=2.0))
    number = bench.router.route(KEY_OF_FAR, b"", 0.0)
    bench.done()
    for name in CLOCKWISE:
        bench.fail(name, 0.1)
    assert bench.hear(BEFORE, step()) == []
    assert bench.sweep_until(5.0) == [(2.0, Emit(RouteFailed(ZONE, number, "no way")))]


def test_a_message_of_somebody_who_died_still_travels() -> None:
    bench = Bench([NEXT, FAR])
    bench.fail(THIRD, 0.0)
    assert len(bench.hear(BEFORE, step(origin=THIRD, hops=2))) == 2


def test_too_much_at_once_is_turned_away_in_silence() -> None:
    bench = Bench([FAR], RoutingSettings(max_open=1))
    bench.hear(BEFORE, step())
    assert bench.hear(BEFORE, step(transfer=8, id=100)) == []
    assert bench.router.handovers == (0, 0, 1)
    bench = Bench([FAR], RoutingSettings(max_bytes=1024))
    assert bench.hear(BEFORE, step(payload=bytes(1025))) == []
    assert bench.router.handovers == (0, 0, 1)


def test_what_is_remembered_is_bounded_and_what_that_cost_is_counted() -> None:
    bench = Bench([FAR], RoutingSettings(remembered=16))
    for number in range(40):
        bench.hear(BEFORE, step(key=vid_to_wire(KEY_OF_ME), transfer=number, id=number))
    assert bench.router.forgotten == 2 * 24  # arrivals, and the ends that were told
    last, first = (step(key=vid_to_wire(KEY_OF_ME), transfer=at, id=at) for at in (39, 0))
    assert events(bench.hear(BEFORE, last)) == []
    assert len(events(bench.hear(BEFORE, first))) == 1  # taken for new


def test_wrong_commands_have_no_effect() -> None:
    bench = Bench([FAR], RoutingSettings(max_open=1))
    with pytest.raises(LocalProtocolError, match="outside of the key space"):
        bench.router.route(1 << 128, b"", 0.0)
    with pytest.raises(LocalProtocolError, match="at most 32 characters"):
        bench.router.route(KEY_OF_FAR, b"", 0.0, service="s" * 33)
    bench.router.route(KEY_OF_FAR, b"", 0.0)
    bench.done()
    with pytest.raises(LocalProtocolError, match=r"routing\.max_open"):
        bench.router.route(KEY_OF_FAR, b"", 0.0)
    bench.roster.remove(ME)
    with pytest.raises(LocalProtocolError, match="is no member"):
        bench.router.broadcast(b"", 0.0)
    assert bench.done() == []


def test_a_clock_set_back_leaves_nothing_waiting_for_the_old_time() -> None:
    bench = Bench([FAR, NEXT], RoutingSettings(take_timeout=0.25))
    bench.router.route(KEY_OF_FAR, b"", 5000.0)
    bench.router.route(vid_of(NEXT), b"", 10.0)
    assert bench.effects.timers["sweep"] == 10.125
    bench.done()
    repeated = [effect for _, effect in bench.sweep_until(12.0) if isinstance(effect, Send)]
    assert FAR in [sent.to for sent in repeated]
    ended = events([effect for _, effect in bench.sweep_until(60.0)])
    assert [type(event) for event in ended] == [RouteFailed, RouteFailed]
