"""Entering a zone, letting others in, and one name for one node."""

from __future__ import annotations

import pytest

from overlay.protocol import ContactLearned, NetworkChanged, PeerMet
from protocols.membership.attributes import Attribute, first_version
from protocols.membership.config import MembershipSettings
from protocols.membership.events import MemberFailed, MemberJoined, NameTaken, ZoneEntered
from protocols.membership.horizon import CLOCK_ERROR
from protocols.membership.messages import Ack, Gossip, Join, JoinRefused, JoinReply, Ping
from protocols.membership.records import MAX_INCARNATION, Record
from tests.recording import Emit, Send, SetTimer, Store
from tests.unit.membership.member import (
    ALIVE,
    BIRTH,
    DEAD,
    LEFT,
    NOW,
    ZONE,
    Member,
    events,
    record,
    sent,
)

TAKEN = "zone 'z' has a member called 'new': choose another name"


def a_join(incarnation: int = BIRTH + 5, life: int = 77) -> Join:
    return Join(life, incarnation, incarnation, ("tcp://h:1",))


def newcomer(join: Join, name: str = "new") -> Record:
    return Record(name, join.incarnation, ALIVE, join.life, join.born, join.endpoints)


# -- asking ---------------------------------------------------------------------------------------


def test_a_life_begins_at_the_clock_and_asks_all_contacts_at_once() -> None:
    member = Member(contacts=["a", "b", "me"], here=lambda: ("tcp://me:1",))
    join = Join(member.life, BIRTH, BIRTH, ("tcp://me:1",))
    assert member.started[0] == Store(b"incarnation", str(BIRTH).encode(), "incarnation")
    assert {one.to: one.msg for one in sent(member.started, Join)} == {"a": join, "b": join}
    (retry,) = [one for one in member.started if isinstance(one, SetTimer) and one.key == "join"]
    assert 0.375 <= retry.at - NOW <= 0.625
    assert not member.membership.entered


def test_a_life_begins_above_what_the_disk_kept() -> None:
    assert Member(kept={b"incarnation": b"9000000"}).view("me").incarnation == 9_000_001
    assert Member(kept={b"incarnation": b"7"}).view("me").incarnation == BIRTH
    assert Member(kept={b"incarnation": b"rubbish"}).view("me").incarnation == BIRTH


def test_the_view_of_a_contact_makes_a_member_piece_by_piece() -> None:
    member = Member(contacts=["a"])
    first = member.hear("a", JoinReply(member.life, 0, 2, 0, (record("a"),)))
    assert events(first) == [MemberJoined(ZONE, "a", BIRTH)]
    assert "join" in member.effects.timers, "half a view is not enough"
    far = Attribute("b", "k", first_version(BIRTH) + 1, 1)
    second = member.hear("a", JoinReply(member.life, 1, 2, 0, (record("b"),), (far,)))
    assert events(second)[0] == ZoneEntered(ZONE, "a")
    assert member.membership.entered
    assert member.membership.view.attributes("b") == {"k": 1}
    assert "join" not in member.effects.timers


@pytest.mark.parametrize("case", ["namesake", "not asked"])
def test_a_reply_that_is_not_for_me_changes_nothing(case: str) -> None:
    member = Member(contacts=["a"])
    src, life = ("a", 5) if case == "namesake" else ("b", member.life)
    assert member.hear(src, JoinReply(life, 0, 1, 0, (record("c"),))) == []


def test_contacts_that_keep_silent_are_asked_again_ever_more_seldom() -> None:
    member = Member(contacts=["a"])
    pauses = []
    for _ in range(12):
        began = member.now
        assert [one.to for one in sent(member.ring("join"), Join)] == ["a"]
        pauses.append(member.now - began)
    assert pauses[0] < 1
    assert 7.5 <= pauses[-1] <= 12.5


def test_a_contact_that_is_a_member_by_now_is_asked_no_more() -> None:
    member = Member(contacts=["a", "b"])
    member.hear("a", JoinReply(member.life, 0, 1, 0, (record("a"), record("b"))))
    assert sent(member.ring("join"), Join) == []
    assert "join" not in member.effects.timers


def test_a_peer_that_answered_at_an_address_is_asked_a_few_times() -> None:
    member = Member("a")
    assert member.tell(PeerMet("a", ())) == []
    asked = sent(member.tell(PeerMet("b", ())), Join)
    while "join" in member.effects.timers:
        asked += sent(member.ring("join"), Join)
    assert [one.to for one in asked] == ["b"] * 6


def test_a_peer_that_says_to_be_of_another_zone_is_not_asked() -> None:
    member = Member()
    assert sent(member.tell(PeerMet("a", (), "elsewhere")), Join) == []
    assert [one.to for one in sent(member.tell(PeerMet("a", (), ZONE)), Join)] == ["a"]


def test_an_address_that_came_is_told_and_no_change_is_not() -> None:
    here = ["tcp://me:1"]
    member = Member("a", here=lambda: tuple(here))
    assert member.tell(NetworkChanged()) == []
    here.append("tcp://me:2")
    member.tell(NetworkChanged())
    assert member.view("me").endpoints == ("tcp://me:1", "tcp://me:2")
    assert member.view("me").incarnation == BIRTH + 1


def test_an_earlier_life_that_came_further_is_overtaken() -> None:
    member = Member(contacts=["a"], attributes={"gpu": 4})
    floor = BIRTH + 500
    effects = member.hear("a", JoinReply(member.life, 0, 1, floor, (record("a"),)))
    mine = member.view("me")
    assert (mine.incarnation, mine.born) == (floor + 1, floor + 1)
    attribute = Attribute("me", "gpu", first_version(floor + 1) + 1, 4)
    again = Join(member.life, floor + 1, floor + 1, (), (attribute,))
    assert sent(effects, Join) == [("a", again)]
    assert Store(b"incarnation", str(floor + 1).encode(), "incarnation") in effects


def test_a_floor_that_nobody_can_rise_above_is_refused() -> None:
    member = Member(contacts=["a"])
    reply = JoinReply(member.life, 0, 1, MAX_INCARNATION, (record("a"),))
    assert member.refusal("a", reply) == "far-future-incarnation"


def test_clocks_far_ahead_of_mine_are_believed_from_a_contact_only() -> None:
    later = BIRTH + 50 * CLOCK_ERROR
    member = Member("x", contacts=["a"])
    assert member.refusal("x", Gossip((record("b", incarnation=later),)))
    member.hear("a", JoinReply(member.life, 0, 1, 0, (record("a", incarnation=later),)))
    member.hear("a", Gossip((record("b", incarnation=later + 1000),)))
    assert member.view("b").state == ALIVE


# -- letting in -----------------------------------------------------------------------------------


def test_a_newcomer_is_admitted_told_everybody_and_passed_on() -> None:
    member = Member("a")
    join = a_join()
    effects = member.hear("new", join)
    assert events(effects) == [
        ContactLearned("new", ("tcp://h:1",)),
        MemberJoined(ZONE, "new", BIRTH + 5),
    ]
    (reply,) = sent(effects, JoinReply)
    everybody = (member.view("me"), record("a"), newcomer(join))
    assert reply == ("new", JoinReply(77, 0, 1, 0, everybody))
    packets = sent(member.ring("gossip"), Gossip)
    assert {packet.msg for packet in packets} == {Gossip((newcomer(join),))}


def test_a_large_view_is_told_in_pieces() -> None:
    names = [f"n{number}" for number in range(200)]
    member = Member(*names)
    replies = [one.msg for one in sent(member.hear("new", a_join()), JoinReply)]
    assert [len(one.news) for one in replies if isinstance(one, JoinReply)] == [64, 64, 64, 10]
    assert [one.piece for one in replies if isinstance(one, JoinReply)] == [0, 1, 2, 3]


@pytest.mark.parametrize("state", [DEAD, LEFT])
def test_the_name_of_one_who_is_gone_is_free_above_its_incarnation(state: object) -> None:
    member = Member("a")
    assert state in (DEAD, LEFT)
    member.hear("a", Gossip((record("new"),)))
    effects = member.hear("a", Gossip((record("new", state, BIRTH + 9),)))  # type: ignore[arg-type]
    for ping in sent(effects, Ping):  # whether that verdict is true
        assert isinstance(ping.msg, Ping)
        member.ring(("wait", ping.msg.sequence))
    effects = member.hear("new", a_join(BIRTH + 5))
    (reply,) = sent(effects, JoinReply)
    assert isinstance(reply.msg, JoinReply)
    assert reply.msg.floor == BIRTH + 9, "it must ask again, above its earlier life"
    assert "new" not in member.membership.view
    member.hear("new", a_join(BIRTH + 10))
    assert member.view("new").life == 77


def confronted(member: Member) -> int:
    """Let a second "new" ask; the number of the question to the first one."""
    effects = member.hear("new", a_join())
    assert sent(effects, JoinReply) == []
    (question,) = sent(effects, Ping)
    assert isinstance(question.msg, Ping)
    assert question.to == "new"
    return question.msg.sequence


def test_a_duplicate_name_is_refused_to_the_newer_node_and_says_so() -> None:
    member = Member("new", "a")
    sequence = confronted(member)
    effects = member.hear("new", Ack(sequence, 1, 0))  # the life that is known
    assert sent(effects, JoinRefused) == [("new", JoinRefused(77, TAKEN))]
    assert member.view("new") == record("new")


def test_a_restart_is_admitted_when_its_earlier_life_keeps_silent() -> None:
    member = Member("new", "a")
    sequence = confronted(member)
    member.hear("new", Ack(sequence, 77, 0))  # the newcomer's own answer proves nothing
    assert member.view("new").life == 1
    effects = member.ring(("wait", sequence))
    assert events(effects)[-2:] == [
        MemberFailed(ZONE, "new", restarted=True),
        MemberJoined(ZONE, "new", BIRTH + 5),
    ]
    assert len(sent(effects, JoinReply)) == 1
    assert member.view("new") == newcomer(a_join())


def test_asking_twice_confronts_once() -> None:
    member = Member("new", "a")
    confronted(member)
    assert member.hear("new", a_join()) == []


def test_my_own_name_is_taken() -> None:
    member = Member("a")
    (refusal,) = sent(member.hear("me", a_join()), JoinRefused)
    assert isinstance(refusal.msg, JoinRefused)
    assert "has a member called 'me'" in refusal.msg.reason


def test_whoever_is_refused_stops_and_says_why() -> None:
    member = Member(contacts=["a"])
    assert member.hear("b", JoinRefused(member.life, "no")) == [], "nobody asked b"
    assert member.hear("a", JoinRefused(5, "no")) == [], "meant for another life"
    effects = member.hear("a", JoinRefused(member.life, TAKEN))
    assert effects[-1] == Emit(NameTaken(ZONE, "me", TAKEN))
    assert member.membership.stopped
    assert member.effects.timers == {}
    assert member.hear("a", Ping(1, 0)) == [], "it is silent"


def test_a_certificate_for_other_zones_is_refused() -> None:
    member = Member("a", may_join=lambda name, zone: (name, zone) != ("new", ZONE))
    assert member.refusal("new", a_join()) == "zone-not-allowed"
    reason = "your certificate does not allow zone 'z'"
    assert member.effects.drain() == [Send("new", JoinRefused(77, reason))]
    assert member.refusal("a", Gossip((record("new"),))) == "zone-not-allowed"


def test_a_full_zone_is_full() -> None:
    member = Member("a", "b", settings=MembershipSettings(max_members=3))
    assert member.refusal("new", a_join()) == "too-many-members"
    assert member.refusal("a", Gossip((record("c"),))) == "too-many-members"
    member.bury("a", "b")
    member.hear("new", a_join())
    assert "new" in member.membership.view


def test_a_clock_far_ahead_is_told_to_be_set() -> None:
    member = Member("a")
    assert member.refusal("new", a_join(BIRTH + 3 * CLOCK_ERROR)) == "far-future-incarnation"
    (refusal,) = sent(member.effects.drain(), JoinRefused)
    assert refusal.msg == JoinRefused(77, "your clock is 3 days ahead of this zone's: set it")
