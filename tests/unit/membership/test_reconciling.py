"""Anti-entropy: views that differ are mended, bucket by bucket."""

from __future__ import annotations

import pytest

from protocols.membership.attributes import Attribute, first_version
from protocols.membership.config import MembershipSettings
from protocols.membership.events import MemberJoined, MemberLeft
from protocols.membership.messages import (
    BUCKET_BYTES,
    BUCKETS,
    Ack,
    Ping,
    Summary,
    Sync,
    SyncRecords,
    SyncSummary,
)
from protocols.membership.table import MemberTable, bucket_of
from tests.recording import Send
from tests.unit.membership.member import (
    ALIVE,
    BIRTH,
    DEAD,
    LEFT,
    ZONE,
    Member,
    events,
    record,
    sent,
)

LAN = MembershipSettings()
NOTHING = bytes(BUCKETS * BUCKET_BYTES)


def table(member: Member) -> MemberTable:
    return member.membership._core.table


def summary(name: str, incarnation: int = BIRTH, state: int = 0, life: int = 1) -> Summary:
    return Summary(name, incarnation, life, state, 0)


def asked(member: Member) -> int:
    """Make it begin a Sync with "a"; its number."""
    effects = member.hear("a", Ping(1, 12345))
    (sync,) = sent(effects, Sync)
    assert sync == ("a", Sync(1, table(member).packed_buckets()))
    return 1


def test_equal_digests_cost_nothing_more() -> None:
    member = Member("a", "b")
    effects = member.hear("a", Ping(1, table(member).digest))
    assert effects == [Send("a", Ack(1, member.life, table(member).digest))]


def test_a_difference_starts_one_sync_and_not_another_at_once() -> None:
    member = Member("a", "b")
    asked(member)
    assert sent(member.hear("b", Ping(2, 999)), Sync) == []
    member.ring("sync-timeout")
    assert len(sent(member.hear("b", Ping(3, 999)), Sync)) == 1, "the other never answered"


def test_a_difference_that_cannot_be_mended_is_looked_at_ever_more_seldom() -> None:
    member = Member("a")
    pauses: list[float] = []
    last = member.now
    for number in range(600):
        member.now += 0.1
        for sync in sent(member.hear("a", Ping(number, 999)), Sync):
            assert isinstance(sync.msg, Sync)
            member.hear("a", SyncSummary(sync.msg.sequence, (), ()))
            pauses.append(member.now - last)
            last = member.now
    assert pauses[1] < 1
    assert pauses[-1] == pytest.approx(LAN.sync_lazy, abs=0.11)


def test_a_sync_is_answered_with_what_differs_the_dead_included() -> None:
    member = Member("a", "b", "c")
    member.hear("a", SyncRecords(0, (record("b", LEFT),)))
    effects = member.hear("a", Sync(9, table(member).packed_buckets()))
    assert effects == [Send("a", SyncSummary(9, (), ()))]
    (answer,) = sent(member.hear("a", Sync(9, NOTHING)), SyncSummary)
    assert isinstance(answer.msg, SyncSummary)
    mine = member.view("me")
    present = {name: bucket_of(name) for name in ("me", "a", "c")}
    assert set(answer.msg.buckets) == set(present.values())
    expected = {
        summary("me", life=mine.life),
        summary("a"),
        summary("c"),
        *([summary("b", state=3)] if bucket_of("b") in present.values() else []),
    }
    assert set(answer.msg.members) == expected


def test_a_summary_is_answered_with_what_the_peer_lacks_and_what_i_lack() -> None:
    member = Member("a", "b", "c", "d")
    sequence = asked(member)
    theirs = (
        summary("a"),
        summary("b", BIRTH + 1),  # newer there
        summary("c", BIRTH - 1),  # newer here
        summary("stranger"),
        summary("buried", state=2),  # unknown here, dead there: nothing to mend
    )
    everywhere = tuple(range(BUCKETS))
    effects = member.hear("a", SyncSummary(sequence, everywhere, theirs))
    (push,) = sent(effects, SyncRecords)
    assert isinstance(push.msg, SyncRecords)
    assert set(push.msg.news) == {member.view("me"), record("c"), record("d")}
    assert push.msg.wanted == ("b", "stranger")
    assert "sync-next" in member.effects.timers


def test_a_summary_that_nobody_asked_for_changes_nothing() -> None:
    member = Member("a", "b")
    sequence = asked(member)
    assert member.hear("b", SyncSummary(sequence, (1,), (summary("x"),))) == []
    assert member.hear("a", SyncSummary(sequence + 1, (1,), (summary("x"),))) == []


@pytest.mark.parametrize("which", ["attributes", "life"])
def test_where_nobody_is_newer_both_tell(which: str) -> None:
    member = Member("a", "b")
    theirs = Summary("b", BIRTH, 1, 0, 42) if which == "attributes" else summary("b", life=99)
    effects = member.hear("a", SyncSummary(asked(member), (bucket_of("b"),), (theirs,)))
    (push,) = sent(effects, SyncRecords)
    assert isinstance(push.msg, SyncRecords)
    assert record("b") in push.msg.news
    assert push.msg.wanted == ("b",)


def test_what_is_wanted_is_told_with_its_attributes() -> None:
    member = Member("a", "b")
    attribute = Attribute("b", "gpu", first_version(BIRTH) + 1, 4)
    member.hear("a", SyncRecords(0, (), (attribute,)))
    effects = member.hear("a", SyncRecords(5, (), (), ("b", "unknown")))
    assert effects == [Send("a", SyncRecords(5, (record("b"),), (attribute,)))]


def test_records_are_taken_as_a_memory() -> None:
    member = Member("a", "b")
    effects = member.hear("a", SyncRecords(5, (record("new"), record("b", LEFT))))
    assert events(effects) == [MemberJoined(ZONE, "new", BIRTH), MemberLeft(ZONE, "b")]
    assert member.hear("a", SyncRecords(5, (record("buried", DEAD),))) == []


def test_that_somebody_died_is_verified_before_a_memory_is_believed() -> None:
    member = Member("a", "b", "c")
    effects = member.hear("a", SyncRecords(5, (record("b", DEAD),)))
    (question,) = sent(effects, Ping)
    assert isinstance(question.msg, Ping)
    assert question.to == "b"
    assert question.msg.news == (record("b", DEAD),), "it is told, and can refute"
    assert member.view("b").state == ALIVE


def test_many_changes_at_once_are_a_merge_that_is_not_gossiped() -> None:
    member = Member("a")
    member.hear("a", SyncRecords(5, tuple(record(f"n{number}") for number in range(9))))
    assert "gossip" not in member.effects.timers
    member.hear("a", SyncRecords(5, (record("one"),)))
    assert "gossip" in member.effects.timers
