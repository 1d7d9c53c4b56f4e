"""Time beyond the own zone: who leads, who asks, and who believes it."""

from typing import Any

import pytest

from protocols.timesync.abroad import LEADERS, Abroad
from protocols.timesync.source import Kind
from protocols.zones.interface import ZoneEntry
from tests.unit.timesync.zone import Node

OWN = "west"


class Directory:
    """Zones by hand: three, of which north leads, and this node is a delegate, or not."""

    def __init__(self, *, office: bool, delegates: tuple[str, ...] = (), zone: str = OWN) -> None:
        self.zone = zone
        self.is_delegate = office and bool(zone)
        self.delegates = delegates
        self.management: Any = object() if office else None
        self.entries = [
            ZoneEntry("east", 4, ("e1", "e2")),
            ZoneEntry("north", 9, ("n1", "n2")),
            ZoneEntry(OWN, 5, delegates),
        ]

    def zones(self) -> tuple[ZoneEntry, ...]:
        return tuple(self.entries)

    def refresh(self, now: float) -> None:
        raise NotImplementedError

    def ask_members(self, zone: str, now: float) -> int:
        raise NotImplementedError


def offset(node: Node) -> float:
    return node.machine.standing(node.now).offset


def test_the_larger_zone_leads_by_powers_of_two_then_the_name() -> None:
    zones = Directory(office=True)
    assert Abroad("me", zones).leaders() == ["n1", "n2", "e1"]
    zones.entries[0] = ZoneEntry("east", 3, ("e1", "e2"))  # 4 to 7 are one rank, 2 and 3 another
    assert Abroad("me", zones).leaders() == ["n1", "n2"]
    zones.entries[1] = ZoneEntry("north", 6, ("n1", "n2"))
    zones.entries[2] = ZoneEntry(OWN, 7)
    assert Abroad("me", zones).leaders() == ["n1", "n2"], "of equals the name decides"


def test_however_many_zones_there_are_each_serves_a_few() -> None:
    zones = Directory(office=True)
    asked: dict[str, int] = {}
    for number in range(1, 200):
        own = f"z{number:03}"
        zones.zone = own
        zones.entries = [ZoneEntry(f"z{k:03}", 9, (f"{k}a", f"{k}b")) for k in range(200)]
        leaders = Abroad("me", zones).leaders()
        assert all(int(name[:-1]) < number for name in leaders), "nobody follows in a circle"
        for name in leaders:
            asked[name] = asked.get(name, 0) + 1
    assert max(asked.values()) <= 3 + 9 + 1, "zones below, those below them, and a neighbour"


def test_only_who_is_in_the_management_zone_asks_abroad() -> None:
    assert Abroad("me", Directory(office=False)).leaders() == []
    assert Abroad("me", None).leaders() == []
    unknown = Directory(office=True)
    unknown.entries.pop()
    assert Abroad("me", unknown).leaders() == [], "its own place is not known yet"


def test_a_supervisor_is_led_by_all_zones() -> None:
    leaders = Abroad("me", Directory(office=True, zone="")).leaders()
    assert leaders == ["n1", "n2", "e1"]
    assert len(leaders) == LEADERS


def test_a_delegate_takes_the_time_of_leading_zones_against_its_own() -> None:
    zones = Directory(office=True, delegates=("b", "c"))
    node = Node("b", ["a", "b", "c", "d"], zones=zones)
    own = {"a": 0.0, "c": 0.0, "d": 0.0}
    node.converse(3.0, own)
    assert abs(offset(node)) < 1e-3
    node.converse(20.0, own | {"n1": 5.0, "n2": 5.0, "e1": 5.0})
    standing = node.machine.standing(node.now)
    assert standing.offset == pytest.approx(5.0, abs=1e-3)
    assert {*standing.follows} == {"n1", "n2", "e1"}
    assert standing.root == "n1"
    node.machine.check_invariants()


def test_leaders_who_are_gone_are_asked_no_more_and_the_zone_goes_on() -> None:
    zones = Directory(office=True, delegates=("b",))
    node = Node("b", ["a", "b"], zones=zones)
    node.converse(20.0, {"a": 5.0, "n1": 5.0, "n2": 5.0, "e1": 5.0})
    zones.entries[:] = [ZoneEntry(OWN, 5, ("b",))]
    node.converse(20.0, {"a": 5.0})
    standing = node.machine.standing(node.now)
    assert (standing.follows, standing.root) == (("a",), "a")
    assert [source.kind for source in node.machine.sources] == [Kind.MEMBER]
    assert standing.offset == pytest.approx(5.0, abs=1e-3)


def test_leaders_who_contradict_each_other_move_nobody() -> None:
    zones = Directory(office=True, delegates=("b", "c"))
    zones.entries.pop(0)
    node = Node("b", ["a", "b", "c"], zones=zones)
    own = {"a": 0.0, "c": 0.0}
    node.converse(3.0, own)
    node.converse(30.0, own | {"n1": 5.0, "n2": -5.0})
    assert abs(offset(node)) < 1e-3


def test_who_has_its_time_from_here_is_not_followed() -> None:
    node = Node("b", ["a", "b"], zones=Directory(office=True, delegates=("b",)))
    node.converse(3.0, {"a": 0.0})
    names = {"n1": 5.0, "n2": 5.0, "e1": 5.0}
    node.converse(20.0, {"a": 0.0} | names, root=dict.fromkeys(names, "b"))
    assert abs(offset(node)) < 1e-3


def test_the_first_committee_follows_its_delegates_when_they_are_led() -> None:
    zones = Directory(office=False, delegates=("d", "e"))
    node = Node("a", ["a", "b", "c", "d", "e", "f"], zones=zones)
    own = dict.fromkeys("bcf", 0.0)
    node.converse(3.0, own | {"d": 0.0, "e": 0.0})
    assert node.machine.standing(node.now).root == "a"
    abroad = own | {"d": 5.0, "e": 5.0}
    node.converse(20.0, abroad)
    assert abs(offset(node)) < 0.1, "two members who say something else are no reason"
    node.converse(20.0, abroad, led=("d", "e"), root={"d": "n1", "e": "n1"})
    standing = node.machine.standing(node.now)
    assert standing.offset == pytest.approx(5.0, abs=1e-3)
    assert {*standing.follows} == {"d", "e"}
    node.converse(70.0, abroad, led=("d",), root={"d": "n1"})
    assert offset(node) == pytest.approx(5.0, abs=1e-3)


def test_one_delegate_that_lies_moves_nobody() -> None:
    zones = Directory(office=False, delegates=("d", "e"))
    node = Node("a", ["a", "b", "c", "d", "e", "f"], zones=zones)
    node.converse(3.0, dict.fromkeys("bcdef", 0.0))
    lying = dict.fromkeys("bcef", 0.0) | {"d": 500.0}
    node.converse(60.0, lying, led=("d", "e"), root={"d": "n1", "e": "n1"})
    assert abs(offset(node)) < 1e-3


def test_a_junior_follows_its_committee_whatever_delegates_say() -> None:
    zones = Directory(office=False, delegates=("d", "e"))
    node = Node("f", ["a", "b", "c", "d", "e", "f"], zones=zones)
    node.converse(10.0, dict.fromkeys("abcde", 0.0))
    lying = dict.fromkeys("abc", 0.0) | {"d": 5.0, "e": 5.0}
    node.converse(60.0, lying, led=("d", "e"), root={"d": "n1", "e": "n1"})
    assert abs(offset(node)) < 1e-3


def test_a_delegate_says_that_it_is_led_and_others_do_not() -> None:
    led = Node("b", ["a", "b"], zones=Directory(office=True, delegates=("b",)))
    led.converse(20.0, {"a": 0.0, "n1": 5.0, "n2": 5.0, "e1": 5.0})
    plain = Node("b", ["a", "b"])
    plain.converse(20.0, {"a": 0.0})
    assert [led.told_by("x").led, plain.told_by("x").led] == [True, False]
