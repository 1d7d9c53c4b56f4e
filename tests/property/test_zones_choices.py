"""Choices that every node must make alike, for any members: delegates, supervisors, contacts."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import booleans, dictionaries, integers, lists, sets, text, tuples

from overlay.ids import vid_of
from protocols.zones.answers import after, page_of, place
from protocols.zones.config import ZonesSettings
from protocols.zones.contacts import choose, pack, unpack
from protocols.zones.directory import assign
from protocols.zones.election import elect
from protocols.zones.interface import MemberEntry
from protocols.zones.messages import Contact, MembersRequest
from tests.unit.zones.node import FixedMembership

NAMES = text("abcdefgh", min_size=1, max_size=3)
MEMBERS = dictionaries(NAMES, tuples(integers(1, 5), booleans(), booleans()), max_size=12)


def view_of(members: dict[str, tuple[int, bool, bool]], order: int = 1) -> FixedMembership:
    view = FixedMembership("z", "me", 3)
    for name in list(members)[::order]:
        born, serves, willing = members[name]
        said = {"roles": "delegate"} if serves else {}
        view.put(name, born, **said, **({} if willing else {"delegate": False}))
    return view


@given(MEMBERS, integers(1, 4))
def test_all_elect_the_same_whatever_the_order_of_news(
    members: dict[str, tuple[int, bool, bool]], count: int
) -> None:
    elected = elect(view_of(members), count)
    assert elected == elect(view_of(members, -1), count)
    willing = 1 + sum(willing for _, _, willing in members.values())
    assert len(elected) == min(count, willing)
    names = [name for *_, name in elected]
    serving = [name for name, (_, serves, willing) in members.items() if serves and willing]
    assert len([name for name in names if name in serving]) == min(count, len(serving))


@given(MEMBERS, integers(1, 4), NAMES)
def test_a_newcomer_that_does_not_serve_displaces_nobody_who_does(
    members: dict[str, tuple[int, bool, bool]], count: int, newcomer: str
) -> None:
    if newcomer in members:
        return
    before = [name for idle, *_, name in elect(view_of(members), count) if not idle]
    after_it = [name for *_, name in elect(view_of({**members, newcomer: (0, False, True)}), count)]
    assert after_it[: len(before)] == before


@given(NAMES, sets(NAMES, max_size=8), integers(1, 4), NAMES)
def test_a_supervisor_that_goes_moves_no_zone_of_another(
    zone: str, supervisors: set[str], count: int, gone: str
) -> None:
    before = assign(zone, sorted(supervisors), count)
    assert before == assign(zone, sorted(supervisors, reverse=True), count)
    assert len(before) == min(count, len(supervisors))
    left = assign(zone, supervisors - {gone}, count)
    assert [name for name in before if name != gone] == list(left[: len(before) - (gone in before)])


@given(sets(NAMES, max_size=40), integers(1, 7), NAMES)
def test_pages_cover_a_zone_once_whoever_the_cursor_is(
    names: set[str], size: int, gone: str
) -> None:
    ring = sorted(names, key=place)
    settings = ZonesSettings(page_members=size)
    found: list[str] = []
    cursor = ""
    while True:
        chosen = after(ring, cursor, size)
        rest = bool(chosen) and chosen[-1] != ring[-1]
        page = page_of(
            MembersRequest(1, "z", cursor),
            [MemberEntry(name, 1) for name in chosen],
            rest=rest,
            fresh=True,
            settings=settings,
        )
        found += [member.name for member in page.members]
        if not page.more:
            break
        cursor = found[-1]
    assert found == ring
    assert list(after(ring, gone, 99)) == [name for name in ring if place(name) > place(gone)]


@given(
    lists(tuples(NAMES, lists(text("abc:/.1", min_size=1, max_size=300), max_size=9)), max_size=9)
)
def test_contacts_packed_are_the_contacts_unpacked(told: list[tuple[str, list[str]]]) -> None:
    contacts = [Contact(name, tuple(endpoints[:8])) for name, endpoints in told]
    packed = pack(contacts)
    assert len(packed.encode()) <= 1000
    found = unpack(packed)
    short = [
        one
        for one in contacts[: len(packed.split("\n"))]
        if all(len(e) <= 256 for e in one.endpoints)
    ]
    assert found == short[: len(found)]
    assert all(contact in contacts for contact in found)


@given(text(max_size=400))
def test_any_text_is_read_without_harm(told: str) -> None:
    for contact in unpack(told):
        assert 0 < len(contact.name.encode()) <= 64
        assert vid_of(contact.name) >= 0


@given(dictionaries(NAMES, tuples(integers(0, 2), booleans()), max_size=12), integers(1, 6))
def test_contacts_of_a_zone_are_others_and_of_several_zones(
    members: dict[str, tuple[int, bool]], count: int
) -> None:
    view = FixedMembership("@management", "me", 1)
    for name, (zone, watches) in members.items():
        role = {"roles": "supervisor"} if watches else {"roles": "delegate", "zone": f"z{zone}"}
        view.put(name, 1, **role)
    names = [contact.name for contact in choose(view, "z0", count)]
    others = [name for name, (zone, watches) in members.items() if watches or zone]
    assert len(names) == len(set(names)) == min(count, len(others))
    assert set(names) <= set(others)
    zones = {members[name][0] for name in others if not members[name][1]}
    watchers = sum(watches for _, watches in members.values())
    if count >= min(2, watchers) + len(zones):
        assert {members[name][0] for name in names if not members[name][1]} == zones
