"""Requests: the messages of each step, sharing, losses and every bound."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.predicates import Constraint, Predicate
from protocols.resources import (
    Done,
    Found,
    Gone,
    ModelType,
    Request,
    RequestId,
    ResourcesSettings,
    Results,
    Slip,
)
from tests.brokers import Brokers


def kinds(world: Brokers) -> list[tuple[str, str, str]]:
    """What was sent besides receipts."""
    told = [(src, to, type(msg).__name__) for src, to, msg in world.sent]
    world.sent.clear()
    return [one for one in told if one[2] != "Receipt"]


def line(config: ResourcesSettings | None = None) -> Brokers:
    world = Brokers(("AB", "BC"), config)
    world.register("A", "box", "memory <= 64", {"memory": 48})
    return world


def test_a_request_goes_to_the_edge_and_its_result_comes_back() -> None:
    world = line()
    number = world.find("C", "memory > 1")
    world.calm()
    assert kinds(world) == [
        ("C", "B", "Request"),
        ("B", "A", "Request"),
        ("A", "B", "Results"),
        ("A", "B", "Done"),
        ("B", "C", "Results"),
        ("B", "C", "Done"),
    ]
    end = world.ended(number)
    assert end is not None
    (box,) = end.resources
    assert (box.id, box.item, box.hops) == ("A/box", {"memory": 48}, 2)
    assert (end.complete, end.reason) == (True, "all answered")


def test_without_an_advertisement_nobody_is_asked() -> None:
    world = line()
    number = world.find("C", "disk > 1")
    assert world.found(number) == []
    assert kinds(world) == []


def test_a_circle_answers_a_second_copy_at_once() -> None:
    world = Brokers(("AB", "BC", "CA"))
    for at in "ABC":
        world.register(at, f"r{at}", "memory <= 64", {"memory": 48})
    number = world.find("A", "memory > 1")
    world.calm()
    assert world.found(number) == ["A/rA", "B/rB", "C/rC"]


def test_a_result_for_a_covered_request_is_filtered() -> None:
    world = line()
    world.register("A", "small", "memory <= 64", {"memory": 2})
    world.find("C", "memory > 1")
    world.calm()
    kinds(world)
    number = world.find("B", "memory > 10")
    world.calm()
    assert world.found(number) == ["A/box"]
    assert kinds(world) == [("B", "C", "Request"), ("C", "B", "Results"), ("C", "B", "Done")]


def test_results_that_are_too_old_are_not_shared() -> None:
    world = line(ResourcesSettings(expiry=10.0, update_interval=0.0))
    world.find("C", "memory > 1")
    world.calm()
    world.update("A", "box", {"memory": 50})
    world.pass_time(8.9)
    shared = world.find("C", "memory > 2")
    assert world.ended(shared) is not None
    world.pass_time(0.2)
    world.calm()
    kinds(world)
    fresh = world.find("C", "memory > 3")
    world.calm()
    assert ("C", "B", "Request") in kinds(world)
    ends = [world.ended(one) for one in (shared, fresh)]
    assert [one.resources[0].item["memory"] for one in ends if one] == [48, 50]


def test_what_was_shared_is_as_old_as_it_was_first() -> None:
    """A chain of covers must not go back for ever."""
    world = line(ResourcesSettings(expiry=10.0))
    world.find("C", "memory > 1")
    world.calm()
    world.pass_time(6.0)
    world.find("B", "memory > 2")  # shares what is 6 s old
    world.calm()
    world.pass_time(4.0)
    kinds(world)
    world.find("B", "memory > 3")  # which is 10 s old now
    world.calm()
    assert ("B", "A", "Request") in kinds(world)


def test_a_newly_registered_resource_is_found_by_whoever_asks_next() -> None:
    world = line()
    world.find("C", "memory > 1")
    world.calm()
    world.register("B", "other", "memory <= 64", {"memory": 5})
    number = world.find("C", "memory > 1")
    world.calm()
    assert world.found(number) == ["A/box", "B/other"]
    assert world.machines["C"].counts.outdated == 1


def test_fresh_results_are_not_shared() -> None:
    world = line()
    world.find("C", "memory > 1")
    world.calm()
    kinds(world)
    machine = world.machines["C"]
    number = machine.find(Constraint.parse("memory > 1"), 0, False, None, 0.0, fresh=True)
    world.settle("C")
    world.calm()
    assert world.found(number) == ["A/box"]
    assert kinds(world)[:2] == [("C", "B", "Request"), ("B", "A", "Request")]


def test_equal_requests_under_way_do_not_wait_for_each_other() -> None:
    for order in (("AB", "CB"), ("CB", "AB")):
        world = Brokers(("AB", "BC"))
        world.register("A", "ra", "memory <= 64", {"memory": 48})
        world.register("C", "rc", "memory <= 64", {"memory": 48})
        one, other = world.find("A", "memory > 1"), world.find("C", "memory > 1")
        for src, to in order:
            world.deliver((src, to))
        world.calm()
        assert world.found(one) == world.found(other) == ["A/ra", "C/rc"]


def test_a_neighbour_that_goes_leaves_a_find_incomplete() -> None:
    world = line()
    number = world.find("C", "memory > 1")
    world.deliver(("C", "B"))
    world.crash("A")
    world.calm()
    end = world.ended(number)
    assert end is not None
    assert (end.complete, end.reason, end.resources) == (False, "branch lost", ())


def test_a_find_ends_at_its_timeout_with_what_it_has() -> None:
    world = line()
    world.register("B", "near", "memory <= 64", {"memory": 5})
    number = world.find("C", "memory > 1", timeout=2.0)
    world.deliver(("C", "B"))
    while ("B", "C") in world.under_way:
        world.deliver(("B", "C"))
    world.pass_time(2.0)
    end = world.ended(number)
    assert end is not None
    assert (end.complete, end.reason) == (False, "timeout")
    assert [one.id for one in end.resources] == ["B/near"]
    world.calm()  # late results change nothing
    assert world.ended(number) is end


def test_bounds_are_told_to_who_passes_them() -> None:
    world = line(ResourcesSettings(max_finds=1))
    world.find("C", "memory > 1")
    with pytest.raises(LocalProtocolError, match="1 finds are open"):
        world.find("C", "memory > 1")
    machine = world.machines["A"]
    for limit, timeout in ((-1, None), (0, 0.0), (0, float("nan")), (0, 1e9)):
        with pytest.raises(LocalProtocolError):
            machine.find(Constraint.parse("x = 1"), limit, False, timeout, 0.0)


def test_a_flood_of_requests_is_answered_as_incomplete_and_counted() -> None:
    world = line(ResourcesSettings(max_requests=16))
    for number in range(40):
        world.find("C", f"memory > {60 - number}", timeout=1.0)
    world.calm()
    assert world.machines["B"].counts.over_max_requests > 0
    assert len(world.machines["B"].requests) <= 16


def request(number: int, *predicates: Predicate, place: int = 1, hops: int = 1) -> Request:
    id_ = RequestId("C", number)
    slip = Slip(99, place, 1)
    return Request(slip, id_, ModelType.DYNAMIC, predicates, 0.0, hops)


def hand(world: Brokers, to: str, src: str, msg: object) -> None:
    world.machines[to].message_handlers()[type(msg)](src, msg, world.now)  # type: ignore[index]
    world.settle(to)


def test_a_malformed_request_is_refused_and_answered() -> None:
    world = line()
    bad = request(1, Predicate("memory", ">", 10), Predicate("memory", "<", 5))
    with pytest.raises(RemoteProtocolError, match="bad-constraint"):
        world.machines["B"].message_handlers()[Request]("C", bad, 0.0)
    world.settle("B")
    (answer,) = [msg for _, _, msg in world.sent if isinstance(msg, Done)]
    assert not answer.complete


def test_a_request_that_went_too_far_ends() -> None:
    world = line()
    hand(world, "B", "C", request(1, Predicate("memory", ">", 1), hops=64))
    assert world.machines["B"].counts.over_max_hops == 1


def test_results_that_nobody_asked_for_or_that_do_not_match_are_dropped() -> None:
    world = line()
    stray = Results(
        Slip(99, 1, 1),
        RequestId("C", 5),
        ModelType.DYNAMIC,
        (Found("A/box", 1, 1, {"memory": 3}, 0.0),),
    )
    hand(world, "C", "B", stray)
    assert world.machines["C"].counts.late_results == 1
    number = world.find("C", "memory > 10")
    false = (
        Found("A/box", 1, 1, {"memory": 3}, 0.0),
        Found("A/nan", 1, 1, {"memory": float("nan")}, 0.0),
        Found("A/none", 1, 1, {}, 0.0),
    )
    lie = Results(Slip(99, 2, 1), RequestId("C", number), ModelType.DYNAMIC, false)
    hand(world, "C", "B", lie)
    assert world.machines["C"].counts.wrong_results == 3


def test_gone_from_somebody_who_was_not_asked_changes_nothing() -> None:
    world = line()
    number = world.find("C", "memory > 1")
    gone = Gone(Slip(99, 1, 1), RequestId("C", number), ModelType.DYNAMIC, RequestId("A", 1))
    hand(world, "C", "A", gone)
    world.calm()
    assert world.found(number) == ["A/box"]
