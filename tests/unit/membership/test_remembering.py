"""The dead are remembered for a while, and tried: a partition may have healed."""

from __future__ import annotations

from protocols.membership.config import MembershipSettings
from protocols.membership.messages import Ack, Gossip, Ping
from protocols.membership.remembering import BURST, TOLD
from tests.recording import Send
from tests.unit.membership.member import ALIVE, BIRTH, DEAD, LEFT, SUSPECT, Member, record, sent


def test_a_knock_tells_the_dead_that_it_is_held_to_be_dead() -> None:
    member = Member("a", "b")
    member.bury("b", "a")
    digest = member.membership._core.table.digest
    knock = Send("a", Ping(0, digest, (record("a", DEAD),)))
    began = member.now
    assert knock in member.ring("knock")
    assert 1.0 <= member.now - began <= 3.0
    assert "knock" in member.effects.timers


def test_an_answer_brings_it_back_and_makes_the_others_be_tried() -> None:
    member = Member("a", "b", "c", "d")
    member.bury("d", "a", "b")
    member.hear("d", Gossip((record("c", LEFT),)))
    effects = member.hear("a", Ack(0, 1, 0, (record("a", ALIVE, BIRTH + 1),)))
    assert "a" in member.membership.view
    assert [ping.to for ping in sent(effects, Ping)] == ["b"], "who left is not disturbed"
    assert "sync-next" in member.effects.timers


def bury_all(member: Member, names: list[str]) -> None:
    """They are suspected, and found dead when they had their time."""
    member.hear("h0", Gossip(tuple(record(name, SUSPECT, accusers=("h0",)) for name in names)))
    member.wait(MembershipSettings().suspicion_min)
    member.hear("h0", Gossip(tuple(record(name, DEAD) for name in names)))
    assert not any(name in member.membership.view for name in names)


def test_the_members_of_one_half_share_the_knocking_at_the_other() -> None:
    here, there = [f"h{n}" for n in range(99)], [f"t{n}" for n in range(100)]
    member = Member(*here, *there)
    bury_all(member, there)
    effects = member.hear("t0", Ack(0, 1, 0, (record("t0", ALIVE, BIRTH + 1),)))
    assert len(sent(effects, Ping)) == TOLD
    few = Member("h0", *there)
    bury_all(few, there)
    effects = few.hear("t0", Ack(0, 1, 0, (record("t0", ALIVE, BIRTH + 1),)))
    assert len(sent(effects, Ping)) == BURST


def test_a_large_zone_knocks_together_as_often_as_a_small_one() -> None:
    member = Member(*(f"n{number}" for number in range(100)))
    member.bury("n1", "n0")
    pause = member.effects.timers["knock"] - member.now
    assert 25 * 1.0 <= pause <= 25 * 3.0


def test_the_dead_are_forgotten_after_a_while() -> None:
    member = Member("a", "b", settings=MembershipSettings(remember_dead=10.0))
    member.bury("b", "a")
    began = member.now
    while "knock" in member.effects.timers:
        member.ring("knock")
    assert member.membership.view.record("a") is None
    assert 10.0 <= member.now - began <= 14.0
    assert member.membership.counts.forgotten == 1


def test_no_more_than_a_bound_are_remembered() -> None:
    names = [f"n{number}" for number in range(10)]
    member = Member("a", *names, settings=MembershipSettings(max_dead=3))
    for name in names:
        member.bury("a", name)
    known = [name for name in names if member.membership.view.record(name)]
    assert known == names[-3:]
    assert member.membership.counts.forgotten == 7
