"""Whom a node believes: one liar never, the others together always, of equals the senior one."""

import pytest

from protocols.timesync import FalsetickerFound, TimeSettings
from protocols.timesync.machine import REVIEW
from tests.recording import Emit
from tests.unit.timesync.zone import Node

SIX = ["a", "b", "c", "d", "e", "f"]


def offset(node: Node) -> float:
    return node.machine.standing(node.now).offset


def test_one_source_that_disagrees_is_a_falseticker() -> None:
    node = Node("d", ["a", "b", "c", "d"])
    node.converse(3.0, {"a": 60.0, "b": 0.2, "c": 0.2})
    assert node.machine.standing(node.now).follows == ("b", "c")
    assert offset(node) == pytest.approx(0.2, abs=1e-3)
    assert [source.key for source in node.machine.sources if source.false] == ["a"]
    assert node.machine.counts.falsetickers >= 1


def test_a_falseticker_is_told_once_and_counts_again_when_it_agrees() -> None:
    node = Node("d", ["a", "b", "c", "d"])
    node.converse(2.0, {"a": 0.2, "b": 0.2, "c": 0.2})
    told: list[Emit] = []
    for _ in range(30):
        node.advance(0.5)
        steps = node.effects.drain()
        told += [s for s in steps if isinstance(s, Emit)]
        for step in steps:
            msg = getattr(step, "msg", None)
            if msg is not None:
                host = step.address.host  # type: ignore[union-attr]
                node.answer(host, msg.id, ahead=9.0 if host == "a" else 0.2)
    found = [step.event for step in told if isinstance(step.event, FalsetickerFound)]
    assert [event.source for event in found] == ["a"]
    assert found[0].off_by == pytest.approx(8.8, abs=0.3)
    node.converse(30.0, {"a": 0.2, "b": 0.2, "c": 0.2})
    assert not any(source.false for source in node.machine.sources)


def test_a_source_that_jumps_alone_moves_nobody() -> None:
    node = Node("b", ["a", "b", "c", "d"])
    truth = {"a": 0.0, "c": 0.0, "d": 0.0}
    node.converse(10.0, truth)
    assert node.machine.standing(node.now).follows == ("a",)
    node.converse(60.0, truth | {"a": 3600.0})
    assert abs(offset(node)) < 1e-3
    assert node.machine.standing(node.now).root == "b"  # the next in order, until it agrees again
    node.converse(60.0, truth)
    assert node.machine.standing(node.now).root == "a"


def test_two_of_a_zone_of_two_follow_the_senior() -> None:
    node = Node("b", ["a", "b"])
    node.converse(5.0, {"a": 0.0})
    node.converse(30.0, {"a": 0.5})
    assert offset(node) == pytest.approx(0.5, abs=1e-3)


def test_the_root_gives_in_when_all_contradict_it() -> None:
    node = Node("a", ["a", "b", "c", "d", "e"])
    truth = dict.fromkeys("bcde", 0.0)
    node.converse(10.0, truth)
    assert node.machine.standing(node.now).follows == ()
    node.converse(150.0, dict.fromkeys("bcde", 2.0))  # that is: its own clock was set back by 2 s
    assert offset(node) == pytest.approx(2.0, abs=1e-3)
    assert node.machine.counts.outvoted >= 1
    assert node.machine.standing(node.now).root == "a"


def test_the_root_stands_when_half_agree() -> None:
    node = Node("a", ["a", "b", "c"])
    node.converse(10.0, {"b": 0.0, "c": 0.0})
    node.converse(150.0, {"b": 0.0, "c": 5.0})
    assert offset(node) == 0.0


def test_a_senior_that_comes_late_takes_the_time_before_it_serves_any() -> None:
    node = Node("a", SIX)  # its clock is so slow that it seems to be the oldest
    others = dict.fromkeys(SIX[1:], 500.0)
    strata = dict.fromkeys(SIX[1:], 2)
    node.converse(1.2, others, stratum=strata)
    assert node.machine._steering.claim(node.now).stratum == 16
    assert offset(node) == pytest.approx(500.0, abs=1e-3)
    node.converse(5.0, others, stratum=strata)
    claim = node.machine._steering.claim(node.now)
    assert claim.stratum == 1  # now it is the root
    assert claim.offset == pytest.approx(500.0, abs=1e-3)


def test_asymmetry_is_inside_of_the_stated_error() -> None:
    node = Node("b", ["a", "b"])
    node.converse(20.0, {"a": 0.0}, there=0.040, back=0.001)
    standing = node.machine.standing(node.now)
    assert 0.015 < abs(standing.offset) <= standing.error


def test_a_chosen_source_that_falls_silent_is_followed_no_more() -> None:
    config = TimeSettings(poll_longest=2.0)
    node = Node("b", ["a", "b"], config)
    node.converse(8.0, {"a": 0.3})
    assert node.machine.standing(node.now).follows == ("a",)
    node.advance(30.0)
    node.machine.on_timer(REVIEW, node.now)
    standing = node.machine.standing(node.now)
    assert standing.follows == ()
    assert standing.offset == pytest.approx(0.3, abs=1e-3)  # it goes on with the time that it has
    # Its senior lives: that is still the root, and what is known of its time ages.
    assert standing.root == "a"
    before = standing.error
    node.advance(100.0)
    assert node.machine.standing(node.now).error == pytest.approx(before + 0.03, rel=0.01)


def test_who_lost_its_senior_for_good_is_the_root() -> None:
    node = Node("b", ["a", "b", "c"], TimeSettings(poll_longest=2.0))
    node.converse(8.0, {"a": 0.3, "c": 0.3})
    node.view.change(["b", "c"])
    node.machine.on_timer(REVIEW, node.now)
    standing = node.machine.standing(node.now)
    assert (standing.root, standing.stratum, standing.follows) == ("b", 1, ())
    assert standing.error < 0.001


def test_an_error_is_one_against_the_root_that_is_told() -> None:
    node = Node("c", ["a", "b", "c"])
    node.converse(8.0, {"a": 0.300, "b": 0.301}, root={"b": "b"}, error={"a": 0.004})
    standing = node.machine.standing(node.now)
    assert standing.root == "a"
    assert standing.error >= 0.004  # b is a root of its own, and has none
