"""Payloads from 32 KiB are parts, from 256 KiB uncopied; past the frame limit they go in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import zmq

from overlay.errors import LocalProtocolError
from overlay.limits import KIB, MIB, Limits
from overlay.net.link import COPIED_BELOW
from tests.net.drivers import Keys, Speaker, running, speaker, until

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
SMALL_FRAMES = Limits(frame_bytes=64 * KIB, string_bytes=4 * KIB, message_bytes=1 * MIB)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


def _pair(keys: Keys, secure: bool, limits: Limits | None = None) -> tuple[Speaker, Speaker]:
    ada, bob = (
        speaker(name, credentials=keys.of(name) if secure else None, limits=limits)
        for name in ("ada", "bob")
    )
    return ada, bob


class Spy:
    """Stands for a DEALER and remembers what was handed to it."""

    def __init__(self, dealer: zmq.Socket[bytes]) -> None:
        self._dealer = dealer
        self.uncopied: list[Any] = []
        self.frames: list[list[int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dealer, name)

    def send(self, data: bytes, flags: int) -> None:
        self.frames.append([len(data)])
        self._dealer.send(data, flags)

    def send_multipart(self, parts: Sequence[Any], flags: int, *, copy: bool) -> None:
        self.frames.append([len(part) for part in parts])
        if not copy:
            threshold = self._dealer.copy_threshold
            self.uncopied += [part for part in parts if len(part) >= threshold]
        self._dealer.send_multipart(parts, flags, copy=copy)


async def _spied(ada: Speaker, bob: Speaker) -> Spy:
    ada.knows(bob)
    ada.say("bob", -1)
    await until(lambda: bob.numbers == [-1], "the link")
    link = ada.link("bob")
    assert link._dealer is not None
    spy = Spy(link._dealer)
    link._dealer = spy  # type: ignore[assignment]
    return spy


@both_worlds
def test_a_long_payload_is_a_part_of_its_own_and_the_longest_are_not_copied(
    keys: Keys, secure: bool
) -> None:
    async def main() -> None:
        ada, bob = _pair(keys, secure)
        async with running(ada, bob):
            spy = await _spied(ada, bob)
            sizes = (32 * KIB - 1, 32 * KIB, COPIED_BELOW)
            payloads = [bytes(size) for size in sizes]
            for number, payload in enumerate(payloads):
                ada.say("bob", number, payload=payload)
                await until(lambda: bob.numbers[-1] == number, f"number {number}")  # noqa: B023
            assert [len(parts) for parts in spy.frames] == [1, 2, 2]
            assert [parts[1] for parts in spy.frames[1:]] == [32 * KIB, COPIED_BELOW]
            assert [part is payloads[2] for part in spy.uncopied] == [True]  # the caller's own
            assert [payload for _, _, payload in bob.talk.heard] == [b"", *payloads]

    trio.run(main)


def test_zeromq_reads_a_large_part_where_it_lies() -> None:
    """The same call that a link makes, on a bare socket: the message holds on to the bytes."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        with context.socket(zmq.DEALER) as dealer, context.socket(zmq.DEALER) as other:
            dealer.copy_threshold = 32 * KIB
            dealer.bind("inproc://here")
            other.connect("inproc://here")
            payload = bytearray(b"a" * 64 * KIB)
            dealer.send_multipart([b"head", memoryview(payload)], zmq.NOBLOCK, copy=False)
            payload[0] = ord("b")  # seen at the other end: nobody made a copy
            assert other.recv_multipart()[1][:2] == b"ba"
    finally:
        context.term()


@both_worlds
def test_past_the_frame_limit_a_payload_goes_in_pieces_and_the_rest_keeps_its_order(
    keys: Keys, secure: bool
) -> None:
    limit = SMALL_FRAMES.frame_bytes
    sizes = [limit - 1, limit, limit + 1, 5 * limit, SMALL_FRAMES.message_bytes]

    async def main() -> None:
        ada, bob = _pair(keys, secure, SMALL_FRAMES)
        async with running(ada, bob):
            spy = await _spied(ada, bob)
            said = [(-1, b"")]
            for number, size in enumerate(sizes):
                large = (str(number) * size).encode()[:size]
                said += [(number, b"before"), (number, large), (number, b"after")]
                ada.say("bob", number, payload=b"before")
                ada.say("bob", number, payload=large)
                ada.say("bob", number, payload=b"after")
            await until(lambda: len(bob.numbers) == len(said), "all of them")
            heard = [(number, payload) for _, number, payload in bob.talk.heard]
            assert sorted(heard) == sorted(said)
            whole = [one for one in said if len(one[1]) <= limit]  # those that no other overtakes
            assert [one for one in heard if len(one[1]) <= limit] == whole
            assert max(max(parts) for parts in spy.frames) <= limit
            with pytest.raises(
                LocalProtocolError,
                match=r"Word carries 1048577 bytes; limits.message_bytes is 1048576",
            ):
                ada.say("bob", 9, payload=bytes(SMALL_FRAMES.message_bytes + 1))
            ada.say("bob", 10)
            await until(lambda: bob.numbers[-1] == 10, "what was said after the refusal")
            assert bob.driver.status().refusals == {}

    trio.run(main)


@both_worlds
def test_64_mib_by_default_and_not_a_byte_more(keys: Keys, secure: bool) -> None:
    most = Limits().message_bytes
    assert most == 64 * MIB
    payload = (bytes(range(256)) * (most // 256 + 1))[:most]

    async def main() -> None:
        ada, bob = _pair(keys, secure)
        async with running(ada, bob):
            ada.knows(bob)
            ada.say("bob", 1)
            ada.say("bob", 2, payload=payload)
            ada.say("bob", 3)
            with pytest.raises(LocalProtocolError, match=r"67108865 bytes; limits.message_bytes"):
                ada.say("bob", 4, payload=payload + b"!")
            await until(lambda: len(bob.numbers) == 3, "64 MiB between two small ones")
            assert bob.numbers == [1, 3, 2]  # the last one did not wait for all that
            assert bob.talk.heard[2][2] == payload
            assert ada.count("messages dropped") == 0
            assert ada.count("bulk messages dropped") == 0

    trio.run(main)
