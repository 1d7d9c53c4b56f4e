"""Algorithm 1 on one broker: the exact messages that each input causes."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.errors import LocalProtocolError
from protocols.colony import Card, ColonySettings, LeaderRefused, Terms, Wish
from protocols.colony.leading import LAZY
from protocols.colony.messages import (
    Acceptance,
    LogOut,
    ServiceRequest,
    ServiceResponse,
    Want,
)
from protocols.colony.searching import EXPIRE
from tests.recording import Send
from tests.unit.colony.units import CPU, DISK, TAPE, Community, Unit

CLIENT = Card("c")


def request(*wants: Want, mode: str = "exhaustive", within: float = 10.0) -> ServiceRequest:
    return ServiceRequest(7, CLIENT, wants, within, mode)  # type: ignore[arg-type]


def want(index: int, *services: object, instances: int = 1, replies: int = 1) -> Want:
    return Want(index, tuple(map(str, services)), instances, replies)


def accepted(index: int, *names: str) -> ServiceResponse:
    return ServiceResponse(7, "c", tuple(Acceptance(index, Card(name), 1) for name in names))


def rejected(*indices: int) -> ServiceResponse:
    return ServiceResponse(7, "c", (), indices)


def part(
    *wants: Want, share: float = 0.9, left: float = 10.0, mode: str = "exhaustive"
) -> ServiceRequest:
    return ServiceRequest(7, CLIENT, wants, 0.95 * (share * left), mode, 0, 1)  # type: ignore[arg-type]


def broker(leader: str = "", **more: Any) -> Unit:
    unit = Unit(leader=leader, leads=True, **more)
    unit.add("c")
    unit.add("a", CPU)
    unit.add("b", CPU, DISK)
    return unit


def test_each_child_is_asked_for_what_it_offers() -> None:
    unit = broker()
    done = unit.deliver("c", request(want(0, CPU), want(1, DISK)))
    assert done == [
        Send("a", part(want(0, CPU))),
        Send("b", part(want(0, CPU), want(1, DISK))),
    ]


def test_children_leave_time_for_who_comes_after_them() -> None:
    two = request(want(0, CPU), want(1, DISK))
    to_a, to_b = broker("boss").deliver("c", two)
    assert to_a == Send("a", part(want(0, CPU), share=0.5)), "the leader may be asked then"
    assert to_b == Send("b", part(want(0, CPU), want(1, DISK), share=0.5))
    down = broker("boss").deliver("boss", request(want(0, DISK)))
    assert down == [Send("b", part(want(0, DISK)))], "nobody is left: a chain does not halve time"


def test_a_root_rejects_what_nobody_offers_at_once() -> None:
    assert broker().deliver("c", request(want(0, TAPE))) == [Send("c", rejected(0))]


def test_what_nobody_offers_is_delegated() -> None:
    done = broker("boss").deliver("c", request(want(0, TAPE)))
    assert done == [Send("boss", part(want(0, TAPE)))]


def test_the_sender_is_never_asked() -> None:
    unit = broker("boss")
    assert unit.deliver("a", request(want(0, CPU))) == [Send("b", part(want(0, CPU), share=0.5))]
    done = unit.deliver("boss", ServiceRequest(8, CLIENT, (want(0, TAPE),), 10.0))
    assert done == [Send("boss", ServiceResponse(8, "c", (), (0,)))]


def test_the_first_acceptance_goes_back_and_later_ones_do_not() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, CPU)))
    assert unit.deliver("a", accepted(0, "a")) == [Send("c", accepted(0, "a"))]
    assert unit.deliver("b", accepted(0, "b")) == []
    assert unit.machine.counts.late == 1


def test_a_want_is_rejected_only_when_nobody_is_pending() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, CPU)))
    assert unit.deliver("a", rejected(0)) == []
    assert unit.deliver("b", rejected(0)) == [Send("c", rejected(0))]


def test_a_rejected_want_is_delegated_when_no_child_is_left() -> None:
    unit = broker("boss")
    unit.deliver("c", request(want(0, CPU)))
    unit.deliver("a", rejected(0))
    assert unit.deliver("b", rejected(0)) == [Send("boss", part(want(0, CPU)))]
    assert unit.deliver("boss", rejected(0)) == [Send("c", rejected(0))]


def test_greedy_asks_one_and_then_another() -> None:
    unit = broker()
    done = unit.deliver("c", request(want(0, CPU), mode="greedy-acceptance"))
    assert done == [Send("a", part(want(0, CPU), share=0.5, mode="greedy-acceptance"))]
    done = unit.deliver("a", rejected(0))
    assert done == [Send("b", part(want(0, CPU), mode="greedy-acceptance"))]


def test_tit_for_tat_prefers_who_accepted() -> None:
    unit = broker()
    for number in range(2):
        unit.deliver("c", ServiceRequest(number, CLIENT, (want(0, CPU),), 10.0, "exhaustive"))
        unit.deliver("a", ServiceResponse(number, "c", (), (0,)))
        unit.deliver("b", ServiceResponse(number, "c", (Acceptance(0, Card("b")),)))
    done = unit.deliver("c", request(want(0, CPU), mode="greedy-acceptance"))
    assert [one.to for one in done if isinstance(one, Send)] == ["b"]


def test_latency_prefers_the_nearest() -> None:
    unit = broker()
    for name, rtt in (("a", 0.3), ("b", 0.1)):
        unit.machine.table.children[name].rtt = rtt
    done = unit.deliver("c", request(want(0, CPU), mode="greedy-latency"))
    assert [one.to for one in done if isinstance(one, Send)] == ["b"]


def test_broadcast_asks_everybody() -> None:
    done = broker().deliver("c", request(want(0, DISK), mode="broadcast"))
    assert [one.to for one in done if isinstance(one, Send)] == ["a", "b"]


def test_exhaustive_reply_hands_all_on_and_ends_with_a_rejection() -> None:
    unit = broker()
    all_of_them = want(0, CPU, replies=0)
    unit.deliver("c", request(all_of_them))
    assert unit.deliver("a", ServiceResponse(7, "c", accepted(0, "a").accepted, (0,))) == [
        Send("c", accepted(0, "a"))
    ]
    assert unit.deliver("b", ServiceResponse(7, "c", accepted(0, "b").accepted, (0,))) == [
        Send("c", accepted(0, "b")),
        Send("c", rejected(0)),
    ]
    assert unit.machine.searches == 0


def test_instances_are_gathered_from_several() -> None:
    unit = broker()
    two = want(0, CPU, instances=2, replies=2)
    unit.deliver("c", request(two, mode="greedy-acceptance"))
    done = unit.deliver("a", ServiceResponse(7, "c", accepted(0, "a").accepted, (0,)))
    rest = want(0, CPU)
    assert done == [
        Send("c", accepted(0, "a")),
        Send("b", part(rest, mode="greedy-acceptance")),
    ]
    assert unit.deliver("b", accepted(0, "b")) == [Send("c", accepted(0, "b"))]
    assert unit.machine.searches == 0


def test_a_conjunction_goes_to_who_may_serve_all_of_it() -> None:
    both = want(0, CPU, DISK)
    assert broker().deliver("c", request(both)) == [Send("b", part(both))]


def test_a_want_from_two_sides_is_searched_once() -> None:
    unit = broker("boss")
    unit.deliver("c", request(want(0, CPU)))
    assert unit.deliver("boss", request(want(0, CPU))) == [Send("boss", rejected(0))]
    assert unit.machine.counts.crossed == 1
    assert unit.deliver("c", request(want(0, CPU))) == [], "a copy changes nothing"


def test_a_copy_of_what_ended_is_not_answered() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, CPU)))
    unit.deliver("a", accepted(0, "a"))
    assert unit.machine.searches == 0
    assert unit.deliver("c", request(want(0, CPU))) == [], "it might overtake the answer"
    assert unit.deliver("a", request(want(0, CPU))) == [Send("a", rejected(0))]


def test_who_is_silent_has_rejected() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, CPU), mode="greedy-acceptance"), 0.0)
    assert unit.effects.timers[EXPIRE] == 5.0
    done = unit.fire(EXPIRE, 5.0)
    assert [one.to for one in done if isinstance(one, Send)] == ["b"]
    assert unit.machine.counts.silent == 1
    assert unit.effects.timers[EXPIRE] == 9.5  # after b nobody is left who could need more
    assert unit.fire(EXPIRE, 9.5) == [Send("c", rejected(0))]


def test_who_leaves_in_mid_request_has_rejected() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, DISK)))
    done = unit.deliver("b", LogOut("leaves"))
    assert [one for one in done if isinstance(one, Send)] == [Send("c", rejected(0))]


def test_who_moves_in_mid_request_still_answers() -> None:
    unit = broker()
    unit.deliver("c", request(want(0, DISK)))
    done = unit.deliver("b", LogOut("moved"))
    assert [one for one in done if isinstance(one, Send)] == []
    assert unit.deliver("b", accepted(0, "b")) == [Send("c", accepted(0, "b"))]


def test_a_stranger_is_turned_away() -> None:
    done = broker().deliver("who", request(want(0, CPU)))
    assert done == [Send("who", LogOut("unknown here")), Send("who", rejected(0))]


def test_a_full_broker_rejects() -> None:
    unit = broker(settings=ColonySettings(max_open=1))
    unit.deliver("c", request(want(0, CPU)))
    other = ServiceRequest(8, CLIENT, (want(0, CPU),), 10.0)
    assert unit.deliver("c", other) == [Send("c", ServiceResponse(8, "c", (), (0,)))]
    assert unit.machine.counts.overloaded == 1


def test_a_lazy_computer_is_delogged_and_banned() -> None:
    unit = broker(settings=ColonySettings(lazy_after=3))
    for number in range(3):
        unit.deliver("c", ServiceRequest(number, CLIENT, (want(0, DISK),), 10.0))
        unit.deliver("b", ServiceResponse(number, "c", (), (0,)))
    assert "b" not in unit.machine.table.children
    assert unit.machine.counts.lazy == 1
    community = Community(ColonySettings(lazy_after=2, lazy_ban=30.0))
    boss = community.unit("P", leads=True)
    community.unit("b", "P", offers=[CPU], policy=lambda proposal: False)
    community.unit("c", "P")
    for _ in range(2):
        community.ask("c", Wish((CPU,)))
    refusals = [one.reason for one in community.heard("b", LeaderRefused)]
    assert refusals == [LAZY]
    assert [one.name for one in boss.individuals()] == ["c"]


def test_what_cannot_be_asked_says_why() -> None:
    unit = Unit(leads=True)
    for wishes, terms, why in (
        ([], Terms(), "0 wants"),
        ([Wish(())], Terms(), "conjunction of 0"),
        ([Wish((CPU,), 0)], Terms(), "0 instances"),
        ([Wish((CPU,), 3)], Terms(replies=2), "replies = 2"),
        ([Wish((CPU,))], Terms("quickly"), "no mode 'quickly'"),
    ):
        with pytest.raises(LocalProtocolError, match=why):
            unit.machine.ask(wishes, terms, 0.0)
    with pytest.raises(LocalProtocolError, match="in no colony"):
        Unit().machine.ask([Wish((CPU,))], Terms(), 0.0)


def test_no_request_is_searched_for_longer_than_a_broker_grants() -> None:
    unit = broker(settings=ColonySettings(longest=4.0))
    (asked, _) = unit.deliver("c", request(want(0, CPU), within=80_000.0), 0.0)
    assert asked == Send("a", part(want(0, CPU), left=4.0))


def test_deadlines_of_what_ended_do_not_pile_up() -> None:
    unit = broker()
    for number in range(3000):
        unit.deliver("c", ServiceRequest(number, CLIENT, (want(0, DISK),), 500.0), 0.0)
        unit.deliver("b", ServiceResponse(number, "c", (Acceptance(0, Card("b")),)), 0.0)
    assert unit.machine.searches == 0
    assert len(unit.machine._searcher._deadlines) <= 4200
    assert len(unit.machine._searcher._ended) == 3000
