"""What delegates tell supervisors, what those keep, and how they look after orphaned zones."""

from __future__ import annotations

from protocols.zones import MemberEntry, ZoneMembersKnown, ZonesSettings
from protocols.zones.answers import roster_digest
from protocols.zones.messages import (
    UNASKED,
    Contacts,
    ContactsRequest,
    MembersPage,
    MembersRequest,
    RosterDigest,
)
from tests.recording import Send
from tests.unit.zones.node import ZONE, ZonesNode

BEN, EVE = (MemberEntry(name, born) for name, born in (("ben", 1), ("eve", 2)))  # clockwise
DIGEST = roster_digest([("ben", 1), ("eve", 2)])


def watching() -> ZonesNode:
    """A supervisor of the zone "far", whose delegate is ben."""
    node = ZonesNode(base=False, settings=ZonesSettings(settle=0.0))
    node.enter()
    node.delegate_of("far", "ben", size=2)
    node.pass_time(0.5)
    node.effects.drain()
    return node


def informed() -> ZonesNode:
    """The same, with the roster fetched."""
    node = watching()
    node.receive("ben", RosterDigest("far", DIGEST))
    ((to, request),) = node.sent(MembersRequest)
    assert isinstance(request, MembersRequest)
    assert (to, request.zone, request.forwarded) == ("ben", "far", True)
    node.receive("ben", MembersPage(request.id, "", (BEN,), more=True))
    node.receive("ben", MembersPage(request.id, "ben", (EVE,)))
    node.effects.drain()
    return node


def test_a_supervisor_presents_itself_and_wants_to_be_in_the_management_zone() -> None:
    node = ZonesNode(base=False)
    assert node.zones.wants_management
    assert node.zones.presentation() == {"roles": "supervisor"}
    assert node.zones.zone == ""
    assert node.zones.delegates == ()


def test_a_delegate_presents_its_zone() -> None:
    node = ZonesNode()
    node.joins("b", 200, roles="broker,dht")
    node.joins("c", 300, roles="dht")
    node.pass_time(1.5)
    assert node.zones.presentation() == {
        "roles": "delegate",
        "zone": ZONE,
        "size": 3,
        "summary": "broker:1,delegate:1,dht:2",
    }
    node.enter()
    node.joins("d", 400)
    node.pass_time(1.5)
    assert node.management.attributes("me")["size"] == 4


def test_a_delegate_announces_what_changed_and_tells_it_again_now_and_then() -> None:
    node = ZonesNode()
    node.serve()
    node.joins("s", 1, manager=True, roles="supervisor")
    node.pass_time(0.2)
    digest = roster_digest([("me", 100)])
    assert node.sent(RosterDigest) == [Send("s", RosterDigest(ZONE, digest))]
    node.joins("b", 200)
    node.pass_time(1.2)
    lives = [(name, {"me": 100, "b": 200}[name]) for name in node.base.members()]
    assert node.sent(RosterDigest) == [Send("s", RosterDigest(ZONE, roster_digest(lives)))]
    node.pass_time(13.0)
    assert node.sent(RosterDigest) == [Send("s", RosterDigest(ZONE, roster_digest(lives)))]


def test_a_supervisor_fetches_a_roster_once_and_answers_from_it() -> None:
    node = informed()
    assert node.zones.knows_members_of("far")
    assert node.zones.counts.rosters_heard == 1
    node.receive("ben", RosterDigest("far", DIGEST))
    assert node.sent() == [], "it has that one"
    node.receive("ben", MembersRequest(5, "far", "ben", forwarded=True))
    assert node.sent() == [Send("ben", MembersPage(5, "ben", (EVE,), fresh=False))]
    asked = node.zones.ask_members("far", node.now)
    assert node.events() == [ZoneMembersKnown(asked, "far", (BEN, EVE), False, 0)]


def test_two_announcements_cause_one_fetch() -> None:
    node = watching()
    node.receive("ben", RosterDigest("far", DIGEST))
    node.receive("ben", RosterDigest("far", b"other"))
    assert len(node.sent(MembersRequest)) == 1


def test_only_delegates_of_a_zone_of_mine_are_heard() -> None:
    node = watching()
    node.receive("stranger", RosterDigest("far", DIGEST))
    node.receive("ben", RosterDigest("elsewhere", DIGEST))
    assert node.sent() == []
    assert node.zones.counts.strangers == 2


def test_a_fetch_in_vain_ends_quietly_and_the_next_digest_starts_another() -> None:
    node = watching()
    node.receive("ben", RosterDigest("far", DIGEST))
    node.effects.drain()
    node.pass_time(15.0)
    assert node.events() == []
    assert not node.zones.knows_members_of("far")
    node.receive("ben", RosterDigest("far", DIGEST))
    assert len(node.sent(MembersRequest)) == 1


def test_a_roster_goes_when_the_zone_vanishes_or_others_watch_it() -> None:
    node = informed()
    node.fails("ben", manager=True)
    node.pass_time(1.0)
    assert node.zones.knows_members_of("far"), "it is for the time without delegates"
    node.pass_time(31.0)
    assert not node.zones.knows_members_of("far")
    node = informed()
    heavier = [f"s{index}" for index in range(20)]
    for name in heavier:
        node.joins(name, 1, manager=True, roles="supervisor")
    node.pass_time(1.0)
    (entry,) = node.zones.zones()
    assert node.zones.knows_members_of("far") == ("me" in entry.supervisors)
    assert "me" not in entry.supervisors


def test_members_of_an_orphaned_zone_are_called() -> None:
    node = informed()
    node.fails("ben", manager=True)
    node.pass_time(1.0)
    calls = node.sent(Contacts)
    assert sorted(send.to for send in calls) == ["ben", "eve"]
    assert {send.msg for send in calls} == {Contacts(UNASKED, True)}
    node.pass_time(10.1)
    assert len(node.sent(Contacts)) == 2
    node.delegate_of("far", "eve", size=1)
    node.pass_time(30.0)
    assert node.sent(Contacts) == []


def test_a_delegate_that_its_supervisor_calls_asks_it() -> None:
    node = ZonesNode()
    node.serve()
    node.joins("s", 1, manager=True, roles="supervisor")
    node.pass_time(1.0)
    node.management.drop("s")  # not told yet: the entry still names it
    node.effects.drain()
    node.receive("s", Contacts(UNASKED, True))
    ((to, request),) = node.sent()
    assert to == "s"
    assert isinstance(request, ContactsRequest)


def test_leaving_the_management_zone_forgets_rosters() -> None:
    node = informed()
    node.zones.leave_management(node.now)
    node.zones.leave_management(node.now)
    assert not node.zones.knows_members_of("far")
    assert not node.zones.in_management
