"""A peer that does not read: its queue is bounded, what it costs is counted, others go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import psutil
import trio
import zmq

from overlay.wire.frames import Welcome
from tests.net.drivers import Speaker, running, speaker, until

MIB = 1 << 20
PAYLOAD = bytes(30_000)  # inline: it is copied into frames, and so held in memory


class Deaf:
    """A raw ROUTER that says Welcome, and from then on reads only when told to."""

    def __init__(self, name: str, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._name = name
        self._router = context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._router.set(zmq.RCVHWM, 1)
        self._router.set(zmq.RCVBUF, 65_536)
        self._router.bind("tcp://127.0.0.1:*")

    @property
    def endpoint(self) -> str:
        last = self._router.last_endpoint
        assert isinstance(last, bytes)
        return last.rstrip(b"\0").decode()

    def welcomes(self) -> bool:
        """Answer a Hello, if one came."""
        try:
            routing_id, _ = self._router.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return False
        welcome = msgspec.msgpack.encode(Welcome(1, self._name, bytes(8)))
        self._router.send_multipart([routing_id, welcome])
        return True

    def reads(self) -> int:
        """Take in all that waits; returns how many frames."""
        frames = 0
        while self._router.poll(0):
            self._router.recv_multipart()
            frames += 1
        return frames

    def close(self) -> None:
        self._router.close()


@contextmanager
def deaf_peer(name: str) -> Iterator[Deaf]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    peer = Deaf(name, context)
    try:
        yield peer
    finally:
        peer.close()
        context.term()


async def _fill(ada: Speaker, peer: str) -> None:
    """Say more and more, until messages are dropped."""
    for _ in range(10_000):
        ada.say(peer, *range(20), payload=PAYLOAD)
        await trio.lowlevel.checkpoint()
        if ada.count("messages dropped"):
            return
    raise AssertionError("ten thousand calls, and nothing was dropped")


def test_the_queue_of_a_deaf_peer_is_bounded_and_others_go_on() -> None:
    async def main() -> None:
        ada, bob = speaker("ada", link_bytes=4 * MIB), speaker("bob")
        with deaf_peer("dan") as dan:
            async with running(ada, bob):
                ada.knows(bob)
                ada.driver.learn("dan", [dan.endpoint])
                ada.say("dan", 0)
                await until(dan.welcomes, "a Hello")
                await until(lambda: ada.is_open("dan"), "the link")
                await _fill(ada, "dan")
                assert ada.link("dan").blocked
                held = psutil.Process().memory_info().rss
                dropped = ada.count("messages dropped")
                for number in range(100):
                    ada.say("dan", *range(50), payload=PAYLOAD)
                    ada.say("bob", number)
                await until(lambda: bob.numbers == list(range(100)), "the others' messages")
                assert ada.count("messages dropped") >= dropped + 4000  # of 5000: 150 MB
                grown = psutil.Process().memory_info().rss - held
                assert grown < 40 * MIB
                assert ada.is_open("dan")

    trio.run(main)


def test_what_fitted_into_the_queue_leaves_when_the_peer_reads_again() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 * MIB, link_frames=1)
        with deaf_peer("dan") as dan:
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                ada.say("dan", 0)
                await until(dan.welcomes, "a Hello")
                await until(lambda: ada.is_open("dan"), "the link")
                await _fill(ada, "dan")
                frames = len(ada.link("dan").writer.frames)
                assert frames
                before = ada.count("frames sent")
                read = 0

                def all_read() -> bool:
                    nonlocal read
                    read += dan.reads()
                    return not ada.link("dan").writer

                await until(all_read, "an empty queue")
                assert read
                assert ada.count("frames sent") >= before + frames
                dropped = ada.count("messages dropped")
                ada.say("dan", 1)
                await until(lambda: ada.count("frames sent") > before + frames, "room again")
                assert ada.count("messages dropped") == dropped

    trio.run(main)


def test_a_link_that_never_opens_is_bounded_too() -> None:
    async def main() -> None:
        ada = speaker("ada", link_bytes=1 * MIB)
        with deaf_peer("dan") as dan:  # it never says Welcome
            async with running(ada):
                ada.driver.learn("dan", [dan.endpoint])
                await _fill(ada, "dan")
                held = sum(size for _, size in ada.link("dan").writer.frames)
                assert 0.9 * MIB <= held <= 1 * MIB

    trio.run(main)
