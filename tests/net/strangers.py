"""A node under attack, a friend beside it that must not notice, and raw sockets that attack."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import zmq

from nodes.node import Node
from nodes.recipes import peer
from nodes.settings import node_config
from overlay.net.addresses import parse_endpoint
from overlay.net.status import DriverStatus
from overlay.security.authority import Authority
from overlay.security.credentials import Credentials
from overlay.security.rights import Rights
from overlay.wire.frames import Hello, Refusal, Welcome
from protocols.echo import Echo, EchoAnswered, EchoRequest

both_worlds = pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])

WITHIN = 60.0  # s: generous, since only a failure ever waits so long
LOOK_AGAIN = 0.005  # s
RIGHTS = Rights(zones=("west",))
DAY = 86_400.0
OVERLAY = "lab"
FRIEND = "bob"

_REPLY = msgspec.msgpack.Decoder(Welcome | Refusal)


class Stranger:
    """A DEALER of nobody's node: it says what it likes."""

    def __init__(self, dealer: zmq.Socket[bytes], endpoint: str) -> None:
        self._dealer = dealer
        dealer.connect(endpoint)

    def send(self, *parts: bytes) -> None:
        """Send one frame; never blocks."""
        self._dealer.send_multipart(parts, zmq.NOBLOCK)

    def send_if_possible(self, *parts: bytes) -> bool:
        """The same; False when ZeroMQ's queue is full."""
        try:
            self.send(*parts)
        except zmq.Again:
            return False
        return True

    def hello(self, name: str = "eve", **other: Any) -> None:
        """Say who connects; `other` replaces fields of the Hello."""
        said = Hello(1, 1, OVERLAY, name, bytes(8))
        self.send(msgspec.msgpack.encode(msgspec.structs.replace(said, **other)))

    def answered(self) -> Welcome | Refusal | None:
        """The next answer, if there is one by now."""
        try:
            reply: Welcome | Refusal = _REPLY.decode(self._dealer.recv(zmq.NOBLOCK))
        except zmq.Again:
            return None
        return reply

    def close(self) -> None:
        """Hang up, without a word."""
        self._dealer.close(linger=0)


class Scene:
    """The node `ada`, its friend `bob`, and what the test expects of them."""

    def __init__(self, node: Node, friend: Node, authority: Authority | None) -> None:
        self.node = node
        self.friend = friend
        self._authority = authority
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._open: list[Stranger] = []

    # -- looking ------------------------------------------------------------------------------

    @property
    def status(self) -> DriverStatus:
        """What `overlay status` shows of the node."""
        return self.node.status().driver

    def refused(self, reason: str) -> int:
        """How often something was refused for that reason."""
        return self.status.refusals.get(reason, 0)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition."""
        with trio.move_on_after(WITHIN):
            # Most conditions are counters in a status: nothing that one could wait on.
            while not condition():  # noqa: ASYNC110
                await trio.sleep(LOOK_AGAIN)
            return
        raise AssertionError(f"waited in vain for {what}; refused: {self.status.refusals}")

    async def until_refused(self, reason: str, at_least: int = 1) -> None:
        """Wait until the status counts it."""
        await self.until(lambda: self.refused(reason) >= at_least, reason)

    async def answer(self, stranger: Stranger) -> Welcome | Refusal:
        """Wait for what the node replies."""
        found: list[Welcome | Refusal] = []

        def look() -> bool:
            reply = stranger.answered()
            if reply is not None:
                found.append(reply)
            return bool(found)

        await self.until(look, "an answer")
        return found[0]

    async def echo(self) -> float:
        """The friend asks, and the node answers; returns how long that took."""
        with self.friend.events(EchoAnswered) as answers:
            asked = self.friend.call(self.friend.protocol(Echo).ask, self.node.name, b"alive?")
            with trio.fail_after(WITHIN):
                answer = await anext(answers)
            assert (answer.peer, answer.id) == (self.node.name, asked)
            return answer.round_trip

    async def unharmed(
        self, *reasons: str, perhaps: Iterable[str] = (), sessions: Iterable[str] = ()
    ) -> None:
        """Exactly these reasons were counted (and those that only `perhaps` are), nothing else."""
        await self.echo()
        counted = set(self.status.refusals)
        assert set(reasons) <= counted <= {*reasons, *perhaps}
        expected = sorted([FRIEND, *sessions])
        await self.until(
            lambda: sorted(one.peer for one in self.status.sessions) == expected,
            f"the sessions {expected}",
        )
        assert not self.friend.status().driver.refusals

    # -- attacking ----------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """Where the node is reached."""
        return self.node.endpoints[0]

    @property
    def address(self) -> tuple[str, int]:
        """The same for plain sockets: its TCP and UDP ports are one."""
        parsed = parse_endpoint(self.endpoint)
        return parsed.host, parsed.port

    def issue(self, name: str, **when: Any) -> Credentials:
        """A certificate of the overlay's own authority."""
        assert self._authority is not None
        return self._authority.issue(name, RIGHTS, 1, **when)

    def revoke(self, name: str) -> None:
        """Take all certificates of a name back; nodes find the new list by themselves."""
        assert self._authority is not None
        self._authority.revoke(name)

    def stranger(
        self,
        credentials: Credentials | None = None,
        *,
        curve: bool | None = None,
        routing_id: bytes = b"",
        server_key: bytes | None = None,
    ) -> Stranger:
        """Connect; with CURVE if the overlay is secure, under a key of nobody unless told."""
        dealer = self.context.socket(zmq.DEALER)
        dealer.linger = 0
        if routing_id:
            dealer.routing_id = routing_id
        if curve if curve is not None else self._authority is not None:
            if credentials is None:
                dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_keypair()
            else:
                dealer.curve_publickey = credentials.curve_public
                dealer.curve_secretkey = credentials.curve_secret
            dealer.curve_serverkey = server_key or self._server_key()
        opened = Stranger(dealer, self.endpoint)
        self._open.append(opened)
        return opened

    def _server_key(self) -> bytes:
        curve = self.node.driver._trust.curve
        return curve[0] if curve is not None else zmq.curve_keypair()[0]

    async def member(self, name: str = "eve") -> Stranger:
        """A stranger that got in: it has a certificate, if that is asked for."""
        if self._authority is None:
            stranger = self.stranger()
            stranger.hello(name)
        else:
            credentials = self.issue(name)
            stranger = self.stranger(credentials)
            stranger.hello(name, certificate=credentials.certificate)
        assert isinstance(await self.answer(stranger), Welcome)
        return stranger

    def datagram(self, data: bytes) -> socket.socket:
        """Send one to the node; the answer, if any, comes to the socket returned."""
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        sender.sendto(data, self.address)
        return sender

    def close(self) -> None:
        """Hang up everywhere."""
        for stranger in self._open:
            stranger.close()
        self.context.destroy(linger=0)


Attack = Callable[[Scene], Awaitable[None]]
Play = Callable[..., None]  # (attack, *settings, secure=True): see conftest.py


@asynccontextmanager
async def scene(folder: Path, *, secure: bool, sets: Iterable[str] = ()) -> AsyncIterator[Scene]:
    """Start the node with these settings, and a friend that has echoed once."""
    authority = None
    if secure:
        authority = Authority.create(folder, OVERLAY, now=time.time() - 5 * DAY)
        for name in ("ada", FRIEND):
            authority.issue(name, RIGHTS, 1).save(folder)

    def make(name: str, *more: str) -> Node:
        config = node_config(
            name,
            overlay=OVERLAY,
            insecure=not secure,
            keys=folder if secure else None,
            profile="local",
            bind=["127.0.0.1:0"],
            control=False,
            sets=["echo.timeout=60", *more],
        )
        return Node(config, peer(config))

    async with make("ada", *sets) as node, make(FRIEND) as friend:
        friend.learn(node.name, node.endpoints)
        stage = Scene(node, friend, authority)
        try:
            await stage.echo()
            yield stage
        finally:
            stage.close()


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """At most one line a second about each peer.

    A busy machine may write one line late and the next in time, so half a second must do.
    """
    last: dict[str, float] = {}
    for record in caplog.records:
        if record.name == "overlay.refusals" and record.levelno == logging.WARNING:
            who = record.getMessage().partition(": ")[0]
            assert record.created - last.get(who, 0.0) > 0.5, record.getMessage()
            last[who] = record.created


def frame(*messages: Any, version: int = 1, scope: str = "") -> bytes:
    """The head of a frame, by hand."""
    return msgspec.msgpack.encode([version, time.time(), [[scope, messages]], []])


ASK = EchoRequest(7, b"payload")
