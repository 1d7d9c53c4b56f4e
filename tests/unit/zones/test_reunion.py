"""Parts of one zone that do not know each other meet in the management zone."""

from __future__ import annotations

from tests.unit.zones.node import ZONE, ZonesNode


def test_a_delegate_joins_who_stands_for_its_zone_and_is_not_in_its_view() -> None:
    node = ZonesNode()
    node.joins("ada", 90)
    node.enter()
    node.delegate_of(ZONE, "ada", size=2)
    node.delegate_of(ZONE, "bob", size=1)
    node.delegate_of("elsewhere", "cyn", size=3)
    node.pass_time(0.2)
    assert node.base.asked == ["bob"]


def test_it_joins_nobody_once_all_are_in_its_view() -> None:
    node = ZonesNode()
    node.joins("ada", 90)
    node.enter()
    node.delegate_of(ZONE, "ada", size=2)
    node.pass_time(30.0)
    assert not node.base.asked


def test_it_asks_again_while_the_other_part_stays_apart() -> None:
    node = ZonesNode()
    node.enter()
    node.delegate_of(ZONE, "bob", size=1)
    node.pass_time(0.2)
    first = len(node.base.asked)
    node.pass_time(30.0)
    assert len(node.base.asked) > first
