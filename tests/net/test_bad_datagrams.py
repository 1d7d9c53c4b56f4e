"""Datagrams that nobody should send, to the port of a node that runs."""

from __future__ import annotations

import random
import socket
import time

import msgspec
import pytest

from overlay.net.introduction import INTRODUCTION_MAGIC
from overlay.security.datagram import DatagramSigner
from overlay.wire.datagrams import write_datagram
from overlay.wire.frames import FRAMEWORK_SCOPE, IAm, WhoIs
from tests.net.strangers import ASK, Play, Scene, both_worlds

NOISE = random.Random(3)


@both_worlds
def test_garbage_datagrams(play: Play, secure: bool) -> None:
    async def attack(stage: Scene) -> None:
        magic = INTRODUCTION_MAGIC
        plain, signed = "datagram-malformed", "datagram-malformed"
        if secure:
            plain = "datagram-wrong-overlay"  # as far as its first byte tells
        else:
            signed = "datagram-wrong-overlay"
        for data, reason in (
            (b"", "datagram-malformed"),
            (b"\x00" + NOISE.randbytes(200), "datagram-malformed"),
            (b"\xd4\x01" + NOISE.randbytes(200), plain),
            (b"\xd5\x11" + NOISE.randbytes(200), signed),
            (b"\x00" * 60_000, "datagram-malformed"),
            (magic, "malformed-datagram"),
            (magic + b"\xc1" * 100, "malformed-datagram"),
            (magic + b"\x91" * 50_000, "malformed-datagram"),
            (magic + msgspec.msgpack.encode([1, "#", [9999]]), "unknown-tag"),
            (magic + msgspec.msgpack.encode([1, "#", [1, b"short"]]), "wrong-shape"),
            (magic + msgspec.msgpack.encode([2, "#", [1]]), "wrong-version"),
            (magic + msgspec.msgpack.encode([1, "#", IAm(bytes(8), "eve")]), "stray-introduction"),
            (magic + msgspec.msgpack.encode([1, "#", [8, True]]), "unexpected-datagram"),
        ):
            before = stage.refused(reason)
            stage.datagram(data).close()  # loopback loses none while the node keeps up
            await stage.until_refused(reason, before + 1)
        await stage.unharmed(*stage.status.refusals)

    play(attack, secure=secure)


def test_a_question_that_is_not_padded_is_not_answered(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        def question(padding: int) -> bytes:
            who = WhoIs(bytes(8), bytes(padding))
            return INTRODUCTION_MAGIC + write_datagram(
                FRAMEWORK_SCOPE, who, stage.node.driver.limits
            )

        asked = stage.datagram(question(0))
        await stage.until_refused("question-not-padded")
        with pytest.raises(BlockingIOError):
            asked.recv(65_535)
        asked.close()
        padded = question(len(stage.node.driver._trust.certificate) + 64)
        asked = stage.datagram(padded)
        answers: list[bytes] = []

        def look() -> bool:
            try:
                answers.append(asked.recv(65_535))
            except BlockingIOError:
                return False
            return True

        await stage.until(look, "the answer to a padded question")
        asked.close()
        assert len(answers[0]) <= len(padded) + 64  # no amplifier
        await stage.unharmed("question-not-padded")

    play(attack)


def test_a_replayed_and_a_forged_datagram(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        signer = DatagramSigner(stage.issue("eve"))
        body = write_datagram("", ASK, stage.node.driver.limits)
        signed = signer.sign(body, time.time(), with_certificate=True)
        for data, reason, count in (
            (signed, "unexpected-datagram", 1),  # believed, but echo takes no datagrams
            (signed, "datagram-replayed", 1),
            (signed, "datagram-replayed", 2),
            (_fresh_but_altered(signer), "datagram-forged", 1),
            (signer.sign(body, time.time() - 300, with_certificate=True), "datagram-stale", 1),
        ):
            stage.datagram(data).close()
            await stage.until_refused(reason, count)
        await stage.unharmed(
            "unexpected-datagram", "datagram-replayed", "datagram-forged", "datagram-stale"
        )

    def _fresh_but_altered(signer: DatagramSigner) -> bytes:
        signed = signer.sign(b"body", time.time(), with_certificate=True)
        return signed[:-1] + bytes([signed[-1] ^ 1])

    play(attack)


def test_a_flood_of_datagrams_starves_nobody(play: Play) -> None:
    async def attack(stage: Scene) -> None:
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(20):
            for _ in range(500):
                sender.sendto(b"\x00" * 100, stage.address)
            await stage.echo()
        sender.close()
        await stage.until_refused("datagram-malformed", 1000)
        await stage.unharmed("datagram-malformed")

    play(attack)
