"""Asking whether members are there: directly, through helpers, urgently."""

from __future__ import annotations

import pytest

from overlay.protocol import LinkLost, LinkUp
from protocols.membership.config import MembershipSettings
from protocols.membership.events import MemberSuspected
from protocols.membership.machine import Membership
from protocols.membership.messages import (
    Ack,
    Gossip,
    IndirectAck,
    Ping,
    PingRequest,
    Sync,
    SyncRecords,
)
from protocols.membership.probing import CALM_AFTER, CALM_TURNS, CROWD, DEAF
from tests.recording import CancelTimer, Recorded, Send, SetTimer
from tests.unit.membership.member import (
    ALIVE,
    DEAD,
    NOW,
    SUSPECT,
    ZONE,
    Member,
    about,
    events,
    record,
    sent,
)

LAN = MembershipSettings()


def digest(member: Member) -> int:
    return member.membership._core.table.digest


def probe(member: Member) -> tuple[str, int, list[Recorded]]:
    """Let the next probe begin: whom it asks, under which number, and all effects."""
    effects = member.ring("probe")
    (ping,) = sent(effects, Ping)
    assert isinstance(ping.msg, Ping)
    return ping.to, ping.msg.sequence, effects


def fail(member: Member) -> tuple[str, list[Recorded]]:
    """Let a probe end without an answer; whom it accused, and with which effects."""
    target, sequence, _ = probe(member)
    for helper in sent(member.ring(("wait", sequence)), PingRequest)[:1]:
        member.hear(helper.to, IndirectAck(sequence, False))
    return target, member.ring(("wait", sequence))


def test_a_probe_asks_one_member_and_waits() -> None:
    member = Member("a", "b", "c")
    target, sequence, effects = probe(member)
    assert effects[1:] == [
        Send(target, Ping(sequence, digest(member))),
        SetTimer(("wait", sequence), about(member.now + LAN.probe_timeout)),
    ]
    (again,) = [one for one in effects[:1] if isinstance(one, SetTimer)]
    assert again.key == "probe"
    assert 0.45 <= again.at - member.now <= 0.55, "twice in a period, not in step with others"


def test_an_answer_ends_the_probe() -> None:
    member = Member("a", "b")
    target, sequence, _ = probe(member)
    effects = member.hear(target, Ack(sequence, 1, digest(member)))
    assert effects == [CancelTimer(("wait", sequence))]
    assert ("wait", sequence) not in member.effects.timers


def test_each_second_probe_goes_to_the_successor_and_the_others_reach_everybody() -> None:
    names = [f"n{number}" for number in range(8)]
    member = Member(*names)
    asked = []
    for _ in range(2 * len(names)):
        target, sequence, _ = probe(member)
        member.hear(target, Ack(sequence, 1, digest(member)))
        asked.append(target)
    (successor,) = member.membership.view.ring().successors("me", 1)
    assert asked[0::2] == [successor] * len(names)
    assert len(set(asked[1::2])) >= len(names) - 1, "a round asks each once"


def test_in_a_calm_zone_the_successor_is_asked_in_each_period_and_partners_seldom() -> None:
    names = [f"n{number}" for number in range(8)]
    member = Member(*names)
    (successor,) = member.membership.view.ring().successors("me", 1)
    while member.now < NOW + CALM_AFTER + 1:
        target, sequence, _ = probe(member)
        member.hear(target, Ack(sequence, 1, digest(member)))
    asked, began = [], member.now
    for _ in range(4 * CALM_TURNS):
        for ping in sent(member.ring("probe"), Ping):
            assert isinstance(ping.msg, Ping)
            asked.append(ping.to)
            member.hear(ping.to, Ack(ping.msg.sequence, 1, digest(member)))
    assert member.now - began == pytest.approx(4 * CALM_TURNS * LAN.probe_period, rel=0.1)
    assert asked.count(successor) >= 4 * CALM_TURNS
    assert len(asked) <= 4 * CALM_TURNS + 4
    member.hear("n0", Gossip((record("new"),)))
    member.gossip_all()
    first, second = member.ring("probe"), member.ring("probe")
    assert len(sent(first, Ping)) + len(sent(second, Ping)) >= 2
    assert member.effects.timers["probe"] - member.now < 0.6, "news: twice in a period again"


def test_silence_brings_helpers_and_a_second_try() -> None:
    member = Member(*"abcdefgh")
    target, sequence, _ = probe(member)
    effects = member.ring(("wait", sequence))
    assert effects[0] == Send(target, Ping(sequence, digest(member)))
    helpers = sent(effects, PingRequest)
    assert len({helper.to for helper in helpers}) == LAN.helpers
    assert target not in {helper.to for helper in helpers}
    assert all(helper.msg == PingRequest(sequence, target) for helper in helpers)
    deadline = about(member.now + LAN.indirect_timeout)
    assert effects[-1] == SetTimer(("wait", sequence), deadline)


def test_a_helper_that_reached_it_ends_the_probe() -> None:
    member = Member(*"abcdefgh")
    target, sequence, _ = probe(member)
    helpers = [helper.to for helper in sent(member.ring(("wait", sequence)), PingRequest)]
    bystander = next(name for name in "abcdefgh" if name not in (*helpers, target))
    assert member.hear(bystander, IndirectAck(sequence, True, 1)) == [], "nobody asked it"
    member.hear(helpers[0], IndirectAck(sequence, True, 1))
    assert ("wait", sequence) not in member.effects.timers


def test_who_answers_nobody_is_suspected_and_hears_of_it_itself() -> None:
    member = Member(*"abcdefgh")
    target, sequence, _ = probe(member)
    helpers = sent(member.ring(("wait", sequence)), PingRequest)
    member.now += LAN.probe_timeout + 0.01
    for helper in helpers[:-1]:
        assert member.hear(helper.to, IndirectAck(sequence, False)) == []
        assert member.hear(helper.to, IndirectAck(sequence, False)) == [], "once is enough"
    effects = member.hear(helpers[-1].to, IndirectAck(sequence, False))
    assert ("wait", sequence) not in member.effects.timers, "the last one ends the wait"
    suspicion = record(target, SUSPECT, accusers=("me",))
    assert events(effects) == [MemberSuspected(ZONE, target, "me")]
    assert sent(effects, Gossip) == [(target, Gossip((suspicion,)))]
    assert member.view(target) == suspicion
    assert member.membership.health == 0, "helpers reported, so the fault is not mine"


def test_helpers_that_refuse_at_once_leave_the_member_its_time() -> None:
    member = Member(*"abcdefgh")
    target, sequence, _ = probe(member)
    helpers = sent(member.ring(("wait", sequence)), PingRequest)
    asked_again = member.now
    for helper in helpers:
        member.hear(helper.to, IndirectAck(sequence, False))
    assert member.view(target).state == ALIVE
    assert member.effects.timers["wait", sequence] == about(asked_again + LAN.probe_timeout)
    member.ring(("wait", sequence))
    assert member.view(target).state == SUSPECT


def test_who_hears_from_no_helper_either_doubts_itself() -> None:
    member = Member(*"abcdefgh")
    fail(member)
    assert member.membership.health == 1
    _, _, effects = probe(member)
    (deadline,) = [one for one in effects if isinstance(one, SetTimer) and one.key != "probe"]
    assert deadline.at - member.now == about(2 * LAN.probe_timeout)
    target, sequence, _ = probe(member)
    member.hear(target, Ack(sequence, 1, digest(member)))
    assert member.membership.health == 0


def test_who_hears_of_nobody_asks_others_before_it_accuses() -> None:
    member = Member(*(f"n{number}" for number in range(30)))
    target, sequence, _ = probe(member)
    asked = {one.to for one in sent(member.ring(("wait", sequence)), PingRequest)}
    for turn in range(DEAF):
        effects = member.ring(("wait", sequence))
        asked |= {one.to for one in sent(effects, PingRequest)}
        assert len(asked) == (turn + 2) * LAN.helpers, "others each time"
        assert member.membership.health == turn + 1
        assert member.view(target).state == ALIVE
    member.ring(("wait", sequence))
    assert member.view(target).state == SUSPECT, "all of them may really be gone"


def test_a_late_report_shows_that_only_i_am_slow() -> None:
    member = Member(*(f"n{number}" for number in range(30)))
    target, sequence, _ = probe(member)
    (first, *_) = sent(member.ring(("wait", sequence)), PingRequest)
    member.ring(("wait", sequence))
    member.hear(first.to, IndirectAck(sequence, True, 1))
    assert ("wait", sequence) not in member.effects.timers
    assert member.view(target).state == ALIVE


def test_a_ping_is_answered_with_this_life_and_news() -> None:
    member = Member("a")
    effects = member.hear("a", Ping(7, digest(member)))
    assert effects == [Send("a", Ack(7, member.life, digest(member)))]
    effects = member.hear("a", Ping(8, digest(member), (record("b"),)))
    (answer,) = sent(effects, Ack)
    assert answer.msg == Ack(8, member.life, digest(member), (record("b"),))
    assert sent(effects, Sync) != [], "its digest was told before it could know"


def test_a_ping_tells_a_suspect_and_a_dead_what_is_held_of_them() -> None:
    member = Member("a", "b")
    member.hear("b", Gossip((record("a", SUSPECT, accusers=("b",)),)))
    member.gossip_all()
    (answer,) = sent(member.hear("a", Ping(7, digest(member))), Ack)
    assert isinstance(answer.msg, Ack)
    assert answer.msg.news == (member.view("a"),)


def test_an_accusation_in_a_ping_is_refuted_in_its_answer() -> None:
    member = Member("a")
    mine = member.view("me")
    accusation = record("me", SUSPECT, mine.incarnation, life=mine.life, accusers=("a",))
    effects = member.hear("a", Ping(7, digest(member), (accusation,)))
    (answer,) = sent(effects, Ack)
    assert isinstance(answer.msg, Ack)
    assert answer.msg.news == (member.view("me"),)
    assert member.view("me").incarnation == mine.incarnation + 1
    assert sent(effects, Gossip) == [("a", Gossip((member.view("me"),)))], "its accuser first"
    assert member.membership.counts.defended == 1


def test_a_helper_asks_and_reports_an_answer() -> None:
    member = Member("a", "b")
    effects = member.hear("a", PingRequest(40, "b"))
    (ping,) = sent(effects, Ping)
    assert ping.to == "b"
    assert isinstance(ping.msg, Ping)
    report = member.hear("b", Ack(ping.msg.sequence, 1, digest(member)))
    assert sent(report, IndirectAck) == [("a", IndirectAck(40, True, 1))]
    again = member.hear("b", Ack(ping.msg.sequence, 1, digest(member)))
    assert sent(again, IndirectAck) == []


def test_a_helper_reports_silence_as_well() -> None:
    member = Member("a", "b")
    (ping,) = sent(member.hear("a", PingRequest(40, "b")), Ping)
    assert isinstance(ping.msg, Ping)
    report = member.ring(("relay", ping.msg.sequence))
    assert sent(report, IndirectAck) == [("a", IndirectAck(40, False))]


def test_a_helper_speaks_for_itself_and_for_no_stranger() -> None:
    member = Member("a")
    yes, no = member.hear("a", PingRequest(1, "me")), member.hear("a", PingRequest(2, "nobody"))
    assert yes == [Send("a", IndirectAck(1, True, member.life))]
    assert no == [Send("a", IndirectAck(2, False))]
    assert member.membership.counts.relays_refused == 1


def test_a_lost_link_starts_an_urgent_probe_and_is_no_verdict() -> None:
    member = Member(*"abcdefgh")
    effects = member.tell(LinkLost("a"))
    (ping,) = sent(effects, Ping)
    assert isinstance(ping.msg, Ping)
    assert ping.to == "a"
    assert len(sent(effects, PingRequest)) == LAN.helpers
    deadline = about(member.now + LAN.indirect_timeout)
    assert effects[-1] == SetTimer(("wait", ping.msg.sequence), deadline)
    assert events(effects) == []
    member.hear("a", Ack(ping.msg.sequence, 1, digest(member)))
    assert member.view("a").state == ALIVE, "it only reconnected"
    assert ("wait", ping.msg.sequence) not in member.effects.timers


def test_an_urgent_probe_in_vain_is_an_abrupt_suspicion() -> None:
    member = Member(*"abcdefgh")
    (ping,) = sent(member.tell(LinkLost("a")), Ping)
    assert isinstance(ping.msg, Ping)
    member.ring(("wait", ping.msg.sequence))
    assert member.view("a") == record("a", SUSPECT, accusers=("me",), abrupt=True)


def test_a_lost_link_makes_a_probe_under_way_urgent() -> None:
    member = Member(*"abcdefgh")
    target, sequence, _ = probe(member)
    effects = member.tell(LinkLost(target))
    assert sent(effects, Ping) == [(target, Ping(sequence, digest(member)))]
    assert len(sent(effects, PingRequest)) == LAN.helpers


def test_a_helper_that_is_refused_says_so_at_once_and_asks_nobody_itself() -> None:
    member = Member(*"abcdefgh")
    (ping,) = sent(member.hear("b", PingRequest(40, "a")), Ping)
    effects = member.tell(LinkLost("a", "no connection"))
    assert sent(effects, IndirectAck) == [("b", IndirectAck(40, False))]
    assert sent(effects, PingRequest) == sent(effects, Ping) == []
    assert isinstance(ping.msg, Ping)
    assert ("relay", ping.msg.sequence) not in member.effects.timers


def test_a_helper_whose_own_link_breaks_has_a_question_of_its_own() -> None:
    member = Member(*"abcdefgh")
    member.tell(LinkUp("a"))
    member.hear("b", PingRequest(40, "a"))
    assert len(sent(member.tell(LinkLost("a")), PingRequest)) == LAN.helpers


def test_an_attempt_to_reach_a_suspect_that_fails_is_no_news() -> None:
    member = Member(*"abcdefgh")
    member.hear("b", Gossip((record("a", SUSPECT, accusers=("b",)),)))
    while ("wait", 1) in member.effects.timers:  # it may be a witness
        member.ring(("wait", 1))
    assert sent(member.tell(LinkLost("a", "no connection")), PingRequest) == []


def test_a_link_that_was_not_answered_in_time_makes_no_suspicion_short() -> None:
    member = Member(*"abcdefgh")
    effects = member.tell(LinkLost("a", "no answer in time", closed=False))
    (ping,) = sent(effects, Ping)
    assert isinstance(ping.msg, Ping)
    for helper in sent(effects, PingRequest)[:1]:
        member.hear(helper.to, IndirectAck(ping.msg.sequence, False))
    member.ring(("wait", ping.msg.sequence))
    assert member.view("a") == record("a", SUSPECT, accusers=("me",), abrupt=False)


def lose_links(member: Member, names: list[str]) -> dict[str, int]:
    """Let all these links break at once: the number of each probe that begins."""
    numbers = {}
    for name in names:
        (ping,) = sent(member.tell(LinkLost(name)), Ping)
        assert isinstance(ping.msg, Ping)
        numbers[name] = ping.msg.sequence
    return numbers


def test_one_of_a_crowd_is_asked_directly_until_its_turn_comes() -> None:
    names = [f"n{number}" for number in range(CROWD + 2)]
    member = Member(*names)
    numbers = lose_links(member, names[:CROWD])
    effects = member.tell(LinkLost(names[-1]))
    assert sent(effects, PingRequest) == [], "the network broke, not everybody"
    (ping,) = sent(effects, Ping)
    assert isinstance(ping.msg, Ping)
    waiting = ("wait", ping.msg.sequence)
    deadline = about(member.now + LAN.probe_timeout)
    assert effects[-1] == SetTimer(waiting, deadline)
    effects = member.ring(waiting)
    assert effects == [SetTimer(waiting, about(member.now + LAN.probe_timeout))], "not yet"
    member.hear(names[0], Ack(numbers[names[0]], 1, digest(member)))
    assert len(sent(member.ring(waiting), PingRequest)) == LAN.helpers
    assert member.tell(LinkLost(names[-1])) == [], "it is being asked"


def test_a_regular_probe_never_waits_for_a_crowd() -> None:
    names = [f"n{number}" for number in range(CROWD + 2)]
    member = Member(*names)
    target, sequence, _ = probe(member)
    lose_links(member, [name for name in names if name != target][:CROWD])
    assert len(sent(member.ring(("wait", sequence)), PingRequest)) == LAN.helpers


def test_who_was_found_dead_by_others_is_asked_no_more() -> None:
    member = Member(*"abcdefgh")
    (sequence,) = lose_links(member, ["a"]).values()
    member.hear("b", Gossip((record("a", DEAD),)))
    assert ("wait", sequence) not in member.effects.timers
    assert member.membership.counts.unanswered == 0


def test_who_died_in_the_memory_of_a_peer_is_told_and_asked_without_helpers() -> None:
    member = Member(*"abcdefgh")
    effects = member.hear("b", SyncRecords(1, (record("a", DEAD),)))
    (ping,) = sent(effects, Ping)
    assert isinstance(ping.msg, Ping)
    assert (ping.to, ping.msg.news) == ("a", (record("a", DEAD),))
    assert sent(effects, PingRequest) == [], "it mostly lives"
    assert len(sent(member.ring(("wait", ping.msg.sequence)), PingRequest)) == LAN.helpers


@pytest.mark.parametrize("peer", ["stranger", "me", "dead"])
def test_links_to_nobody_of_interest_may_break(peer: str) -> None:
    member = Member("a")
    member.hear("a", Gossip((record("dead", DEAD),)))
    assert member.tell(LinkLost(peer)) == []


def test_alone_there_is_nobody_to_ask() -> None:
    member = Member()
    assert sent(member.ring("probe"), Ping) == []
    assert "probe" in member.effects.timers
    assert isinstance(member.membership, Membership)
