"""Who is let in, what counts against whom, and when a session ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
import zmq

from overlay.errors import RemoteProtocolError
from overlay.net.config import NetSettings
from overlay.net.inbound import REFUSAL_COST, SESSIONS_PER_NAME, SMALL_FRAME
from overlay.net.trust import OpenTrust
from overlay.security.identity import Identity
from overlay.wire.frames import FRAMEWORK_SCOPE, Goodbye, Mark, Piece, PieceStart, Refusal, Welcome
from protocols.echo.messages import EchoRequest
from tests.unit.net.router import ME, OVERLAY, Desk, hello

ASK = EchoRequest(1, b"payload")
ACCEPTED, ENDED = zmq.EVENT_ACCEPTED, zmq.EVENT_DISCONNECTED
SHAKEN = (zmq.EVENT_HANDSHAKE_SUCCEEDED, 0)  # ZeroMQ does not say whose


def frame(*messages: Any, scope: str = "", version: int = 1) -> list[bytes]:
    return [msgspec.msgpack.encode([version, 0.0, [[scope, messages]], []])]


def encoded(message: Any) -> list[bytes]:
    return [msgspec.msgpack.encode(message)]


# -- Hello ------------------------------------------------------------------------------------


def test_a_peer_says_hello_and_is_heard() -> None:
    desk = Desk()
    assert desk.say_hello("bob") is not None
    desk.router.put(b"a", frame(ASK))
    assert desk.inbound.drain(0.0) is False
    assert desk.router.sent == [(b"a", Welcome(1, ME, bytes(8)))]
    assert (desk.opened, desk.delivered) == (["bob"], [("bob", "", ASK)])
    assert not desk.refused


def test_applications_get_the_first_frame_of_a_wake_up_before_the_others_are_read() -> None:
    desk = Desk()
    desk.say_hello("bob")
    for _ in range(3):
        desk.router.put(b"a", frame(ASK))
    desk.inbound.expect(0.0)
    assert desk.inbound.drain(0.0) is False
    assert len(desk.delivered) == 3
    assert desk.settled == [1], "the rest is settled when the tick ends"
    desk.inbound.expect(0.0)
    assert desk.inbound.drain(0.0) is False, "it woke up for nothing"


def test_an_empty_router_stays_so_until_something_is_sent() -> None:
    desk = Desk()
    session = desk.say_hello("bob")
    assert session is not None
    desk.inbound.drain(0.0)
    assert desk.inbound.is_empty
    desk.inbound.end_intake()
    desk.router.put(b"a", frame(ASK))
    desk.inbound.send(session, [*encoded(Mark(1))])
    assert not desk.inbound.is_empty, "sending may swallow that something came"


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "no-hello"),
        (b"\xc1", "no-hello"),
        (b"\x91" * 50_000, "no-hello"),
        (msgspec.msgpack.encode([3, 1, 1, "lab"]), "no-hello"),
        (msgspec.msgpack.encode(hello()).replace(b"bob", b"\xff\xfe\xfd"), "no-hello"),
        (msgspec.msgpack.encode(ASK), "no-hello"),
        (msgspec.msgpack.encode(hello(overlay="home")), "wrong-overlay"),
        (msgspec.msgpack.encode(hello("../bob")), "bad-name"),
        (msgspec.msgpack.encode(hello(ME)), "name-taken"),
        (msgspec.msgpack.encode(hello(oldest=2, newest=9)), "incompatible-version"),
        (msgspec.msgpack.encode([3, 7, 9, {"what": "a later version"}]), "incompatible-version"),
    ],
    ids=repr,
)
def test_a_first_word_that_lets_nobody_in(first: bytes, reason: str) -> None:
    desk = Desk()
    desk.router.put(b"a", [first])
    desk.inbound.drain(0.0)
    assert desk.refused == {reason: 1}
    assert not desk.inbound.sessions
    ((to, reply),) = desk.router.sent
    assert (to, type(reply)) == (b"a", Refusal)
    assert isinstance(reply, Refusal)
    assert reply.reason == reason


def test_an_incompatible_peer_reads_which_versions_would_do() -> None:
    desk = Desk()
    desk.router.put(b"a", encoded(hello(oldest=2, newest=9)))
    desk.inbound.drain(0.0)
    detail = "the peer speaks versions 2 to 9, we 1 to 1"
    assert desk.router.sent == [(b"a", Refusal("incompatible-version", detail))]


def test_nothing_is_read_before_hello() -> None:
    desk = Desk()
    desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(0.0)
    assert (desk.delivered, desk.refused) == ([], {"no-hello": 1})


def test_places_are_few_for_all_and_for_one() -> None:
    desk = Desk(net=NetSettings(peers=SESSIONS_PER_NAME + 2))
    for n in range(SESSIONS_PER_NAME + 1):
        desk.say_hello("bob", bytes([n]), fd=n)
    assert desk.refused == {"too-many-sessions": 1}
    for n in range(3):
        desk.say_hello(f"other{n}", bytes([100 + n]), fd=100 + n)
    assert desk.refused == {"too-many-sessions": 1, "too-many-peers": 1}
    desk.happens((ENDED, 0))  # one of bob's ends: both have a place again
    desk.inbound.drain(0.0)
    assert desk.say_hello("bob", b"again", fd=0) is not None


# -- frames -----------------------------------------------------------------------------------


def test_a_frame_with_another_key_than_the_session_is_a_hijack() -> None:
    trust = OpenTrust(ME, OVERLAY)
    trust.curve = (bytes(32), bytes(32))  # with CURVE each frame comes with its sender's key
    desk = Desk(trust=trust)
    desk.say_hello("bob", user="aa" * 32)
    desk.router.put(b"a", frame(ASK), user="bb" * 32)
    desk.inbound.drain(0.0)
    assert (desk.delivered, desk.refused) == ([], {"session-hijacked": 1})
    desk.router.put(b"a", frame(ASK), user="aa" * 32)
    desk.inbound.drain(0.0)
    assert len(desk.delivered) == 1


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        ([b"\xc1"], {"malformed-frame": 1}),
        ([*frame(ASK), b"a part of nobody"], {"wrong-parts": 1}),
        (frame(ASK, version=9), {"wrong-version": 1}),
        (frame([9999], [16, "no id"], ASK), {"unknown-tag": 1, "wrong-shape": 1}),
        (frame(hello(), scope=FRAMEWORK_SCOPE), {"unexpected-message": 1}),
        (frame(ASK, scope=FRAMEWORK_SCOPE), {"unexpected-message": 1}),
        (frame(Piece(b"x"), scope=FRAMEWORK_SCOPE), {"stray-piece": 1}),
        (frame(PieceStart("", 1 << 40, b""), scope=FRAMEWORK_SCOPE), {"message-too-large": 1}),
        (
            frame(PieceStart("", 9, b"", 1), Piece(b"x", 2), scope=FRAMEWORK_SCOPE),
            {"stray-piece": 1},
        ),
        (
            frame(*(PieceStart("", 9, b"", n) for n in range(11)), scope=FRAMEWORK_SCOPE),
            {"too-many-unfinished": 3},
        ),
    ],
)
def test_what_a_session_must_not_send(parts: list[bytes], reasons: dict[str, int]) -> None:
    desk = Desk()
    desk.say_hello("bob")
    desk.router.put(b"a", parts)
    desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(0.0)
    assert desk.refused == reasons
    assert desk.delivered[-1] == ("bob", "", ASK)
    assert desk.inbound.sessions[b"a"].name == "bob"


def test_a_mark_goes_back_and_a_frame_full_of_them_gets_one_answer() -> None:
    desk = Desk()
    desk.say_hello("bob")
    del desk.router.sent[:]
    desk.router.put(b"a", frame(*map(Mark, range(1000)), scope=FRAMEWORK_SCOPE))
    desk.router.put(b"a", frame(Mark(5), scope=FRAMEWORK_SCOPE))
    desk.inbound.drain(0.0)
    assert desk.router.sent == [(b"a", Mark(999)), (b"a", Mark(5))]
    assert desk.refused == {}


def test_pieces_of_two_sessions_do_not_mix() -> None:
    desk = Desk()
    start = PieceStart("", 4, msgspec.msgpack.encode(EchoRequest(1, b"")), 1)
    for routing_id, name in ((b"a", "bob"), (b"b", "cid")):
        desk.say_hello(name, routing_id, fd=ord(routing_id))
        desk.router.put(routing_id, frame(start, Piece(b"ab", 1), scope=FRAMEWORK_SCOPE))
    for routing_id in (b"b", b"a"):
        desk.router.put(routing_id, frame(Piece(routing_id * 2, 1), scope=FRAMEWORK_SCOPE))
    desk.inbound.drain(0.0)
    assert desk.delivered == [
        ("cid", "", EchoRequest(1, b"abbb")),
        ("bob", "", EchoRequest(1, b"abaa")),
    ]


def test_goodbye_is_news_once() -> None:
    desk = Desk()
    desk.say_hello("bob")
    desk.router.put(b"a", frame(*[Goodbye(idle=True)] * 3, scope=FRAMEWORK_SCOPE))
    desk.router.put(b"a", frame(*[Goodbye(idle=False)] * 3, scope=FRAMEWORK_SCOPE))
    desk.inbound.drain(0.0)
    assert desk.lost == [("bob", "goodbye")]


# -- floods -----------------------------------------------------------------------------------


def test_frames_over_the_rate_are_a_flood_until_the_next_second() -> None:
    desk = Desk(net=NetSettings(peer_rate=10))
    desk.say_hello("bob")
    for _ in range(15):
        desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(0.5)
    assert (len(desk.delivered), desk.refused) == (10, {"flood": 5})
    desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(1.0)
    assert (len(desk.delivered), desk.refused) == (11, {"flood": 5})


def test_long_frames_are_no_flood() -> None:
    desk = Desk(net=NetSettings(peer_rate=10))
    desk.say_hello("bob")
    for _ in range(15):
        desk.router.put(b"a", frame(EchoRequest(1, bytes(SMALL_FRAME))))
    desk.inbound.drain(0.5)
    assert (len(desk.delivered), desk.refused) == (15, {})


def test_a_rate_of_zero_bounds_nothing() -> None:
    desk = Desk(net=NetSettings(peer_rate=0))
    desk.say_hello("bob")
    for _ in range(50):
        desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(0.0)
    assert len(desk.delivered) == 50


@pytest.mark.parametrize("friend", [True, False], ids=["a session", "a stranger"])
def test_a_tick_ends_early_when_all_it_gets_is_rubbish(friend: bool) -> None:
    desk = Desk(net=NetSettings(tick_bytes=10 * REFUSAL_COST))
    if friend:
        desk.say_hello("bob")
    for _ in range(100):
        desk.router.put(b"a", [b"\xc1"])
    assert desk.inbound.drain(0.0) is True
    assert desk.refused.total() == 10


def test_one_frame_of_many_bad_messages_ends_its_tick() -> None:
    desk = Desk(net=NetSettings(tick_bytes=10 * REFUSAL_COST))
    desk.say_hello("bob")
    for _ in range(3):
        desk.router.put(b"a", frame(*[[9999]] * 20))
    assert desk.inbound.drain(0.0) is True
    assert desk.refused == {"unknown-tag": 20}


# -- what ZeroMQ reports ----------------------------------------------------------------------


def test_a_connection_that_ends_in_its_handshake() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), (ENDED, 9))  # the other side hung up first
    desk.happens((ACCEPTED, 9))
    desk.happens((zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, 77), (ENDED, 9))
    desk.inbound.drain(0.0)
    assert desk.refused == {"handshake-failed": 2}


def test_a_connection_that_ends_without_a_word() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN, (ENDED, 9))
    assert not desk.refused  # its Hello may still wait
    desk.inbound.drain(0.0)
    assert desk.refused == {"handshake-failed": 1}


def test_connections_that_end_in_one_reading_are_counted_one_by_one() -> None:
    desk = Desk()
    desk.happens(*[(ACCEPTED, 9), (ENDED, 9)] * 5, (ACCEPTED, 8), (ENDED, 8))
    desk.inbound.drain(0.0)
    assert desk.refused == {"handshake-failed": 6}


def test_a_hello_read_after_its_connection_ended_is_heard_and_forgotten() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN, (ENDED, 9))
    desk.router.put(b"a", encoded(hello("bob")))
    desk.router.put(b"a", frame(ASK))
    desk.inbound.drain(0.0)
    assert desk.delivered == [("bob", "", ASK)]
    assert (desk.lost, desk.inbound.sessions) == ([("bob", "disconnected")], {})
    assert not desk.refused


def test_a_first_word_may_be_read_before_the_monitor_tells_of_its_connection() -> None:
    desk = Desk()
    desk.say_hello("bob", b"a", fd=9)
    desk.router.put(b"b", [b"rubbish"], fd=8)
    desk.inbound.drain(0.0)
    desk.happens((ACCEPTED, 9), (ACCEPTED, 8))
    desk.happens((ENDED, 9), (ENDED, 8))
    desk.inbound.drain(0.0)
    assert (desk.inbound.sessions, desk.lost) == ({}, [("bob", "disconnected")])
    assert desk.refused == {"no-hello": 1}


def test_who_was_refused_is_not_counted_again_when_it_leaves() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN)
    desk.router.put(b"a", [b"rubbish"])
    desk.inbound.drain(0.0)
    desk.happens((ENDED, 9))
    desk.inbound.drain(0.0)
    assert desk.refused == {"no-hello": 1}


def test_a_session_ends_with_its_connection_once_its_last_frames_are_read() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN)
    desk.say_hello("bob")
    desk.happens()
    desk.router.put(b"a", frame(ASK))
    desk.happens((ENDED, 9))
    desk.inbound.drain(0.0)
    assert desk.delivered == [("bob", "", ASK)]
    assert desk.lost == [("bob", "disconnected")]
    assert desk.inbound.counts["sessions lost"] == 1


def test_a_descriptor_used_again_does_not_end_the_new_session() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN)
    desk.say_hello("bob", b"a")
    desk.happens()
    desk.happens((ENDED, 9), (ACCEPTED, 9), SHAKEN)
    desk.router.put(b"b", encoded(hello("eve")))
    desk.inbound.drain(0.0)
    desk.happens()
    assert [session.name for session in desk.inbound.sessions.values()] == ["eve"]


def test_a_silent_visitor_on_a_descriptor_that_a_talker_had() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9))
    desk.happens()
    for _ in range(3):
        desk.router.put(b"a", [b"rubbish"])
    desk.inbound.drain(0.0)
    desk.happens((ENDED, 9), (ACCEPTED, 9), (ENDED, 9))
    desk.inbound.drain(0.0)
    assert desk.refused == {"no-hello": 3, "handshake-failed": 1}


def test_a_silent_visitor_on_a_descriptor_that_a_session_had() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9), SHAKEN)
    desk.say_hello("bob")
    desk.happens()
    desk.happens((ENDED, 9), (ACCEPTED, 9), (ENDED, 9))
    desk.inbound.drain(0.0)
    assert (desk.inbound.sessions, desk.refused) == ({}, {"handshake-failed": 1})


def test_a_session_on_a_descriptor_that_a_silent_visitor_had() -> None:
    desk = Desk()
    desk.happens((ACCEPTED, 9))
    desk.happens((ENDED, 9), (ACCEPTED, 9), SHAKEN)
    desk.say_hello("bob")
    desk.happens()
    assert desk.refused == {"handshake-failed": 1}
    assert [session.name for session in desk.inbound.sessions.values()] == ["bob"]
    desk.happens((ENDED, 9))
    desk.inbound.drain(0.0)
    assert desk.inbound.sessions == {}


# -- certificates that end --------------------------------------------------------------------


@dataclass
class Fickle(OpenTrust):
    """Believes everybody who is not on a list."""

    banned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(ME, OVERLAY)

    def identify(
        self, certificate: bytes, name: str | None, curve_key: bytes | None, now: float
    ) -> Identity:
        if name in self.banned:
            raise RemoteProtocolError("certificate-revoked", name or "")
        return super().identify(certificate, name, curve_key, now)


def test_a_revoked_peer_loses_its_session_and_others_keep_theirs() -> None:
    trust = Fickle()
    desk = Desk(trust=trust)
    desk.say_hello("bob", b"a", fd=1)
    desk.say_hello("eve", b"b", fd=2)
    desk.inbound.recheck()
    assert len(desk.inbound.sessions) == 2
    trust.banned.add("eve")
    desk.inbound.recheck()
    assert [session.name for session in desk.inbound.sessions.values()] == ["bob"]
    assert desk.lost == [("eve", "certificate-revoked")]
    assert desk.router.sent[-1] == (b"b", Refusal("certificate-revoked", "eve"))
    desk.router.put(b"b", frame(ASK), fd=2)
    desk.inbound.drain(0.0)
    assert desk.delivered == []
    assert desk.refused == {"certificate-revoked": 1, "no-hello": 1}
