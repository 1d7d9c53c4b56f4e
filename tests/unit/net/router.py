"""An Inbound whose ROUTER and monitor are lists, for exact inputs and outputs."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, NamedTuple, cast

import msgspec
import zmq

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.net.config import NetSettings
from overlay.net.inbound import Inbound
from overlay.net.monitor import Happening, Monitor
from overlay.net.session import Session
from overlay.net.trust import OpenTrust, Trust
from overlay.protocol import Message
from overlay.wire.frames import Hello, Mark, Refusal, Welcome
from overlay.wire.reader import BatchReader
from protocols.echo.messages import EchoReply, EchoRequest

ME = "node"
OVERLAY = "lab"
KINDS: tuple[type[Message], ...] = (EchoRequest, EchoReply)
Reply = Welcome | Refusal | Mark


class _Part(NamedTuple):
    """What `zmq.Frame` is for a part: what a peer said, and what ZeroMQ knows of it."""

    bytes: bytes
    more: bool
    properties: dict[Any, Any]

    def get(self, name: Any) -> Any:
        if name not in self.properties:
            raise zmq.ZMQError(22)
        return self.properties[name]

    @property
    def buffer(self) -> memoryview:
        """Without a copy."""
        return memoryview(self.bytes)


class FakeRouter:
    """Gives out what was put in, and keeps what was sent."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[bytes, list[_Part]]] = deque()
        self.sent: list[tuple[bytes, Reply]] = []
        self._parts: list[_Part] = []
        self.linger = 0
        self.FD = 0

    def get_monitor_socket(self, _: int) -> FakeRouter:
        """Its own monitor, which nobody reads: see `FakeMonitor`."""
        return self

    def put(self, routing_id: bytes, parts: list[bytes], *, user: str = "", fd: int = 9) -> None:
        """One message of a peer arrives."""
        properties: dict[Any, Any] = {zmq.SRCFD: fd}
        if user:
            properties["User-Id"] = user
        last = len(parts) - 1
        framed = [_Part(part, place < last, properties) for place, part in enumerate(parts)]
        self.waiting.append((routing_id, framed))

    def get(self, option: int) -> int:
        """Whether something waits."""
        assert option == zmq.EVENTS
        return int(zmq.POLLIN) if self.waiting else 0

    def recv(self, _: int, copy: bool = True) -> bytes | _Part:
        """The routing id, then part by part."""
        if self._parts:
            return self._parts.pop(0)
        if not self.waiting:
            raise zmq.Again
        routing_id, self._parts = self.waiting.popleft()
        return routing_id

    def send_multipart(self, parts: list[bytes], _: int, copy: bool = True) -> None:
        """A reply leaves."""
        reply: Reply = msgspec.msgpack.decode(parts[1], type=Reply)
        self.sent.append((parts[0], reply))


class FakeMonitor:
    """Tells what the test says."""

    fd = 0

    def __init__(self) -> None:
        self.events: list[Happening] = []

    def happenings(self) -> list[Happening]:
        """Everything since the last call."""
        events, self.events = self.events, []
        return events


class Desk:
    """An Inbound, and everything that it did."""

    def __init__(
        self,
        *,
        trust: Trust | None = None,
        net: NetSettings | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.router = FakeRouter()
        self.delivered: list[tuple[str, str, Any]] = []
        self.settled: list[int] = []  # how many were delivered each time
        self.refused: Counter[str] = Counter()
        self.opened: list[str] = []
        self.left: list[str] = []
        self.stirred: list[str] = []
        self.lost: list[tuple[str, str]] = []
        limits = limits or Limits()
        self.inbound = Inbound(
            cast("zmq.Socket[bytes]", self.router),
            BatchReader(KINDS, limits),
            trust or OpenTrust(ME, OVERLAY),
            net or NetSettings(),
            limits,
            me=ME,
            overlay=OVERLAY,
            life=bytes(8),
            deliver=self._deliver,
            settle=lambda now: self.settled.append(len(self.delivered)),
            refuse=self._refuse,
            opened=lambda session, hello: self.opened.append(session.name),
            linked=lambda name: None,
            stir_link=self.stirred.append,
            left=lambda session: self.left.append(session.name),
            lost=lambda session, reason: self.lost.append((session.name, reason)),
            unix_now=lambda: 1_800_000_000.0,
        )
        self.monitor = FakeMonitor()
        self.inbound.monitor = cast("Monitor", self.monitor)

    def _deliver(self, name: str, scope: str, messages: list[Any], now: float) -> None:
        self.delivered += [(name, scope, msg) for msg in messages]

    def _refuse(self, who: str, error: RemoteProtocolError, count: int) -> None:
        self.refused[error.reason] += count

    def say_hello(self, name: str, routing_id: bytes = b"a", **where: Any) -> Session | None:
        """A peer connects; returns its session if it was let in."""
        self.router.put(routing_id, [msgspec.msgpack.encode(hello(name))], **where)
        self.inbound.drain(0.0)
        return self.inbound.sessions.get(routing_id)

    def happens(self, *events: tuple[int, int]) -> None:
        """ZeroMQ reports these, then the node drains its ROUTER."""
        self.monitor.events = [Happening(*event) for event in events]
        self.inbound.read_monitor()


def hello(name: str = "bob", *, oldest: int = 1, newest: int = 1, overlay: str = OVERLAY) -> Hello:
    """What a node says first."""
    return Hello(oldest, newest, overlay, name, bytes(8))
