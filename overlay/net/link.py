"""The link to one peer: two lanes, and a DEALER that is opened, watched and opened again.

    waiting ──due──▶ introducing ──key known──▶ connecting ──Welcome──▶ open ──idle──▶ parting
       ▲                  │ no answer               │ failed              │ broke
       └──────────────────┴─────────────────────────┴─────────────────────┘

A connection carries both directions. Where the peer has opened one already, the link borrows it
and goes from waiting to open at once: a handshake costs more than thousands of messages. Who
opened a connection closes it when it is idle; it says Goodbye and goes on listening for a moment
(parting), since the peer may have sent something before it heard that.

ZeroMQ's own reconnecting is off: it would go on for ever, tell nobody, and keep a key that the
peer may have changed. Messages wait in their lane (`lanes.py`) until the peer is there or
`net.give_up`.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

import msgspec
import zmq

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import HEAD_ROOM
from overlay.net.addresses import Endpoint
from overlay.net.lanes import NOBLOCK, POLLOUT, Lanes
from overlay.net.monitor import FAILED_HANDSHAKES, Monitor
from overlay.net.session import Session
from overlay.protocol import Message
from overlay.wire.frames import (
    FRAME_START,
    FRAMEWORK_SCOPE,
    UNDECODABLE,
    Mark,
    Refusal,
    Welcome,
)
from overlay.wire.writer import BatchWriter

if TYPE_CHECKING:
    from overlay.net.links import Links

POLLIN = int(zmq.POLLIN)  # arithmetic with zmq's own flags is slow
DOUBLINGS = 32  # of a pause at most: after a thousand the number would be no float any more
EARLY = 64  # frames that are read, at most, before they can be handled
LONGEST_TTL = 6_553_500  # ms: what a ZeroMQ ping can say
COPIED_BELOW = 256 << 10  # bytes of a part: who sends it as it is wakes a thread of pyzmq's later
FIRST_TURN = 0.2  # of net.connect_within: for each of several addresses, then twice as much

_FRAME_START = bytes((FRAME_START,))
NO_CONNECTION = "no connection"  # nobody listens there, as after a process ended
_REPLY = msgspec.msgpack.Decoder(Welcome | Refusal | Mark)
_ENCODER = msgspec.msgpack.Encoder()


class State(Enum):
    """Where a link is in its life."""

    WAITING = "waiting"  # for its next attempt
    INTRODUCING = "introducing"  # for the peer's certificate, which brings its CURVE key
    CONNECTING = "connecting"  # Hello is sent
    OPEN = "open"
    PARTING = "parting"  # said Goodbye, and still listens


class Link(Lanes):
    """The way to one peer; `name` is None while only its address is known."""

    __slots__ = (
        "_early",
        "_monitor",
        "_reached",
        "_rng",
        "attempts",
        "candidates",
        "deadline",
        "dirty",
        "endpoint",
        "failures",
        "lost",
        "name",
        "reason",
        "state",
        "used_at",
        "waiting_since",
        "welcomed",
    )

    def __init__(
        self,
        links: Links,
        writer: BatchWriter,
        name: NodeId | None,
        candidates: tuple[Endpoint, ...],
        rng: Random,
        now: float,
    ) -> None:
        super().__init__(links, writer, now)
        self.name = name
        self.candidates = candidates
        self.endpoint: Endpoint | None = None  # the one in use
        self.state = State.WAITING
        self.deadline = now  # when this state ends by itself
        self.failures = 0  # in a row
        self.attempts = 0  # of them since it was open, or since a better address is known
        self.lost = False  # and told so
        self.reason = ""  # of the last failure
        self.dirty = False  # listed for the next flush
        self.welcomed = 0  # how often it was open
        self.used_at = now
        self.waiting_since: float | None = None  # since when messages wait in vain
        self._rng = rng
        self._early: deque[list[bytes]] = deque()  # frames that were read while sending
        self._monitor: Monitor | None = None
        self._reached = False  # the peer's machine took the connection

    @property
    def backlog(self) -> int:
        """Bytes that wait in its lanes."""
        return self.writer.queued + (0 if self.bulk is None else self.bulk.queued)

    # -- sending ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand everything that waits to ZeroMQ, as far as it takes it."""
        if self.state is State.OPEN:
            self._pack()
        self.push()

    def push(self) -> None:
        """Hand the closed batches to ZeroMQ; the open one may still grow."""
        if self.state is not State.OPEN:
            if self.waiting_since is None:
                self.waiting_since = self._links.now()
                self._links.due(self.deadline)
            return
        if self.borrowed and self.bulk:
            self.give_back(self._links.now())  # bulk needs a connection of its own
            return
        self._push_lanes()
        # Sending may have swallowed the wake-up of a mark that came back, or of room in ZeroMQ.
        while self.bulk is not None and self._window.awaited and self._found_more():
            self._push_lanes()
        if self.blocked and self.borrowed:
            self._links.stuck[self] = None
        else:
            self._links.stuck.pop(self, None)
        dealer = self._dealer
        if dealer is not None and int(dealer.get(zmq.EVENTS)) & POLLIN:
            self._links.unread[self] = None  # or of what else came in

    def remind(self, now: float) -> None:
        """Ask again how far the peer has read, if that is overdue."""
        if self.state is State.OPEN and not self.blocked and not self.borrowed:
            self._repeat_mark(now)

    def _found_more(self) -> bool:
        """Read one answer, if one waits; True when the lanes may have more to send now."""
        dealer = self._dealer
        assert dealer is not None
        events = int(dealer.get(zmq.EVENTS))
        if events & POLLIN and len(self._early) < EARLY:
            parts = dealer.recv_multipart(NOBLOCK)
            if parts[0][:1] == _FRAME_START:  # a protocol may be at work: for later
                self._early.append(parts)
                self._links.unread[self] = None
            else:
                self._on_reply(parts, self._links.now())
            return self.state is State.OPEN
        return self.blocked and bool(events & POLLOUT)

    # -- life ---------------------------------------------------------------------------------

    def connect(self, endpoint: Endpoint, curve_key: bytes | None, now: float) -> None:
        """Open a DEALER and say Hello."""
        links = self._links
        self.endpoint = endpoint
        dealer = links.context.socket(zmq.DEALER)
        dealer.linger = 0
        dealer.copy_threshold = COPIED_BELOW
        dealer.set(zmq.RECONNECT_IVL, -1)
        dealer.set(zmq.SNDHWM, links.net.link_frames)
        dealer.set(zmq.RCVHWM, links.net.link_frames)
        dealer.set(zmq.MAXMSGSIZE, links.limits.frame_bytes + HEAD_ROOM)
        dealer.set(zmq.HEARTBEAT_IVL, int(links.net.heartbeat * 1000))
        dealer.set(zmq.HEARTBEAT_TIMEOUT, int(links.net.heartbeat * 3000))
        dealer.set(zmq.HEARTBEAT_TTL, min(int(links.net.heartbeat * 3000), LONGEST_TTL))
        dealer.set(zmq.TCP_MAXRT, int(links.net.unacked_within * 1000))
        dealer.set(zmq.HANDSHAKE_IVL, int(links.net.connect_within * 1000))
        if ":" in endpoint.host and endpoint.transport == "tcp":
            dealer.set(zmq.IPV6, 1)
        if links.trust.curve is not None:
            assert curve_key is not None
            dealer.curve_publickey, dealer.curve_secretkey = links.trust.curve
            dealer.curve_serverkey = curve_key
        self._dealer = dealer
        self._window.reset()
        self._reached = False
        self._monitor = Monitor(dealer)
        links.descriptors.watch(int(dealer.FD), self.read)
        links.descriptors.watch(self._monitor.fd, self.look)
        self.state = State.CONNECTING
        self._end_by(now)
        try:
            dealer.connect(str(endpoint))
        except zmq.ZMQError as error:
            self.fail(f"{endpoint}: {error.strerror}", now)
            return
        try:
            dealer.send(_ENCODER.encode(links.hello()), NOBLOCK)
        except zmq.Again:  # it broke before we spoke: a fast refusal, and a process that starved
            self._read_monitor(now)
            if self._dealer is dealer:
                self.fail(NO_CONNECTION, now)
            return
        self._read_monitor(now)  # what came while we sent wakes nobody up
        if self._dealer is dealer and int(dealer.get(zmq.EVENTS)) & POLLIN:
            links.unread[self] = None  # a protocol may be at work: read it later
            links.due(now)

    def look(self, now: float) -> None:
        """See what became of it: read the monitor, what came, and go on sending."""
        self._read_monitor(now)
        self.read(now)

    def read(self, now: float) -> None:
        """Something came: read it, and go on sending. The monitor has a descriptor of its own."""
        dealer = self._dealer
        if dealer is None:
            return
        was_open = self._window.open
        left = self._links.net.tick_bytes
        while self._early and self._dealer is dealer:
            left -= self._take(self._early.popleft(), now)
        if self._dealer is not dealer:
            return
        events = int(dealer.get(zmq.EVENTS))
        while events & POLLIN and self._dealer is dealer:
            if left <= 0:
                self._links.unread[self] = None
                break
            left -= self._take(dealer.recv_multipart(NOBLOCK), now)
            events = int(dealer.get(zmq.EVENTS)) if self._dealer is dealer else 0
        if self._dealer is not dealer:
            return
        if self.blocked and events & POLLOUT:
            self.flush()
        elif self._window.open and not was_open:
            self.push()  # a mark came back

    def _take(self, parts: list[bytes], now: float) -> int:
        """Take in one frame; returns what it costs of `net.tick_bytes`."""
        if self.session is None or parts[0][:1] != _FRAME_START:
            self._on_reply(parts, now)
            return len(parts[0])
        self.used_at = now
        return self._links.take(self.session, parts, now)

    def _read_monitor(self, now: float) -> None:
        if self._monitor is None:
            return
        for event, _ in self._monitor.happenings():
            if event in FAILED_HANDSHAKES:
                self.fail(f"handshake failed: {FAILED_HANDSHAKES[event]}", now)
                return
            if event in (zmq.EVENT_DISCONNECTED, zmq.EVENT_CLOSED):
                self._take_last_words(now)
                if self._dealer is not None:
                    self.fail(self._why_closed(), now)
                return
            self._reached = self._reached or event == zmq.EVENT_CONNECTED

    def _why_closed(self) -> str:
        if self.state is State.OPEN:
            return "disconnected"
        return "closed in the handshake" if self._reached else NO_CONNECTION

    def _take_last_words(self, now: float) -> None:
        """The monitor may tell of the end before what the peer sent last is read."""
        dealer = self._dealer
        while self._early and self._dealer is dealer:
            self._take(self._early.popleft(), now)
        while dealer is not None and self._dealer is dealer:
            try:
                parts = dealer.recv_multipart(NOBLOCK)
            except zmq.ZMQError:
                return
            self._take(parts, now)

    def _on_reply(self, parts: list[bytes], now: float) -> None:
        try:
            reply = _REPLY.decode(parts[0])
        except UNDECODABLE as error:
            self._links.refuse(self.who, RemoteProtocolError("malformed-reply", str(error)), 1)
            return
        if isinstance(reply, Refusal):
            self.reason = f"{reply.reason}: {reply.detail}"
            self._links.refused_by(self, reply, now)
            self.fail(self.reason, now)
        elif isinstance(reply, Mark):
            try:
                self._window.taken(reply.upto)
            except RemoteProtocolError as error:
                self._links.refuse(self.who, error, 1)
        elif self.state is State.CONNECTING:
            self._links.welcomed(self, reply, now)

    def opened(self, session: Session, now: float) -> None:
        """The handshake is complete, or the peer's own connection is borrowed: send what waited."""
        self.state = State.OPEN
        self.session = session
        self._speak(session.version)
        self.failures = 0
        self.attempts = 0
        self.lost = False
        self.reason = ""
        self.welcomed += 1
        self.used_at = now
        self.waiting_since = None
        self.flush()

    def give_back(self, now: float) -> None:
        """The borrowed connection ends: open one when there is something to send."""
        self._drop_socket()
        self.state = State.WAITING
        self.deadline = now
        if self.waiting:
            self.waiting_since = now
            self._links.due(now)

    def fail(self, reason: str, now: float) -> None:
        """The attempt or the link broke: wait, twice as long each time, then try again."""
        if self.state is State.PARTING:
            self._drop_socket()
            return
        was_open = self.state is State.OPEN
        self._drop_socket()
        net = self._links.net
        pause = min(net.retry_longest, net.retry_first * 2.0 ** min(self.failures, DOUBLINGS))
        self.failures += 1
        self.attempts += not was_open  # where it broke is where to look for it first
        self.reason = reason
        self.state = State.WAITING
        # Half of the pause is random: peers that lost the same node do not return in step.
        self.deadline = now + pause * (0.5 + 0.5 * self._rng.random())
        if self.waiting and self.waiting_since is None:
            self.waiting_since = now
        self._links.failed(self, reason, was_open, now)

    def introduce(self, now: float) -> None:
        """Wait for the peer's certificate."""
        self.state = State.INTRODUCING
        self._end_by(now)

    def _end_by(self, now: float) -> None:
        self.deadline = now + self._patience()
        self._links.due(self.deadline)

    def redirect(self, now: float) -> bool:
        """Begin again with the first address; False when the link is open, or not needed."""
        if self.state is State.OPEN:
            return False
        needed = self.state is not State.WAITING or self.waiting
        self._drop_socket()
        self.state = State.WAITING
        self.attempts = 0
        self.deadline = now
        return needed

    @property
    def borrowed(self) -> bool:
        """Whether the peer opened the connection that is used."""
        return self.session is not None and self._dealer is None

    def next_candidate(self) -> Endpoint | None:
        """The address for the next attempt: each in turn."""
        if not self.candidates:
            return None
        return self.candidates[self.attempts % len(self.candidates)]

    def _patience(self) -> float:
        """Seconds for one attempt: a peer with several addresses gets short ones at first.

        It is reached by one of them, perhaps, and must not be held dead until we come to it.
        """
        longest = self._links.net.connect_within
        if len(self.candidates) < 2:
            return longest
        turns = self.attempts // len(self.candidates)
        return longest * min(1.0, FIRST_TURN * 2.0 ** min(turns, DOUBLINGS))

    @property
    def who(self) -> str:
        """For people."""
        return self.name or str(self.endpoint or (self.candidates and self.candidates[0]))

    def close(self, goodbye: Message | None, linger: float) -> None:
        """Close for good, after what waits (bulk within its window) and a goodbye."""
        if self.state is State.OPEN:
            self.flush()  # may find the link broken
        if self.state is State.OPEN and goodbye is not None:
            if self.bulk is not None:  # what may not go before Goodbye does not go at all
                self._links.counts["frames undelivered"] += self.bulk.discard()
            self.writer.put(FRAMEWORK_SCOPE, goodbye)
            self.flush()
        if self._dealer is not None:
            self._dealer.linger = int(linger * 1000)
        self._drop_socket()
        self.state = State.WAITING

    def part(self, goodbye: Message) -> None:
        """Say goodbye, and listen until it is closed."""
        self.writer.put(FRAMEWORK_SCOPE, goodbye)
        self.flush()
        self.state = State.PARTING

    def _drop_socket(self) -> None:
        self.session = None
        self._early.clear()
        self._links.unread.pop(self, None)
        self._links.stuck.pop(self, None)
        self.blocked = False
        if self.bulk is not None:
            self.bulk.begin_again()
        if self._dealer is None:
            return
        assert self._monitor is not None
        self._links.descriptors.unwatch((int(self._dealer.FD), self._monitor.fd))
        self._monitor.close()
        self._dealer.close()
        self._dealer = None
        self._monitor = None
