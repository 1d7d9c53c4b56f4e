"""A peer that lets others in, and then does not read what they send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import trio
import zmq

from overlay.wire.frames import Mark, Welcome
from tests.net.drivers import Speaker

PAYLOAD = bytes(30_000)  # inline: it is copied into frames, and so held in memory
SETTLED = 0.2  # s without a frame: the buffers of ZeroMQ and of the kernel are full too


class Deaf:
    """A raw ROUTER that says Welcome, and from then on reads only when told to."""

    def __init__(self, name: str, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._name = name
        self._router = context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._router.set(zmq.RCVHWM, 1)
        self._router.set(zmq.RCVBUF, 65_536)
        self._routing_id = b""
        self._router.bind("tcp://127.0.0.1:*")

    @property
    def endpoint(self) -> str:
        last = self._router.last_endpoint
        assert isinstance(last, bytes)
        return last.rstrip(b"\0").decode()

    def welcomes(self) -> bool:
        """Answer a Hello, if one came."""
        try:
            self._routing_id, _ = self._router.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return False
        self.answers(Welcome(1, self._name, bytes(8)))
        return True

    def answers(self, msg: Welcome | Mark) -> None:
        """Send it back over the link that came in."""
        self._router.send_multipart([self._routing_id, msgspec.msgpack.encode(msg)])

    def reads_one(self) -> list[bytes] | None:
        """Take in one frame; None when none waits."""
        if not self._router.poll(0):
            return None
        return self._router.recv_multipart()[1:]

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


async def fill(ada: Speaker, peer: str) -> None:
    """Say more and more, until messages are dropped and an open link takes no more."""
    for _ in range(10_000):
        ada.say(peer, *range(20), payload=PAYLOAD)
        await trio.lowlevel.checkpoint()
        if not ada.count("messages dropped"):
            continue
        if not ada.is_open(peer):
            return
        sent = ada.count("frames sent")
        await trio.sleep(SETTLED)
        if ada.link(peer).blocked and ada.count("frames sent") == sent:
            return
    raise AssertionError("ten thousand calls, and the link still takes more")
