"""Attributes: written by their owner, versioned, bounded; the owner always has the last word."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from protocols.membership.attributes import Attribute, Value, first_version, life_of
from protocols.membership.config import MembershipSettings
from protocols.membership.events import AttributesChanged
from protocols.membership.messages import Gossip
from tests.recording import Emit, SetTimer
from tests.unit.membership.member import BIRTH, NOW, ZONE, Member, about, events, record, sent

SMALL = MembershipSettings(value_bytes=16, member_bytes=64, max_keys=3)
FLOOR = first_version(BIRTH)


def theirs(key: str, version: int, value: Value | None = "v", owner: str = "a") -> Attribute:
    return Attribute(owner, key, FLOOR + version, value)


def gossip(*updates: Attribute) -> Gossip:
    return Gossip((), updates)


def test_setting_one_tells_everybody_soon_and_siblings_at_once() -> None:
    member = Member("a")
    member.membership.set_attribute("gpu", 4, member.now)
    assert member.effects.drain() == [
        SetTimer("gossip", about(member.now + 0.02)),
        Emit(AttributesChanged(ZONE, "me", ("gpu",))),
    ]
    (packet,) = sent(member.ring("gossip"), Gossip)
    assert packet == ("a", gossip(Attribute("me", "gpu", FLOOR + 1, 4)))
    assert member.membership.view.attributes("me") == {"gpu": 4}


def test_versions_rise_over_all_keys_and_a_removal_is_a_version_too() -> None:
    member = Member("a")
    command = member.membership
    command.set_attribute("gpu", 4, member.now)
    command.set_attribute("gpu", 4, member.now)  # nothing new: no version
    command.set_attribute("gpu", 4.0, member.now)  # equal, but not the same
    command.set_attribute("disk", "big", member.now)
    command.remove_attribute("gpu", member.now)
    (packet,) = sent(member.ring("gossip"), Gossip)
    assert packet.msg == gossip(
        Attribute("me", "gpu", FLOOR + 4, None), Attribute("me", "disk", FLOOR + 3, "big")
    )
    assert command.view.attributes("me") == {"disk": "big"}


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("", 1, "1 to 64 printable characters"),
        ("k" * 65, 1, "1 to 64 printable characters"),
        ("a\nb", 1, "1 to 64 printable characters"),
        ("k", None, "NoneType is neither text nor a number"),
        ("k", [1], "list is neither text nor a number"),
        ("k", b"raw", "bytes is neither text nor a number"),
        ("k", 1 << 63, "needs more than 64 bits"),
        ("k", "\ud800", "not valid Unicode"),
        ("k", "x" * 17, "17 bytes: at most 16"),
        ("k", "ä" * 9, "18 bytes: at most 16"),
    ],
)
def test_what_cannot_be_set_says_why_and_changes_nothing(key: str, value: Value, hint: str) -> None:
    member = Member("a", settings=SMALL)
    with pytest.raises(LocalProtocolError, match=hint):
        member.membership.set_attribute(key, value, member.now)
    assert member.effects.drain() == []
    assert member.membership.view.attributes("me") == {}


def test_all_attributes_of_a_member_together_are_bounded() -> None:
    member = Member("a", settings=SMALL)
    for key in "xyz":
        member.membership.set_attribute(key, "v" * 16, member.now)
    with pytest.raises(LocalProtocolError, match="at most 3 keys"):
        member.membership.set_attribute("more", 1, member.now)
    member = Member("a", settings=MembershipSettings(value_bytes=16, member_bytes=64, max_keys=9))
    for key in "xyz":
        member.membership.set_attribute(key, "v" * 16, member.now)
    with pytest.raises(LocalProtocolError, match="at most 64 bytes"):
        member.membership.set_attribute("more", "v" * 16, member.now)
    member.membership.remove_attribute("x", member.now)
    member.membership.set_attribute("more", "v" * 8, member.now)


def test_removing_what_is_not_set_is_an_error() -> None:
    member = Member("a")
    with pytest.raises(LocalProtocolError, match="nothing to remove"):
        member.membership.remove_attribute("gpu", member.now)


def test_a_node_that_left_has_no_attributes_to_set() -> None:
    member = Member("a")
    member.membership.leave(member.now)
    with pytest.raises(LocalProtocolError, match="is no member of zone 'z'"):
        member.membership.set_attribute("gpu", 1, member.now)


def test_first_attributes_are_there_from_the_start() -> None:
    member = Member(attributes={"gpu": 4})
    assert member.membership.view.attributes("me") == {"gpu": 4}
    assert events(member.started) == [AttributesChanged(ZONE, "me", ("gpu",))]


def test_others_see_the_newest_version_and_never_an_older_one() -> None:
    member = Member("a")
    effects = member.hear("a", gossip(theirs("gpu", 2, 4), theirs("disk", 3, "big")))
    assert events(effects) == [AttributesChanged(ZONE, "a", ("gpu", "disk"))]
    assert member.hear("a", gossip(theirs("gpu", 1, 99), theirs("gpu", 2, 99))) == []
    effects = member.hear("a", gossip(theirs("gpu", 4, None)))
    assert events(effects) == [AttributesChanged(ZONE, "a", ("gpu",))]
    assert member.hear("a", gossip(theirs("gpu", 2, 4))) == [], "removed, and it stays so"
    assert member.membership.view.attributes("a") == {"disk": "big"}


def test_attributes_of_a_stranger_or_of_an_earlier_life_are_ignored() -> None:
    member = Member("a")
    old = Attribute("a", "gpu", first_version(BIRTH - 1), 4)
    assert member.hear("a", gossip(old, theirs("gpu", 1, 1, owner="stranger"))) == []
    assert member.membership.view.attributes("stranger") == {}


def test_a_restart_drops_what_its_earlier_life_had_set() -> None:
    member = Member("a")
    member.hear("a", gossip(theirs("gpu", 1, 4)))
    member.hear("b", Gossip((record("a", incarnation=BIRTH + 9, life=2, born=BIRTH + 9),)))
    assert member.membership.view.attributes("a") == {}
    assert member.hear("b", gossip(theirs("gpu", 5, 4))) == []


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (theirs("k", 1, "x" * 17), "attribute-too-large"),
        (theirs("k\x07", 1), "bad-attribute-key"),
        (Attribute("a", "k", (1 << 63) - 1, 1), "far-future-version"),
    ],
)
def test_an_attribute_that_cannot_be_true_is_refused(update: Attribute, reason: str) -> None:
    member = Member("a", settings=SMALL)
    assert member.refusal("a", gossip(update)) == reason
    assert member.membership.view.attributes("a") == {}


def test_more_than_a_member_may_have_is_refused() -> None:
    member = Member("a", settings=SMALL)
    for number in range(3):
        member.hear("a", gossip(theirs(f"k{number}", number + 1)))
    assert member.refusal("a", gossip(theirs("k3", 9))) == "attribute-too-large"


def test_what_somebody_else_wrote_in_my_name_is_overruled() -> None:
    member = Member("a")
    member.membership.set_attribute("gpu", 4, member.now)
    member.ring("gossip")
    forged = Attribute("me", "gpu", FLOOR + 1000, 0)
    unheard_of = Attribute("me", "root", FLOOR + 1001, 1)
    member.hear("a", gossip(forged, unheard_of))
    assert member.membership.view.attributes("me") == {"gpu": 4}
    (packet,) = sent(member.ring("gossip"), Gossip)
    assert packet.msg == gossip(
        Attribute("me", "root", FLOOR + 1002, None), Attribute("me", "gpu", FLOOR + 1001, 4)
    )


def test_versions_of_a_life_begin_above_all_of_an_earlier_one() -> None:
    earlier, later = first_version(BIRTH), first_version(BIRTH + 1)
    assert later - earlier == 1 << 20
    assert life_of(later) == life_of(later + 5) == BIRTH + 1
    assert NOW * 1000 == BIRTH
