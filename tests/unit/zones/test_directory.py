"""The table of zones: from claims in the management zone, or as a delegate told it."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from protocols.membership.attributes import Value
from protocols.zones import ZoneAppeared, ZoneChanged, ZoneEntry, ZonesSettings, ZoneVanished
from protocols.zones.directory import assign, digest_of
from protocols.zones.messages import TablePage, TableRequest
from tests.recording import Send
from tests.unit.zones.node import SETTINGS, ZonesNode


def test_supervisors_share_zones_evenly_and_move_only_what_they_must() -> None:
    names = [f"s{index}" for index in range(5)]
    zones = [f"z{index}" for index in range(200)]
    before = {zone: assign(zone, names, 2) for zone in zones}
    load = {name: sum(name in watch for watch in before.values()) for name in names}
    assert sum(load.values()) == 400
    assert all(50 <= count <= 110 for count in load.values()), load
    for zone in zones:
        after = assign(zone, names[1:], 2)
        assert after == assign(zone, reversed(names[1:]), 2)
        kept = tuple(name for name in before[zone] if name != "s0")
        assert after[: len(kept)] == kept, "a supervisor that lives lost a zone"
    assert assign("z", [], 2) == ()


def test_delegates_make_a_zone_and_the_largest_part_speaks_for_it() -> None:
    node = ZonesNode(base=False)
    node.enter()
    node.effects.drain()
    node.delegate_of("b", "b2", size=3, born=200)
    node.delegate_of("b", "b1", size=4, born=100)
    assert node.events() == [], "changes wait for company"
    node.pass_time(0.2)
    entry = ZoneEntry("b", 4, ("b1", "b2"), ("me",))
    assert node.events() == [ZoneAppeared(entry)]
    assert node.zones.zones() == (entry,)
    node.says("b1", manager=True, size=5)
    node.pass_time(0.2)
    assert node.events() == [ZoneChanged(ZoneEntry("b", 5, ("b1", "b2"), ("me",)))]
    node.fails("b1", manager=True)
    node.pass_time(0.2)
    assert node.zones.zones() == (ZoneEntry("b", 3, ("b2",), ("me",)),)
    node.zones.audit()


def test_a_zone_without_delegates_stays_for_a_while_and_then_vanishes() -> None:
    node = ZonesNode(base=False)
    node.enter()
    node.delegate_of("b", "b1", size=4)
    node.pass_time(1.0)
    node.fails("b1", manager=True)
    node.pass_time(29.0)
    assert node.zones.zones() == (ZoneEntry("b", 4, (), ("me",)),)
    node.effects.drain()
    node.pass_time(2.0)
    assert node.zones.zones() == ()
    assert node.events() == [ZoneVanished("b")]


def test_a_zone_whose_next_delegate_comes_in_time_does_not_vanish() -> None:
    node = ZonesNode(base=False)
    node.enter()
    node.delegate_of("b", "b1", size=4)
    node.pass_time(1.0)
    node.fails("b1", manager=True)
    node.pass_time(20.0)
    node.delegate_of("b", "b2", size=3)
    node.pass_time(60.0)
    assert node.zones.zones() == (ZoneEntry("b", 3, ("b2",), ("me",)),)


def test_who_changes_its_zone_takes_its_word_along() -> None:
    node = ZonesNode(base=False)
    node.enter()
    node.delegate_of("b", "x", size=4)
    node.pass_time(1.0)
    node.says("x", manager=True, zone="c")
    node.pass_time(1.0)
    assert [(entry.name, entry.delegates) for entry in node.zones.zones()] == [
        ("b", ()),
        ("c", ("x",)),
    ]
    node.zones.audit()


@pytest.mark.parametrize(
    "said",
    [
        {"zone": "@management"},
        {"zone": "a\x07"},
        {"zone": 7},
        {"size": 0},
        {"size": 2_000_000},
        {"size": "many"},
        {"summary": "x" * 513},
        {"summary": 7},
    ],
)
def test_a_claim_that_breaks_a_rule_is_ignored_and_counted(said: dict[str, Value]) -> None:
    node = ZonesNode(base=False)
    node.enter()
    claim = {"roles": "delegate", "zone": "b", "size": 1, "summary": "", **said}
    node.joins("x", 1, manager=True, **claim)
    node.pass_time(1.0)
    assert node.zones.zones() == ()
    assert node.zones.counts.claims_refused > 0


def test_who_lacks_the_right_stands_for_no_zone_and_supervises_none() -> None:
    node = ZonesNode(
        may_join=lambda name, zone: (name, zone) != ("x", "b"),
        may_be=lambda name, role: (name, role) != ("y", "supervisor"),
    )
    node.serve()
    node.delegate_of("b", "x")
    node.delegate_of("c", "x2")
    node.joins("y", 1, manager=True, roles="supervisor")
    node.pass_time(1.0)
    assert [entry.name for entry in node.zones.zones()] == ["c", "hall"]
    assert all(entry.supervisors == () for entry in node.zones.zones())
    assert node.zones.counts.claims_refused >= 2


def test_supervisors_that_come_and_go_change_all_entries() -> None:
    node = ZonesNode()
    node.serve()
    node.delegate_of("b", "x")
    for name in ("s1", "s2", "s3"):
        node.joins(name, 1, manager=True, roles="supervisor")
    node.pass_time(1.0)
    for entry in node.zones.zones():
        assert entry.supervisors == assign(entry.name, ["s1", "s2", "s3"], 2)
    node.fails("s2", manager=True)
    node.pass_time(1.0)
    for entry in node.zones.zones():
        assert entry.supervisors == assign(entry.name, ["s1", "s3"], 2)


def test_more_zones_than_allowed_are_ignored_and_counted() -> None:
    node = ZonesNode(base=False, settings=ZonesSettings(max_zones=2))
    node.enter()
    for zone in "bcd":
        node.delegate_of(zone, f"{zone}1")
    node.pass_time(1.0)
    assert [entry.name for entry in node.zones.zones()] == ["b", "c"]
    assert node.zones.counts.zones_ignored == 1


# -- as a table told -------------------------------------------------------------------------------


def member(born: int = 900) -> ZonesNode:
    """A plain member with two delegates that has just asked one of them."""
    node = ZonesNode(born=born)
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    while not any(isinstance(effect, Send) for effect in node.effects.recorded):
        node.pass_time(0.1)
    return node


def asked(node: ZonesNode) -> tuple[str, TableRequest]:
    ((to, request),) = node.sent(TableRequest)
    assert isinstance(request, TableRequest)
    return to, request


def test_a_member_takes_the_table_when_all_pages_came_in_any_order() -> None:
    node = member()
    to, request = asked(node)
    assert request.digest == digest_of(())
    pages = [
        TablePage(request.id, b"d", 0, 2, (ZoneEntry("b", 1), ZoneEntry("c", 2))),
        TablePage(request.id, b"d", 1, 2, (ZoneEntry("d", 3),)),
    ]
    node.receive(to, pages[1])
    assert node.zones.zones() == ()
    node.receive(to, pages[0])
    assert [entry.name for entry in node.zones.zones()] == ["b", "c", "d"]
    assert node.events() == [ZoneAppeared(entry) for page in pages for entry in page.zones]
    node.receive(to, pages[0])
    assert node.zones.counts.late == 1
    node.pass_time(20.0)
    _, later = asked_last(node)
    assert later.digest == digest_of(node.zones.zones())


def asked_last(node: ZonesNode) -> tuple[str, TableRequest]:
    send = node.sent(TableRequest)[-1]
    assert isinstance(send.msg, TableRequest)
    return send.to, send.msg


def test_an_unchanged_table_is_not_told_again() -> None:
    node = member()
    to, request = asked(node)
    node.receive(to, TablePage(request.id, b"d", 0, 1, (ZoneEntry("b", 1),)))
    node.effects.drain()
    while True:
        node.pass_time(0.5)
        if sent := node.sent(TableRequest):
            break
    again = sent[0].msg
    assert isinstance(again, TableRequest)
    node.receive(sent[0].to, TablePage(again.id, again.digest))
    assert [entry.name for entry in node.zones.zones()] == ["b"]
    assert node.zones.counts.tables_heard == 2


def test_a_silent_delegate_is_passed_over() -> None:
    node = member()
    first, _ = asked(node)
    node.pass_time(1.1)
    second, _ = asked(node)
    assert {first, second} == {"a", "b"}


def test_pages_that_nobody_asked_for_change_nothing() -> None:
    node = member()
    to, request = asked(node)
    other = "b" if to == "a" else "a"
    node.receive(other, TablePage(request.id, b"d", 0, 1, (ZoneEntry("x", 1),)))
    node.receive(to, TablePage(request.id + 1, b"d", 0, 1, (ZoneEntry("x", 1),)))
    assert node.zones.zones() == ()
    assert node.zones.counts.late == 2


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (TablePage(0, b"d", 2, 2), "zones-bad-page"),
        (TablePage(0, b"d", 0, 2000), "zones-too-many"),
        (TablePage(0, b"d", 0, 1, (ZoneEntry("@x", 1),)), "zones-bad-name"),
    ],
)
def test_bad_pages_are_refused(page: TablePage, reason: str) -> None:
    node = member()
    to, request = asked(node)
    bad = TablePage(request.id, page.digest, page.page, page.pages, page.zones)
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive(to, bad)
    assert refused.value.reason == reason
    assert node.zones.zones() == ()


def test_a_delegate_tells_members_all_zones_in_pages() -> None:
    node = ZonesNode()
    node.joins("mate", 200)
    node.serve()
    for index in range(70):
        node.delegate_of(f"z{index:02}", f"d{index}")
    node.pass_time(1.0)
    node.effects.drain()
    node.receive("mate", TableRequest(5))
    pages = [send.msg for send in node.sent() if isinstance(send.msg, TablePage)]
    assert [(page.page, page.pages, len(page.zones)) for page in pages] == [(0, 2, 64), (1, 2, 7)]
    assert tuple(entry for page in pages for entry in page.zones) == node.zones.zones()
    digest = pages[0].digest
    node.receive("mate", TableRequest(6, digest))
    assert node.sent() == [Send("mate", TablePage(6, digest))]
    node.receive("stranger", TableRequest(7))
    assert node.sent() == []
    assert node.zones.counts.strangers == 1


def test_a_new_delegate_keeps_what_it_was_told_until_it_shows_or_vanishes() -> None:
    node = member()
    to, request = asked(node)
    table = (ZoneEntry("b", 1, ("x",)), ZoneEntry("c", 2, ("y",)), ZoneEntry("hall", 3))
    node.receive(to, TablePage(request.id, b"d", 0, 1, table))
    node.fails("a")
    node.fails("b")
    node.pass_time(1.0)
    node.enter()
    node.pass_time(1.0)
    assert [entry.name for entry in node.zones.zones()] == ["b", "c", "hall"]
    node.delegate_of("b", "x")
    node.pass_time(SETTINGS.vanish_after)
    assert [entry.name for entry in node.zones.zones()] == ["b", "hall"]
    node.zones.leave_management(node.now)
    assert [entry.name for entry in node.zones.zones()] == ["b", "hall"]
    node.zones.check_invariants()


def test_a_sibling_that_cannot_wait_has_the_table_asked_for_at_once_but_not_too_often() -> None:
    node = member()
    to, request = asked(node)
    node.receive(to, TablePage(request.id, b"d", 0, 1, (ZoneEntry("b", 1),)))
    node.effects.drain()
    for _ in range(3):
        node.zones.refresh(node.now)
    node.pass_time(0.9 * SETTINGS.ask_timeout)
    assert node.sent(TableRequest) == [], "it was just asked for"
    node.pass_time(0.2 * SETTINGS.ask_timeout)
    assert len(node.sent(TableRequest)) == 1


def test_who_is_in_the_management_zone_knows_the_zones_and_asks_nobody() -> None:
    node = ZonesNode(base=False)
    node.enter()
    node.effects.drain()
    node.zones.refresh(node.now)
    node.pass_time(5.0)
    assert node.sent(TableRequest) == []
