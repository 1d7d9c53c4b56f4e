"""Suspicion: who must say what until a member is held to be dead, and how it refutes."""

from __future__ import annotations

import pytest

from overlay.protocol import LinkLost
from protocols.membership.config import MembershipSettings
from protocols.membership.events import (
    MemberFailed,
    MemberJoined,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
)
from protocols.membership.messages import Ack, Gossip, IndirectAck, Ping, PingRequest
from protocols.membership.suspicion import suspicion_timeout
from tests.recording import SetTimer
from tests.unit.membership.member import (
    ALIVE,
    BIRTH,
    DEAD,
    LEFT,
    SUSPECT,
    ZONE,
    Member,
    events,
    record,
    sent,
)

LAN = MembershipSettings()
NAMES = tuple(f"n{number}" for number in range(12))


def suspicion(*accusers: str, abrupt: bool = False, incarnation: int = BIRTH) -> Gossip:
    return Gossip((record("n0", SUSPECT, incarnation, accusers=accusers, abrupt=abrupt),))


def deadline(member: Member) -> float:
    """Seconds until n0 is held to be dead."""
    return member.effects.timers["suspect", "n0"] - member.now


def test_the_more_independent_accusers_the_sooner_the_verdict() -> None:
    times = [suspicion_timeout(LAN, 100, accusers, False) for accusers in (1, 2, 3, 4, 9)]
    assert times[0] == LAN.suspicion_max
    assert times == sorted(times, reverse=True)
    assert times[3] == times[4] == pytest.approx(LAN.suspicion_min)
    assert times[0] - times[1] > times[1] - times[2], "the first confirmation says most"


def test_a_large_zone_waits_longer_and_a_tiny_one_needs_nobody_else() -> None:
    assert suspicion_timeout(LAN, 10_000, 4, False) == pytest.approx(2 * LAN.suspicion_min)
    assert suspicion_timeout(LAN, 2, 1, False) == LAN.suspicion_min
    assert suspicion_timeout(LAN, 3, 1, False) == LAN.suspicion_max
    assert suspicion_timeout(LAN, 3, 2, False) == pytest.approx(LAN.suspicion_min)


def test_broken_links_shorten_it_only_if_several_saw_them_and_got_no_answer() -> None:
    assert suspicion_timeout(LAN, 100, 1, True) == LAN.suspicion_min
    assert suspicion_timeout(LAN, 100, 4, True) == pytest.approx(LAN.abrupt_min)


def test_an_accusation_is_passed_on_and_gets_a_deadline() -> None:
    member = Member(*NAMES)
    effects = member.hear("n1", suspicion("n1"))
    assert events(effects) == [MemberSuspected(ZONE, "n0", "n1")]
    assert deadline(member) == pytest.approx(LAN.suspicion_max + 2), "the accusers' verdict first"
    assert "n0" in member.membership.view
    (packet, *_) = sent(member.ring("gossip"), Gossip)
    assert packet.msg == suspicion("n1")


def test_confirmations_shorten_the_deadline_but_are_not_passed_on_again() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    first_heard = member.now
    member.gossip_all()
    effects = member.hear("n2", suspicion("n2", "n3", "n4"))
    assert events(effects) == []
    assert member.view("n0").accusers == ("n1", "n2", "n3", "n4")
    assert "gossip" not in member.effects.timers
    verdict = first_heard + LAN.suspicion_min + 2
    assert member.now + deadline(member) == pytest.approx(verdict), "counted from the first word"


def test_those_nearest_on_the_ring_see_for_themselves_and_confirm() -> None:
    member = Member(*NAMES)
    ring = member.membership.view.ring()
    (near,) = ring.successors("me", 1)
    others = [name for name in NAMES if name != near]
    far = ring.predecessors("me", 3)[-1]
    effects = member.hear(others[0], Gossip((record(near, SUSPECT, accusers=(others[0],)),)))
    (question,) = sent(effects, Ping)
    assert question.to == near
    assert sent(effects, PingRequest) == [], "there is time, and it may be overloaded"
    assert sent(member.hear(near, Gossip((record(far, SUSPECT, accusers=(near,)),))), Ping) == []
    assert isinstance(question.msg, Ping)
    sequence = question.msg.sequence
    (helper,) = sent(member.ring(("wait", sequence)), PingRequest)
    member.now += LAN.probe_timeout
    effects = member.hear(helper.to, IndirectAck(sequence, False))
    confirmed = Gossip((record(near, SUSPECT, accusers=(others[0], "me")),))
    assert set(sent(effects, Gossip)) == {(near, confirmed), (others[0], confirmed)}


def test_the_last_confirmation_that_is_needed_is_told_to_the_other_accusers() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    core = member.membership._core
    core.accuse("n0", False, core.clock.steady)
    member.effects.drain()
    effects = member.hear("n2", suspicion("n2", "n3"))
    full = suspicion("n1", "me", "n2", "n3")
    assert sent(effects, Gossip) == [("n1", full), ("n2", full), ("n3", full)]
    assert sent(member.hear("n4", suspicion("n4")), Gossip) == [], "more are not needed"


def test_a_suspect_that_had_its_time_is_dead_and_everybody_hears() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    effects = member.ring(("suspect", "n0"))
    assert events(effects) == [MemberFailed(ZONE, "n0")]
    assert "n0" not in member.membership.view
    assert member.view("n0") == record("n0", DEAD)
    (packet, *_) = sent(member.ring("gossip"), Gossip)
    assert packet.msg == Gossip((record("n0", DEAD),))
    assert member.membership.counts.failed == 1


def test_a_higher_incarnation_refutes() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    effects = member.hear("n0", Gossip((record("n0", ALIVE, BIRTH + 1),)))
    assert events(effects) == [MemberRefuted(ZONE, "n0")]
    assert ("suspect", "n0") not in member.effects.timers
    assert member.hear("n1", suspicion("n1")) == [], "an accusation of the past"
    assert member.view("n0").state == ALIVE


def test_an_equal_incarnation_does_not_refute() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    assert member.hear("n0", Gossip((record("n0"),))) == []
    assert member.view("n0").state == SUSPECT


def test_one_who_refuted_can_be_accused_again_from_the_start() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1", "n2", "n3", "n4"))
    effects = member.hear("n5", suspicion("n5", incarnation=BIRTH + 1))
    assert events(effects) == [MemberRefuted(ZONE, "n0"), MemberSuspected(ZONE, "n0", "n5")]
    assert member.view("n0").accusers == ("n5",)
    assert deadline(member) == pytest.approx(LAN.suspicion_max + 2)


VERDICT = Gossip((record("n0", DEAD),))


def test_a_verdict_of_somebody_else_is_taken_and_a_false_one_taken_back() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1"))
    member.wait(LAN.suspicion_min / 2)
    assert events(member.hear("n1", VERDICT)) == [MemberFailed(ZONE, "n0")]
    effects = member.hear("n0", Gossip((record("n0", ALIVE, BIRTH + 1),)))
    assert events(effects)[0] == MemberJoined(ZONE, "n0", BIRTH + 1)


def doubted(member: Member) -> int:
    """Hand it a verdict that must surprise it; the number of the question to the condemned."""
    effects = member.hear("n1", VERDICT)
    assert events(effects) == []
    (question,) = [one for one in sent(effects, Ping) if one.to == "n0"]
    assert isinstance(question.msg, Ping)
    assert question.msg.news == (record("n0", DEAD),), "it is told, and can refute"
    assert len(sent(effects, PingRequest)) == LAN.helpers
    return question.msg.sequence


def test_a_verdict_without_a_suspicion_is_not_believed_of_one_who_answers() -> None:
    member = Member(*NAMES)
    sequence = doubted(member)
    refuted = record("n0", ALIVE, BIRTH + 1)
    effects = member.hear("n0", Ack(sequence, 1, 0, (refuted,)))
    assert events(effects) == []
    assert ("wait", sequence) not in member.effects.timers
    assert member.view("n0") == refuted
    assert events(member.hear("n1", VERDICT)) == [], "it was about the past"


def test_a_verdict_that_comes_together_with_its_suspicion_is_not_believed_at_once() -> None:
    member = Member(*NAMES)
    member.hear("n1", suspicion("n1", "n2", "n3", "n4"))
    effects = member.hear("n1", VERDICT)
    assert events(effects) == [], "both waited in a link while it was broken"
    assert member.view("n0").state == SUSPECT


def test_a_verdict_without_a_suspicion_is_believed_of_one_who_is_silent() -> None:
    member = Member(*NAMES)
    sequence = doubted(member)
    effects = member.ring(("wait", sequence))
    assert events(effects) == [MemberFailed(ZONE, "n0")]
    assert member.view("n0") == record("n0", DEAD)


def test_a_verdict_about_one_whose_link_is_lost_is_believed_at_once() -> None:
    member = Member(*NAMES)
    sequence = doubted(member)
    assert events(member.tell(LinkLost("n0"))) == [MemberFailed(ZONE, "n0")]
    assert ("wait", sequence) not in member.effects.timers
    member = Member(*NAMES)
    member.tell(LinkLost("n0"))
    assert events(member.hear("n1", VERDICT)) == [MemberFailed(ZONE, "n0")]


def test_an_accuser_believes_a_verdict() -> None:
    member = Member(*NAMES)
    core = member.membership._core
    core.accuse("n0", False, core.clock.steady)
    assert events(member.hear("n1", VERDICT))[-1:] == [MemberFailed(ZONE, "n0")]


def test_a_goodbye_is_no_failure() -> None:
    member = Member(*NAMES)
    assert events(member.hear("n0", Gossip((record("n0", LEFT),)))) == [MemberLeft(ZONE, "n0")]
    assert "n0" not in member.membership.view
    assert member.hear("n1", Gossip((record("n0", DEAD),))) == []


def test_a_peer_that_missed_a_verdict_is_told() -> None:
    member = Member(*NAMES)
    member.bury("n1", "n0")
    effects = member.hear("n2", Gossip((record("n0"),)))
    assert sent(effects, Gossip) == [("n2", Gossip((record("n0", DEAD),)))]


def test_leaving_tells_neighbours_and_several_others_and_then_nothing_more() -> None:
    member = Member(*NAMES)
    mine = member.view("me")
    member.membership.leave(member.now)
    goodbyes = sent(member.effects.drain(), Gossip)
    assert len({one.to for one in goodbyes}) == len(goodbyes) >= 2 * LAN.gossip_fanout
    left = record("me", LEFT, mine.incarnation, life=mine.life)
    assert {one.msg for one in goodbyes} == {Gossip((left,))}
    assert member.effects.timers == {}
    member.membership.on_stop(member.now)
    assert member.effects.drain() == [], "once is enough"


def test_a_change_of_address_is_a_new_incarnation() -> None:
    here = ["tcp://me:1"]
    member = Member("a", here=lambda: tuple(here))
    here[0] = "tcp://me:2"
    member.membership.readdress(member.now)
    member.effects.drain()
    (packet,) = sent(member.ring("gossip"), Gossip)
    assert isinstance(packet.msg, Gossip)
    assert packet.msg.news[0].endpoints == ("tcp://me:2",)
    assert packet.msg.news[0].incarnation == BIRTH + 1


def test_whoever_repeats_an_accusation_that_was_refuted_hears_so_at_once() -> None:
    member = Member("a", "b")
    mine = member.view("me")
    accusation = record("me", SUSPECT, life=mine.life, accusers=("a",))
    member.hear("a", Gossip((accusation,)))
    refuted = Gossip((member.view("me"),))
    assert sent(member.hear("b", Gossip((accusation,))), Gossip) == [("b", refuted)]
    assert member.view("me").incarnation == BIRTH + 1, "once is enough"
    assert member.hear("stranger", Gossip((accusation,))) == []


def test_an_ailing_observer_gives_suspects_more_time() -> None:
    member = Member(*NAMES)
    member.membership._core.health.worse(2)
    effects = member.hear("n1", suspicion("n1"))
    (alarm,) = [e for e in effects if isinstance(e, SetTimer) and e.key == ("suspect", "n0")]
    assert alarm.at - member.now == pytest.approx(3 * LAN.suspicion_max + 2)
