"""Everything that a peer must not send, from raw sockets to a node that runs.

Each is counted under its own reason in the node's status and logged once a second at most; the
node goes on answering its friend, and lets in nobody whom it should not.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest
import trio
import trio.lowlevel
import zmq

from overlay.security.authority import Authority
from overlay.security.datagram import DatagramSigner
from overlay.wire.frames import FRAMEWORK_SCOPE, Piece, PieceStart, Refusal, Welcome
from protocols.echo import EchoRequest
from tests.net.strangers import (
    ASK,
    DAY,
    OVERLAY,
    RIGHTS,
    WITHIN,
    Play,
    Scene,
    Stranger,
    both_worlds,
    frame,
)

# -- frames -----------------------------------------------------------------------------------

SMALL = ("limits.frame_bytes=65536", "limits.string_bytes=1000", "limits.batch_messages=10")
GOOD = frame(ASK)
NOISE = random.Random(1)

BAD_FRAMES: dict[str, tuple[list[bytes], str]] = {
    "random bytes": ([b"\xc1" + NOISE.randbytes(100)], "malformed-frame"),
    "nothing": ([b""], "malformed-frame"),
    "a truncated frame": ([GOOD[: len(GOOD) // 2]], "malformed-frame"),
    "no UTF-8": ([frame(ASK, scope="text").replace(b"text", b"\xff\xff\xff\xff")],
                 "malformed-frame"),
    "arrays in arrays": ([b"\x91" * 60_000], "malformed-frame"),
    "a frame of the wrong shape": ([msgspec.msgpack.encode([1, 2.0, {}, []])], "wrong-shape"),
    "a message of the wrong shape": ([frame([16, "no id", b""])], "wrong-shape"),
    "a wrong version": ([frame(ASK, version=2)], "wrong-version"),
    "an unknown tag": ([frame([9999, "from the future"])], "unknown-tag"),
    "an unknown scope": ([frame(ASK, scope="elsewhere")], "unknown-scope"),
    "a message of the framework": ([frame(ASK, scope=FRAMEWORK_SCOPE)], "unexpected-message"),
    "an oversized frame": ([frame(EchoRequest(1, bytes(66_000)))], "frame-too-large"),
    "an oversized part": ([GOOD, bytes(66_000)], "frame-too-large"),
    "a long batch": ([frame(*[ASK] * 11)], "batch-too-long"),
    "a part too many": ([GOOD, b"whose?"], "wrong-parts"),
    "a stray piece": ([frame(Piece(b"x"), scope=FRAMEWORK_SCOPE)], "stray-piece"),
    "an endless message": (
        [frame(PieceStart("", 1 << 40, b""), scope=FRAMEWORK_SCOPE)],
        "message-too-large",
    ),
    "a piece of another number": (
        [frame(PieceStart("", 9, b"", 1), Piece(b"x", 2), scope=FRAMEWORK_SCOPE)],
        "stray-piece",
    ),
    "too many messages in pieces": (
        [frame(*(PieceStart("", 9, b"", n) for n in range(9)), scope=FRAMEWORK_SCOPE)],
        "too-many-unfinished",
    ),
}  # fmt: skip


@both_worlds
def test_bad_frames_of_a_peer_that_is_let_in(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        eve = await stage.member()
        expected: dict[str, int] = {}
        for parts, reason in BAD_FRAMES.values():
            expected[reason] = expected.get(reason, 0) + 3
            for _ in range(3):
                eve.send(*parts)
        await stage.until(lambda: stage.status.refusals == expected, f"{expected}")
        assert _served(stage) == 1
        eve.send(frame(ASK))  # it may still behave
        await stage.until(lambda: _served(stage) == 2, "an echo")
        await stage.unharmed(*expected, sessions=["eve"])

    play(attack, *SMALL, secure=secure)


@both_worlds
def test_thousands_of_mutated_frames(play: Play, secure: bool) -> None:
    rng = random.Random(2)

    async def attack(stage: Scene) -> None:
        eve = await stage.member()
        stranger = stage.stranger()
        for _ in range(2000):
            parts, _ = rng.choice([*BAD_FRAMES.values(), ([GOOD], ""), ([GOOD, GOOD], "")])
            changed = [bytearray(part[:2000]) for part in parts]
            for _ in range(rng.randrange(4)):
                part = rng.choice(changed)
                if part:
                    part[rng.randrange(len(part))] = rng.randrange(256)
            for sender in (eve, stranger):
                while not sender.send_if_possible(*map(bytes, changed)):
                    await trio.lowlevel.checkpoint()
        await stage.until(lambda: sum(stage.status.refusals.values()) > 3000, "many refusals")
        eve.close()
        stranger.close()
        perhaps = {*stage.status.refusals, "flood", "wrong-pieces", "malformed-message"}
        await stage.unharmed("no-hello", "malformed-frame", perhaps=perhaps)

    play(attack, *SMALL, secure=secure)


@both_worlds
def test_a_frame_past_what_zeromq_takes_cuts_its_sender_off(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        eve = await stage.member()
        eve.send(frame(EchoRequest(1, bytes(1 << 20))))
        await stage.until(lambda: stage.status.counters.get("sessions lost"), "the session's end")
        eve.close()
        await stage.until(lambda: len(stage.status.sessions) == 1, "the friend alone")
        # A stranger's is cut off as well, and so counts as one that hung up before its Hello.
        # So does the member, whose DEALER has connected again by itself.
        mallory = stage.stranger()
        mallory.send(bytes(1 << 20))
        await stage.until_refused("handshake-failed")
        mallory.close()
        await stage.unharmed("handshake-failed")

    play(attack, *SMALL, secure=secure)


# -- who is let in ----------------------------------------------------------------------------


@both_worlds
def test_strangers_who_say_anything_but_hello(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        words = [b"", os.urandom(50), msgspec.msgpack.encode({"hello": 1}), GOOD]
        for word in words:
            stranger = stage.stranger()
            stranger.send(word)
            reply = await stage.answer(stranger)
            assert isinstance(reply, Refusal)
            assert reply.reason == "no-hello"
        assert stage.refused("no-hello") == len(words)
        await stage.unharmed("no-hello")

    play(attack, secure=secure)


@both_worlds
def test_an_incompatible_version_gets_a_refusal_that_it_can_read(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        old = stage.stranger()
        old.hello(oldest=0, newest=0)
        newer = stage.stranger()
        newer.send(msgspec.msgpack.encode([3, 2, 5, {"fields": "of tomorrow"}]))
        for stranger, versions in ((old, "0 to 0"), (newer, "2 to 5")):
            assert await stage.answer(stranger) == Refusal(
                "incompatible-version", f"the peer speaks versions {versions}, we 1 to 1"
            )
        await stage.unharmed("incompatible-version")

    play(attack, secure=secure)


def test_a_node_that_is_refused_tells_its_user_why(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        router = stage.context.socket(zmq.ROUTER)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        stage.node.meet(f"127.0.0.1:{port}")
        refusal = Refusal("incompatible-version", "the peer speaks versions 1 to 1, we 2 to 3")

        def refuse() -> bool:
            while router.poll(0):
                sender, _ = router.recv_multipart()
                router.send_multipart([sender, msgspec.msgpack.encode(refusal)])
            reasons = [link.reason for link in stage.status.links]
            return f"{refusal.reason}: {refusal.detail}" in reasons

        await stage.until(refuse, "the reason in the status")
        assert stage.refused("refused-by-peer") >= 1
        router.close(linger=0)
        await stage.unharmed("refused-by-peer")

    play(attack, secure=False)


@both_worlds
def test_hellos_that_do_not_fit(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        certificate = stage.issue("ada").certificate if secure else b""
        reasons = []
        for name, other, reason in (
            ("eve", {"overlay": "home"}, "wrong-overlay"),
            ("ada", {"certificate": certificate}, "key-mismatch" if secure else "name-taken"),
            ("../eve", {}, "certificate-missing" if secure else "bad-name"),
        ):
            stranger = stage.stranger()
            stranger.hello(name, **other)
            reply = await stage.answer(stranger)
            assert isinstance(reply, Refusal)
            assert reply.reason == reason
            assert stage.refused(reason) == 1
            reasons.append(reason)
        await stage.unharmed(*reasons)

    play(attack, secure=secure)


def test_forged_senders(play: Play, tmp_path: Path) -> None:
    async def attack(stage: Scene) -> None:
        eve, bobs = stage.issue("eve"), stage.issue("bob")
        others = Authority.create(tmp_path / "others", OVERLAY).issue("bob", RIGHTS, 1)
        elsewhere = Authority.create(tmp_path / "elsewhere", "home").issue("bob", RIGHTS, 1)
        for key, name, certificate, reason in (
            (eve, "bob", eve.certificate, "name-forged"),
            (eve, "bob", bobs.certificate, "key-mismatch"),
            (None, "bob", bobs.certificate, "key-mismatch"),
            (others, "bob", others.certificate, "certificate-untrusted"),
            (elsewhere, "bob", elsewhere.certificate, "certificate-wrong-overlay"),
            (eve, "eve", b"", "certificate-missing"),
            (eve, "eve", eve.certificate[:-1], "certificate-malformed"),
            (eve, "eve", os.urandom(700), "certificate-malformed"),
        ):
            before = stage.refused(reason)
            stranger = stage.stranger(key)
            stranger.hello(name, certificate=certificate)
            reply = await stage.answer(stranger)
            assert isinstance(reply, Refusal)
            assert reply.reason == reason
            assert stage.refused(reason) == before + 1
            stranger.send(frame(ASK))
            await stage.until(lambda: stage.refused("no-hello") > 0, "that it is not heard")
        assert _served(stage) == 1
        await stage.unharmed(*stage.status.refusals)

    play(attack)


def test_an_expired_certificate(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        old = stage.issue("eve", now=time.time() - 3 * DAY)
        stranger = stage.stranger(old)
        stranger.hello("eve", certificate=old.certificate)
        reply = await stage.answer(stranger)
        assert isinstance(reply, Refusal)
        assert reply.reason == "certificate-expired"
        signed = DatagramSigner(old).sign(b"body", time.time(), with_certificate=True)
        stage.datagram(signed).close()
        await stage.until_refused("certificate-expired", 2)
        await stage.unharmed("certificate-expired")

    play(attack)


def test_a_certificate_that_is_revoked_while_it_is_used(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overlay.net.driver.REFRESH_TRUST", 0.05)

    async def attack(stage: Scene) -> None:
        credentials = stage.issue("eve")
        eve = stage.stranger(credentials)
        eve.hello("eve", certificate=credentials.certificate)
        assert isinstance(await stage.answer(eve), Welcome)
        stage.revoke("eve")
        reply = await stage.answer(eve)  # its session ends without its asking
        assert reply == Refusal("certificate-revoked", "'eve'")
        again = stage.stranger(credentials)
        again.hello("eve", certificate=credentials.certificate)
        assert isinstance(await stage.answer(again), Refusal)
        signed = DatagramSigner(credentials).sign(b"body", time.time(), with_certificate=True)
        stage.datagram(signed).close()
        await stage.until_refused("certificate-revoked", 3)
        await stage.unharmed("certificate-revoked")

    play(attack)


@both_worlds
def test_a_routing_id_that_is_taken_hides_nobody_else(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        squatter = stage.stranger(routing_id=b"popular")
        squatter.hello("mallory")
        assert isinstance(await stage.answer(squatter), Refusal if secure else Welcome)
        thief = stage.stranger(routing_id=b"popular")
        for _ in range(20):
            thief.send(frame(ASK))
        carol = await stage.member("carol")  # who came after both of them is heard
        carol.send(frame(ASK))
        await stage.until(lambda: _served(stage) == 2, "carol's echo")
        if not secure:
            squatter.send(frame(ASK))
            await stage.until(lambda: _served(stage) == 3, "the echo of who came first")
        assert _served(stage) == (2 if secure else 3)
        for stranger in (squatter, thief, carol):
            stranger.close()
        await stage.unharmed(perhaps=["certificate-missing", "no-hello", "handshake-failed"])

    play(attack, secure=secure)


def test_a_claim_to_the_routing_id_of_another_session(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        ((taken, session),) = stage.node.driver._inbound.sessions.items()
        thief = socket.create_connection(stage.address)
        thief.sendall(_zmtp_as(taken) + b"".join(_zmtp_frame(GOOD) for _ in range(20)))
        heard = session.frames
        for n in range(1, 4):
            await stage.echo()
            assert (session.frames, _served(stage)) == (heard + n, 1 + n)
        thief.close()
        await stage.unharmed(perhaps=["no-hello", "handshake-failed"])
        assert stage.node.driver._inbound.sessions == {taken: session}

    play(attack, secure=False)


def _served(stage: Scene) -> int:
    """How many echoes the node gave; the friend's first is one of them."""
    return int(stage.node.status().protocols["echo"]["served"])


def _zmtp_as(routing_id: bytes) -> bytes:
    """ZeroMQ's greeting, and a routing id that its own sockets would not let one choose."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    ready = b"\x05READY"
    for name, value in ((b"Socket-Type", b"DEALER"), (b"Identity", routing_id)):
        ready += bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
    return greeting + bytes([4, len(ready)]) + ready


def _zmtp_frame(body: bytes) -> bytes:
    return bytes([0, len(body)]) + body


def test_an_insecure_namesake_takes_no_session_of_another(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        crowd: list[Stranger] = [await stage.member("eve") for _ in range(16)]
        for name, reason in (("eve", "too-many-sessions"), ("bob", "name-in-use")):
            one_more = stage.stranger()
            one_more.hello(name)
            reply = await stage.answer(one_more)
            assert isinstance(reply, Refusal)
            assert reply.reason == reason
            crowd.append(one_more)
        for stranger in crowd:
            stranger.close()
        await stage.unharmed("too-many-sessions", "name-in-use")

    play(attack, secure=False)


# -- handshakes -------------------------------------------------------------------------------


async def knock(stage: Scene, connect: Callable[[], Callable[[], None]]) -> None:
    """Connect in a wrong way, again and again, until the node has counted three."""
    for n in range(1, 4):
        hang_up = connect()
        with trio.move_on_after(WITHIN):
            while stage.refused("handshake-failed") < n:
                with trio.move_on_after(2.0):
                    await stage.until_refused("handshake-failed", n)
                    break
                hang_up()  # ZeroMQ gives a client up for good after some errors
                hang_up = connect()
        hang_up()
    await stage.unharmed("handshake-failed")


def test_a_client_without_curve(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        def connect() -> Callable[[], None]:
            stranger = stage.stranger(curve=False)
            stranger.hello("bob")
            return stranger.close

        await knock(stage, connect)

    play(attack)


def test_a_client_with_curve_at_an_insecure_node(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        await knock(stage, lambda: stage.stranger(curve=True).close)

    play(attack, secure=False)


def test_a_client_that_expects_another_server(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        wrong = zmq.curve_keypair()[0]
        await knock(stage, lambda: stage.stranger(server_key=wrong).close)

    play(attack)


@both_worlds
@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.0\r\n\r\n", NOISE.randbytes(300), b"\xff" + bytes(8) + b"\x7f\x03\x00", b""],
    ids=["http", "noise", "half a greeting", "silence"],
)
def test_a_tcp_client_that_is_no_zeromq(play: Play, secure: bool, said: bytes) -> None:
    async def attack(stage: Scene) -> None:
        def connect() -> Callable[[], None]:
            client = socket.create_connection(stage.address)
            with suppress(OSError):  # the node may have hung up by now
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)
            return client.close

        await knock(stage, connect)

    play(attack, secure=secure)


# -- floods -----------------------------------------------------------------------------------

FLOOD = 20_000  # frames
MEMORY = 40 << 20  # bytes that a node may grow by meanwhile


@pytest.mark.parametrize("kind", ["a member", "a stranger", "rubbish of a member"])
@both_worlds
def test_a_flood_starves_nobody(play: Play, secure: bool, kind: str) -> None:
    async def attack(stage: Scene) -> None:
        flooder = stage.stranger() if kind == "a stranger" else await stage.member()
        words = frame([9999]) if kind == "rubbish of a member" else frame(ASK)
        reason = "no-hello" if kind == "a stranger" else "flood"
        before = psutil.Process().memory_info().rss
        sent, echoes = 0, 0
        while sent < FLOOD:
            for _ in range(1000):
                sent += flooder.send_if_possible(words)
            await stage.echo()
            echoes += 1
        await stage.until_refused(reason, 1000)
        assert echoes >= FLOOD / 1000
        assert psutil.Process().memory_info().rss - before < MEMORY
        flooder.close()
        await stage.unharmed(reason, perhaps=["unknown-tag"])

    play(attack, "net.peer_rate=500", secure=secure)
