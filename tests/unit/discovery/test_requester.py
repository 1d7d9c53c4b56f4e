"""A requester: whom it asks, when it stops, whom it chooses, and what it remembers."""

from typing import Any

import msgspec
import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.protocol import ContactLearned, Group
from protocols.discovery import BrokerFound, BrokerMoved, NoBrokerFound
from protocols.discovery.credentials import digest_of, digests_of, prove
from protocols.discovery.machine import END, PING, STEP, TARGETS, WATCH
from protocols.discovery.messages import PADDED_TO, Ping, Pong, Request, RequestAck, Usage
from tests.recording import Store
from tests.unit.discovery.node import BDN_AT, SECOND_AT, RequesterNode, at

GROUP = Group("239.255.74.61", 7461)


def asked(node: RequesterNode) -> list[object]:
    """The addresses that requests went to since the last drain."""
    addresses = [address for address, _ in node.casts(Request)]
    node.drain()
    return addresses


def collected(*names: str, **options: Any) -> tuple[RequesterNode, bytes]:
    """A requester that has heard of these brokers and pings them."""
    node = RequesterNode(**options)
    request = node.begin()
    node.accepted(request, *names, now=0.01)
    for name in names:
        node.respond(name, request, 0.02)
    return node, request


# -- asking -------------------------------------------------------------------------------------


def test_the_first_bdn_is_asked_with_a_padded_request() -> None:
    node = RequesterNode(realm="lab", credential="s")
    request = node.begin(5.0)
    ((address, msg),) = node.casts(Request)
    assert address == BDN_AT
    assert (msg.id, msg.attempt, msg.realm, msg.cookie) == (request, 0, "lab", b"")
    assert msg.proof == prove("s", request, "client")
    assert len(msgspec.msgpack.encode(msg)) >= PADDED_TO
    assert node.effects.timers == {END: 5.0 + 0.8 * 4.0, STEP: 5.15}


def test_a_silent_bdn_makes_room_for_the_next_and_all_for_multicast() -> None:
    node = RequesterNode(tries=2, retry=0.2)
    node.begin()
    seen = [asked(node)]
    for step in range(1, 6):
        node.fire(STEP, 0.2 * step)
        seen.append(asked(node))
    assert seen == [
        [BDN_AT],
        [BDN_AT],
        [SECOND_AT],
        [SECOND_AT],
        [GROUP, BDN_AT, SECOND_AT],
        [BDN_AT, SECOND_AT, GROUP],
    ]


def test_without_bdns_the_last_target_set_and_multicast_are_asked_at_once() -> None:
    kept = {TARGETS: msgspec.msgpack.encode([("b1", *at("b1")), ("b2", *at("b2"))])}
    node = RequesterNode(kept, bdns=())
    node.begin()
    assert asked(node) == [at("b1"), at("b2"), GROUP]


def test_what_cannot_be_read_from_disk_is_as_good_as_nothing() -> None:
    node = RequesterNode({TARGETS: b"\xc1rubbish"}, bdns=())
    node.begin()
    assert asked(node) == [GROUP]


def test_multicast_may_be_asked_beside_the_first_bdn_or_never() -> None:
    node = RequesterNode(multicast="always")
    node.begin()
    assert asked(node) == [GROUP, BDN_AT]
    with pytest.raises(LocalProtocolError, match="nobody to ask"):
        RequesterNode(bdns=(), multicast="never").begin()


def test_one_discovery_at_a_time() -> None:
    node = RequesterNode()
    node.begin()
    with pytest.raises(LocalProtocolError, match="under way"):
        node.begin(0.1)


def test_a_challenge_is_answered_with_its_cookie_which_is_kept() -> None:
    node, request = RequesterNode(), b""
    request = node.begin()
    node.drain()
    challenge = RequestAck(request, 0, "prove", b"cookie")
    node.datagram("bdn", BDN_AT, challenge, 0.01)
    ((address, msg),) = node.casts(Request)
    assert (address, msg.cookie, msg.attempt) == (BDN_AT, b"cookie", 0)
    node.drain()
    node.datagram("bdn", BDN_AT, challenge, 0.02)
    assert asked(node) == [], "the same cookie again asks for nothing"
    node.fire(END, 3.2)
    assert node.emitted(NoBrokerFound)
    node.drain()
    node.begin(10.0)
    assert node.casts(Request)[0][1].cookie == b"cookie"


def test_a_bdn_that_always_wants_proof_is_not_obeyed_for_ever() -> None:
    node = RequesterNode()
    request = node.begin()
    node.drain()
    for number in range(20):
        node.datagram("bdn", BDN_AT, RequestAck(request, 0, "prove", bytes([number])), 0.01)
    assert len(asked(node)) == 4


def test_a_broker_in_reach_of_multicast_gets_proof_and_only_so_many() -> None:
    node = RequesterNode(bdns=(), proofs=2)
    request = node.begin()
    node.drain()
    for name in ("b1", "b2", "b3"):
        node.datagram(name, at(name), RequestAck(request, 0, "prove", b"c"), 0.01)
    assert asked(node) == [at("b1"), at("b2")]


def test_nobody_is_asked_because_a_stranger_says_so() -> None:
    node = RequesterNode()
    request = node.begin()
    node.drain()
    node.datagram("x", at("x"), RequestAck(request, 0, "prove", b"c"), 0.01)
    node.datagram("x", at("x"), RequestAck(request, 0, "accepted", total=9), 0.01)
    assert asked(node) == []


def test_a_refusal_moves_on_at_once_and_is_told() -> None:
    node = RequesterNode(multicast="never")
    request = node.begin()
    node.drain()
    node.datagram("bdn", BDN_AT, RequestAck(request, 0, "credentials"), 0.01)
    assert asked(node) == [SECOND_AT]
    node.fire(END, 3.2)
    (failed,) = node.emitted(NoBrokerFound)
    assert "bdn 10.0.0.1:7400: credentials" in failed.reason
    assert "within 4 s" in failed.reason


def test_a_bdn_without_brokers_makes_room_at_once() -> None:
    node = RequesterNode()
    request = node.begin()
    node.drain()
    node.accepted(request, now=0.01)
    assert asked(node) == [SECOND_AT]


# -- collecting ---------------------------------------------------------------------------------


def test_collecting_ends_when_everybody_told_of_has_answered() -> None:
    node = RequesterNode()
    request = node.begin()
    node.accepted(request, "b1", "b2", now=0.01)
    node.respond("b1", request, 0.02, forwarded=digests_of(["b3"]))
    node.respond("b2", request, 0.03)
    assert node.casts(Ping) == [], "b3 was handed the request"
    node.respond("b3", request, 0.04)
    assert [address for address, _ in node.casts(Ping)] == [at("b1"), at("b2"), at("b3")]


def test_responses_before_the_acknowledgement_wait_for_it() -> None:
    node = RequesterNode()
    request = node.begin()
    node.respond("b1", request, 0.02)
    assert node.casts(Ping) == []
    node.accepted(request, "b1", now=0.03)
    assert len(node.casts(Ping)) == 1


def test_a_known_broker_that_is_alone_is_waited_for_no_longer() -> None:
    kept = {TARGETS: msgspec.msgpack.encode([("b1", *at("b1")), ("b2", *at("b2"))])}
    node = RequesterNode(kept, bdns=(), multicast="never")
    request = node.begin()
    node.respond("b1", request, 0.02, alone=True)
    assert node.casts(Ping) == []
    node.respond("b2", request, 0.03, alone=True)
    assert len(node.casts(Ping)) == 2


def test_enough_is_enough() -> None:
    node = RequesterNode(max_responses=2)
    request = node.begin()
    for name in ("b1", "b2", "b3"):
        node.respond(name, request, 0.02)
    assert len(node.casts(Ping)) == 2
    assert node.machine.counts.late == 1


def test_a_missing_broker_is_asked_for_again_and_given_up() -> None:
    node = RequesterNode(fruitless=3)
    request = node.begin()
    node.accepted(request, "b1", "b2", now=0.01)
    node.respond("b1", request, 0.02)
    node.drain()
    now = 0.1
    node.fire(STEP, now)
    ((_, again),) = node.casts(Request)
    assert (again.attempt, again.heard) == (1, digest_of("b1"))
    for attempt in (1, 2, 3):
        node.accepted(request, "b1", "b2", now=now + 0.01, attempt=attempt)
        now += 0.1
        node.drain()
        node.fire(STEP, now)
    assert [address for address, _ in node.casts(Ping)] == [at("b1")]


def test_the_end_of_time_makes_do_with_what_there_is() -> None:
    node = RequesterNode()
    request = node.begin()
    node.accepted(request, "b1", "b2", now=0.01)
    node.respond("b1", request, 0.02)
    node.fire(END, 3.2)
    assert len(node.casts(Ping)) == 1


def test_multicast_ends_when_one_more_attempt_brings_nobody_new() -> None:
    node = RequesterNode(bdns=())
    request = node.begin()
    node.respond("b1", request, 0.002)
    node.fire(STEP, 0.01)
    assert node.casts(Ping) == []
    assert node.effects.timers[STEP] == pytest.approx(0.01 + 0.01 + 0.002)
    node.fire(STEP, 0.022)
    assert len(node.casts(Ping)) == 1


def test_strays_change_nothing() -> None:
    node = RequesterNode()
    node.respond("b1", bytes(16), 0.02)
    request = node.begin()
    node.respond("b1", bytes(16), 0.02)
    node.accepted(bytes(16), "b1", now=0.02)
    assert node.machine.counts.late == 3
    node.respond("b1", request, 0.02)
    node.respond("b1", request, 0.03, sent_at=-5.0)
    assert node.machine.counts.responses == 2
    with pytest.raises(RemoteProtocolError, match="discovery-no-right"):
        strict = RequesterNode(may_be=lambda name, role: False)
        strict.respond("b1", strict.begin(), 0.02)


# -- choosing -----------------------------------------------------------------------------------


def test_the_lowest_round_trip_wins_and_the_choice_is_explained() -> None:
    node, request = collected("b1", "b2", "b3", pings=1)
    node.answer_pings({"b1": 0.03, "b2": 0.01, "b3": 0.02})
    (found,) = node.emitted(BrokerFound)
    assert node.emitted(ContactLearned) == [ContactLearned("b2", ("tcp://b2:7400",))]
    assert found.id == request
    assert [one.name for one in found.candidates] == ["b2", "b3", "b1"]
    assert [one.verdict for one in found.candidates] == [
        "the lowest round trip",
        "10.00 ms slower",
        "20.00 ms slower",
    ]
    assert found.winner.estimated_delay == pytest.approx(0.01)
    assert found.winner.ping_p50 == pytest.approx(0.01)
    assert found.phases.waiting == pytest.approx(0.02)
    assert found.phases.pinging == pytest.approx(0.03)
    assert found.sources == ("bdn 10.0.0.1:7400",)
    assert node.effects.timers == {}, "nothing is left to do"


def test_several_pings_leave_a_queue_out() -> None:
    node, _ = collected("b1", "b2", pings=3, ping_gap=0.005)
    for step in (1, 2):
        node.fire(PING, 0.02 + 0.005 * step)
    pings = node.casts(Ping)
    assert len(pings) == 6
    trips = {at("b1"): [0.05, 0.05, 0.010], at("b2"): [0.012, 0.012, 0.012]}
    node.drain()
    for address, ping in pings:
        name = "b1" if address == at("b1") else "b2"
        when = ping.sent_at + trips[address].pop(0)
        node.datagram(name, address, Pong(ping.nonce, 0.0), when)
    (found,) = node.emitted(BrokerFound)
    assert found.winner.name == "b1"
    assert found.winner.ping_least == pytest.approx(0.010)
    assert found.winner.answered == 3


def test_a_silent_target_is_not_waited_for_longer_than_two_of_the_slowest() -> None:
    node, _ = collected("b1", "b2", pings=1, ping_slack=0.04)
    node.answer_pings({"b1": 0.03})
    assert node.emitted(BrokerFound) == []
    assert node.effects.timers[END] == pytest.approx(0.02 + 2 * 0.03 + 0.04)
    node.fire(END, node.effects.timers[END])
    (found,) = node.emitted(BrokerFound)
    assert [one.name for one in found.candidates] == ["b1", "b2"]
    assert found.candidates[1].verdict == "answered none of 1 pings"


def test_nobody_answers_a_ping() -> None:
    node, _ = collected("b1")
    node.fire(END, node.effects.timers[END])
    (failed,) = node.emitted(NoBrokerFound)
    assert failed.reason == "1 broker answered, but none of them a ping"
    assert failed.candidates[0].name == "b1"


def test_when_a_whole_target_set_is_dead_the_next_one_is_pinged() -> None:
    node, _ = collected("b1", "b2", "b3", targets=2, pings=1, ping_patience=0.3)
    node.drain()
    node.fire(END, node.effects.timers[END])
    assert [address for address, _ in node.casts(Ping)] == [at("b3")]
    node.answer_pings({"b3": 0.05})
    assert node.emitted(BrokerFound)[0].winner.name == "b3"


def test_a_pong_that_was_not_asked_for_is_refused() -> None:
    node, _ = collected("b1", "b2")
    nonce = node.casts(Ping)[0][1].nonce
    for name, number in (("b2", nonce), ("b1", bytes(8))):
        with pytest.raises(RemoteProtocolError, match="pong-not-asked"):
            node.datagram(name, at(name), Pong(number, 0.02), 0.021)


def test_of_equals_the_idler_broker_is_preferred() -> None:
    node = RequesterNode(pings=1)
    request = node.begin()
    node.accepted(request, "b1", "b2", now=0.01)
    busy = Usage(connections=500, cpu=0.9, memory_total=100, memory_used=90)
    node.respond("b1", request, 0.02, usage=busy)
    node.respond("b2", request, 0.02, usage=Usage(memory_total=100))
    node.answer_pings({"b1": 0.0100, "b2": 0.0101})
    (found,) = node.emitted(BrokerFound)
    assert found.winner.name == "b2"
    assert [one.verdict for one in found.candidates] == [
        "the idlest of 2 as near",
        "as near, but busier",
    ]


# -- remembering and staying ----------------------------------------------------------------------


def test_the_target_set_is_kept_on_disk_the_winner_first() -> None:
    node, _ = collected("b1", "b2", pings=1)
    node.answer_pings({"b1": 0.03, "b2": 0.01})
    (stored,) = [effect for effect in node.effects.recorded if isinstance(effect, Store)]
    assert stored.value is not None
    kept = msgspec.msgpack.decode(stored.value)
    assert kept == [["b2", *at("b2")], ["b1", *at("b1")]]
    assert node.machine.known == ("b2", "b1")


def look_around(node: RequesterNode, now: float, trips: dict[str, float]) -> list[BrokerMoved]:
    """One round of a watching requester."""
    if now:
        node.fire(WATCH, now)
    else:
        node.machine.watch(now)
    request = node.casts(Request)[0][1].id
    node.accepted(request, *trips, now=now + 0.01)
    for name in trips:
        node.respond(name, request, now + 0.02)
    node.answer_pings(trips)
    moves = node.emitted(BrokerMoved)
    if END in node.effects.timers:
        node.fire(END, node.effects.timers[END])
        moves = node.emitted(BrokerMoved)
    assert node.effects.timers.keys() == {WATCH}
    node.drain()
    return moves


def test_a_watching_requester_moves_only_for_a_clear_gain_twice() -> None:
    node = RequesterNode(pings=1, every=10.0, move_share=0.2, confirmations=2)
    (first,) = look_around(node, 0.0, {"b1": 0.02, "b2": 0.03})
    assert (first.old, first.new.name) == ("", "b1")
    assert look_around(node, 11.0, {"b1": 0.02, "b2": 0.018}) == [], "too little"
    assert look_around(node, 22.0, {"b1": 0.02, "b2": 0.01}) == [], "once is chance"
    assert look_around(node, 33.0, {"b1": 0.02, "b2": 0.03}) == []
    assert look_around(node, 44.0, {"b1": 0.02, "b2": 0.01}) == []
    (moved,) = look_around(node, 55.0, {"b1": 0.02, "b2": 0.01})
    assert (moved.old, moved.new.name) == ("b1", "b2")
    assert moved.reason == "b2 is 10.0 ms nearer than b1"


def test_a_watching_requester_leaves_a_dead_broker_at_once() -> None:
    node = RequesterNode(pings=1, every=10.0)
    look_around(node, 0.0, {"b1": 0.02, "b2": 0.03})
    (moved,) = look_around(node, 11.0, {"b2": 0.03})
    assert (moved.old, moved.new.name) == ("b1", "b2")
    assert "answers no pings" in moved.reason


def test_unwatch_ends_it() -> None:
    node = RequesterNode(pings=1, every=10.0)
    look_around(node, 0.0, {"b1": 0.02})
    node.machine.unwatch(1.0)
    assert node.effects.timers == {}
