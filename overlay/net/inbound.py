"""The ROUTER: everything that peers send, and who they are.

A connection is a stranger until its Hello proved a name; nothing else of it is read before. A
routing id is only a claim, so every frame's CURVE key (ZeroMQ's User-Id) must be its session's.
Answers go back over the same connection, and what a peer answers over one that we opened is taken
in here as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import zmq

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.limits import Limits
from overlay.net.config import NetSettings
from overlay.net.monitor import FAILED_HANDSHAKES, Monitor
from overlay.net.session import Session
from overlay.net.tallies import Tallies
from overlay.net.trust import Trust
from overlay.protocol import Scope
from overlay.security.identity import Identity
from overlay.wire.frames import (
    FRAMEWORK_SCOPE,
    UNDECODABLE,
    Goodbye,
    Hello,
    Mark,
    Piece,
    PieceStart,
    Refusal,
    Welcome,
    empty_frame,
    negotiate,
)
from overlay.wire.pieces import Reassembly
from overlay.wire.reader import BatchReader

CONNECTIONS = 16_384  # that are remembered until they end, to tell who never said a word
SESSIONS_PER_NAME = 16  # one peer must not take the places of all others
SMALL_FRAME = 16_384  # bytes; who sends much sends it in longer ones, so only shorter ones flood
FRAME_COST = 100  # bytes of `net.tick_bytes` that any frame takes
REFUSAL_COST = 4096  # and any refusal: a tick of nothing but rubbish takes some 20 ms
HUNG_UP = "hung up before its Hello, or was cut off for a frame far over limits.frame_bytes"


NOBLOCK = int(zmq.NOBLOCK)  # arithmetic with zmq's own flags is slow
POLLIN = int(zmq.POLLIN)
EVENTS = zmq.EVENTS
LOOKS = 3  # frames of a tick before which the ROUTER is asked whether there is one
Part = bytes | memoryview


class _HelloStart(msgspec.Struct, array_like=True, tag=Hello.__struct_config__.tag):
    """What a Hello of any version begins with."""

    oldest: int
    newest: int


_HELLO = msgspec.msgpack.Decoder(Hello)
_HELLO_START = msgspec.msgpack.Decoder(_HelloStart)
_ENCODER = msgspec.msgpack.Encoder()

Deliver = Callable[[NodeId, Scope, list[Any], float], None]
Refuse = Callable[[str, RemoteProtocolError, int], None]


class Inbound:
    """Owns the ROUTER and the sessions of the peers that connected to it."""

    def __init__(
        self,
        router: zmq.Socket[bytes],
        reader: BatchReader,
        trust: Trust,
        net: NetSettings,
        limits: Limits,
        *,
        me: NodeId,
        overlay: str,
        life: bytes,
        deliver: Deliver,
        settle: Callable[[float], None],
        refuse: Refuse,
        opened: Callable[[Session, Hello], None],
        linked: Callable[[NodeId], Session | None],
        stir_link: Callable[[NodeId], None],
        left: Callable[[Session], None],
        lost: Callable[[Session, str], None],
        unix_now: Callable[[], float],
    ) -> None:
        self.sessions: dict[bytes, Session] = {}
        self._by_name: dict[NodeId, dict[bytes, Session]] = {}
        self.counts: Counter[str] = Counter()
        self.bytes_received = 0
        self.messages_received = 0
        self.monitor = Monitor(router)
        self._router = router
        self._reader = reader
        self._trust = trust
        self._certified = trust.curve is not None  # without CURVE no frame has a User-Id
        self._net = net
        self._limits = limits
        self._me = me
        self._overlay = overlay
        self._life = life
        self._deliver = deliver
        self._settle = settle  # lets applications have what was delivered
        self._refuse = refuse
        self._opened = opened
        self._linked = linked  # the connection to that peer that this node opened
        self._stir_link = stir_link  # sees whether that one is still there
        self._left = left  # nothing can be sent over it any more
        self._lost = lost
        self._unix_now = unix_now
        self._by_fd: dict[int, Session] = {}
        self._ending: list[Session] = []  # disconnected; what they sent may still wait
        self._spoke: dict[int, bool] = {}  # accepted descriptors: did they say anything?
        self._early: dict[int, None] = {}  # those that spoke before the monitor told of them
        self._gone: dict[int, str] = {}  # why these ended; what they sent may still wait
        self._refusal_bytes = 0  # what the frame at hand costs its tick besides its size
        self.tallies: Tallies | None = None  # counts what comes in, while it is traced
        self.enough = False  # an application has to read before more is taken in
        self._expecting = False  # its descriptor woke up: a frame waits, most likely
        self.is_empty = False  # nothing waits, and nothing was sent since, which swallows news

    # -- frames -------------------------------------------------------------------------------

    def drain(self, now: float) -> bool:
        """Take in what waits, up to the tick's cap or `enough`; True when more may wait."""
        left = self._net.tick_bytes
        receive, look = self._router.recv, self._router.get
        looks = LOOKS
        self.enough = self.is_empty = False
        while left > 0 and not self.enough:
            if self._expecting:
                self._expecting = False
            elif looks:  # cheaper than an exception; behind many frames that one costs less
                looks -= 1
                if not int(look(EVENTS)) & POLLIN:
                    self._end_sessions()
                    self.is_empty = True
                    return False
            try:
                routing_id = receive(NOBLOCK)
            except zmq.Again:
                self._end_sessions()
                self.is_empty = True
                return False
            head = receive(NOBLOCK, False)  # decoded where it lies, without a copy
            parts: list[Part] = [head.buffer]
            size = len(parts[0])
            more = head.more
            while more:
                frame = receive(NOBLOCK, False)
                more = frame.more
                parts.append(frame.bytes)
                size += len(frame.bytes)
            session = self.sessions.get(routing_id)
            user = _property(head, "User-Id") if self._certified else ""
            if session is None:
                self._meet(routing_id, head, user, parts, now)
            elif session.user != user:
                self._blame(session.name, RemoteProtocolError("session-hijacked", user))
            else:
                self._take(session, parts, now)
                self.bytes_received += size
                if looks == LOOKS:
                    self._settle(now)  # a single message need not wait for the rest of the tick
            left -= size + self._spent()
        return True

    def expect(self, _now: float) -> None:
        """The ROUTER's descriptor woke up."""
        self._expecting = True

    def take_answer(self, session: Session, parts: list[bytes], now: float) -> int:
        """Take in what came over a link of ours; returns what it costs of `net.tick_bytes`."""
        self._take(session, list(parts), now)
        size = sum(map(len, parts))
        self.bytes_received += size
        return size + self._spent()

    def _spent(self) -> int:
        """What the frame at hand costs its tick besides its size."""
        spent, self._refusal_bytes = FRAME_COST + self._refusal_bytes, 0
        return spent

    def end_intake(self) -> None:
        """Take in no more in this tick: an application has much to read already."""
        self.enough = True

    @property
    def counters(self) -> Counter[str]:
        """What came in."""
        found = self.counts.copy()
        found["bytes received"] = self.bytes_received
        found["messages received"] = self.messages_received
        return found

    def _blame(self, who: str, error: RemoteProtocolError) -> None:
        """Refuse something, at the expense of this tick: rubbish is small and costs much."""
        self._refusal_bytes += REFUSAL_COST
        self._refuse(who, error, 1)

    def _take(self, session: Session, parts: list[Part], now: float) -> None:
        session.heard_at = now
        session.frames += 1
        if len(parts) == 1 and len(parts[0]) < SMALL_FRAME:
            session.small_this_second += 1
            if session.small_this_second > self._net.peer_rate and not self._paced(session, now):
                return
        try:
            frame = self._reader.read(parts)
        except RemoteProtocolError as error:
            self._blame(session.name, error)
            return
        for fault in frame.refused:
            self._blame(session.name, fault)
        if self.tallies is not None:
            self.tallies.received(session.name, frame.sections, sum(map(len, parts)))
        for scope, messages in frame.sections:
            if scope == FRAMEWORK_SCOPE:
                self._take_own(session, messages, now)
            else:
                self.messages_received += len(messages)
                self._deliver(session.name, scope, messages, now)

    def _paced(self, session: Session, now: float) -> bool:
        """Let a peer go on in the next second; until then what it sends is a flood."""
        if now - session.second_began >= 1.0:
            session.second_began = now
            session.small_this_second = 1
            return True
        if not self._net.peer_rate:
            return True
        self._blame(session.name, RemoteProtocolError("flood", "see net.peer_rate"))
        return False

    def _take_own(self, session: Session, messages: list[Any], now: float) -> None:
        mark: Mark | None = None
        for msg in messages:
            try:
                if type(msg) is PieceStart:
                    if session.reassembly is None:
                        session.reassembly = Reassembly(self._reader, self._limits)
                    session.reassembly.begin(msg)
                elif type(msg) is Piece:
                    if session.reassembly is None:
                        raise RemoteProtocolError("stray-piece", f"{len(msg.payload)} bytes")
                    whole = session.reassembly.add(msg)
                    if whole is not None:
                        self.messages_received += 1
                        if self.tallies is not None:
                            run = [(whole[0], [whole[1]])]
                            self.tallies.received(session.name, run, len(whole[1].payload))
                        self._deliver(session.name, whole[0], [whole[1]], now)
                elif type(msg) is Mark:
                    mark = msg
                elif type(msg) is Goodbye:
                    session.leaving = True
                    self._left(session)
                    if not (msg.idle or session.departed):
                        session.departed = True
                        self._lost(session, "goodbye")
                else:
                    raise RemoteProtocolError("unexpected-message", type(msg).__name__)
            except RemoteProtocolError as error:
                self._blame(session.name, error)
        if mark is not None:  # the last tells all, and a frame full of them gets one answer
            self._reply(session.routing_id, mark)

    # -- strangers ----------------------------------------------------------------------------

    def _meet(
        self, routing_id: bytes, head: zmq.Frame, user: str, parts: list[Part], now: float
    ) -> None:
        fd = head.get(zmq.SRCFD)
        assert isinstance(fd, int)
        if fd in self._spoke:
            self._spoke[fd] = True
        elif fd not in self._gone:
            self._early[fd] = None
        try:
            if len(self.sessions) >= self._net.peers:  # first: all else costs more
                raise RemoteProtocolError("too-many-peers", f"net.peers is {self._net.peers}")
            hello, version = _read_hello(parts[0])
            identity = self._prove(hello, user)
            session = self._admit(Session(routing_id, user, fd, identity, hello, version, now))
        except RemoteProtocolError as error:
            self._gone.pop(fd, None)
            self._blame(user[:16] or _property(head, "Peer-Address"), error)
            self._reply(routing_id, Refusal(error.reason[:256], error.detail[:256]))
            return
        self.sessions[routing_id] = session
        self._by_name.setdefault(session.name, {})[routing_id] = session
        self._by_fd[fd] = session
        if fd in self._gone:  # all that it says was sent before it disconnected
            del self._gone[fd]
            self._ending.append(session)
        self._reply(routing_id, Welcome(version, self._me, self._life, self._trust.certificate))
        session.host = _property(head, "Peer-Address")
        self._opened(session, hello)

    def _prove(self, hello: Hello, user: str) -> Identity:
        """Who said Hello; RemoteProtocolError when it is not who it claims to be."""
        if hello.overlay != self._overlay:
            raise RemoteProtocolError(
                "wrong-overlay", f"this is {self._overlay!a}, not {hello.overlay!a}"
            )
        key = bytes.fromhex(user) if user else None
        identity = self._trust.identify(hello.certificate, hello.name, key, self._unix_now())
        if identity.name == self._me:
            raise RemoteProtocolError("name-taken", f"{self._me!a} is this node")
        return identity

    def _admit(self, session: Session) -> Session:
        """Let it in if its name has a place left."""
        others = self._by_name.get(session.name, {})
        if len(others) >= SESSIONS_PER_NAME:
            detail = f"{session.name!a} is connected {SESSIONS_PER_NAME} times"
            raise RemoteProtocolError("too-many-sessions", detail)
        known = self._linked(session.name)
        lives = [*others.values(), known] if known is not None else others.values()
        if any(other.life != session.life and not other.leaving for other in lives):
            # Or it died with its machine, which will not acknowledge this: it may try again.
            for other in others.values():
                self._stir(other)
            self._stir_link(session.name)
            detail = f"another node called {session.name!a} is connected"
            raise RemoteProtocolError("name-in-use", detail)
        return session

    def _stir(self, session: Session) -> None:
        """Send nothing, which a machine that is there acknowledges all the same."""
        with suppress(zmq.ZMQError):  # it has no room: then something is under way already
            self.send(session, [empty_frame(session.version)])

    def session_of(self, peer: NodeId) -> Session | None:
        """A connection that the peer opened and goes on with: the newest."""
        for session in reversed(self._by_name.get(peer, {}).values()):
            if not session.leaving:
                return session
        return None

    def send(self, session: Session, parts: list[Part]) -> None:
        """Send a frame over a peer's own connection; zmq.Again when it must wait."""
        self.is_empty = False
        self._router.send_multipart([session.routing_id, *parts], NOBLOCK, copy=len(parts) == 1)

    def recheck(self) -> None:
        """Forget sessions whose certificate was revoked or expired since their Hello."""
        for session in list(self.sessions.values()):
            key = bytes.fromhex(session.user) if session.user else None
            try:
                self._trust.identify(session.certificate, session.name, key, self._unix_now())
            except RemoteProtocolError as error:
                self._refuse(session.name, error, 1)
                self._forget(session)
                self._reply(session.routing_id, Refusal(error.reason[:256], error.detail[:256]))
                self._lost(session, error.reason)

    def _reply(self, routing_id: bytes, msg: Welcome | Refusal | Mark) -> None:
        self.is_empty = False
        try:
            self._router.send_multipart([routing_id, _ENCODER.encode(msg)], zmq.NOBLOCK)
        except zmq.ZMQError:
            self.counts["replies lost"] += 1  # it went away, or does not read

    # -- connections --------------------------------------------------------------------------

    def read_monitor(self) -> None:
        """Notice who disconnected, and who never got as far as a Hello.

        ZeroMQ names a connection only when it is accepted and when it ends: a handshake that
        succeeds has no descriptor, and one that fails because the other side hung up first is
        not reported at all.
        """
        ended: dict[int, bool] = {}  # descriptor -> was it used again since?
        detail = HUNG_UP
        for event, fd in self.monitor.happenings():
            if event == zmq.EVENT_ACCEPTED:
                if fd in self._gone:
                    self._refuse_handshake(self._gone.pop(fd))
                if len(self._spoke) < CONNECTIONS:
                    self._spoke[fd] = fd in self._early
                self._early.pop(fd, None)
                if fd in ended:
                    ended[fd] = True
            elif event in FAILED_HANDSHAKES:
                detail = FAILED_HANDSHAKES[event]  # its value is no descriptor: see the next event
            elif event == zmq.EVENT_DISCONNECTED:
                session = self._by_fd.get(fd)
                of_another = fd in ended or session is None or not session.confirmed
                if not self._spoke.pop(fd, True) and of_another:
                    self._gone[fd] = detail
                else:
                    ended[fd] = False
                detail = HUNG_UP
        self._early.clear()
        for fd, used_again in ended.items():
            session = self._by_fd.get(fd)
            # A descriptor is used again at once: a session that came after the last reading
            # belongs to the new connection, not to the one that ended.
            if session is not None and (session.confirmed or not used_again):
                self._ending.append(session)
        for session in self._by_fd.values():
            session.confirmed = True

    def _end_sessions(self) -> None:
        """Forget who disconnected, now that the last they sent is read."""
        ending, self._ending = self._ending, []
        for session in ending:
            if not self._forget(session):
                continue
            if not session.leaving:
                self.counts["sessions lost"] += 1
                self._lost(session, "disconnected")
        for detail in self._gone.values():
            self._refuse_handshake(detail)
        self._gone.clear()

    def _refuse_handshake(self, detail: str) -> None:
        self._refuse("", RemoteProtocolError("handshake-failed", detail), 1)

    def _forget(self, session: Session) -> bool:
        """False when it was forgotten before."""
        if self.sessions.get(session.routing_id) is not session:
            return False
        del self.sessions[session.routing_id]
        if self._by_fd.get(session.fd) is session:
            del self._by_fd[session.fd]
        others = self._by_name[session.name]
        del others[session.routing_id]
        if not others:
            del self._by_name[session.name]
        self._left(session)
        return True

    def close(self) -> None:
        """Stop listening to the monitor; the driver closes the ROUTER."""
        self.monitor.close()


def _read_hello(encoded: Part) -> tuple[Hello, int]:
    """Return it with the version to speak; its versions count first, whatever else it holds."""
    try:
        start = _HELLO_START.decode(encoded)
        version = negotiate(start.oldest, start.newest)
        return _HELLO.decode(encoded), version
    except UNDECODABLE as error:
        raise RemoteProtocolError("no-hello", str(error)) from None


def _property(frame: zmq.Frame, name: str) -> str:
    try:
        return str(frame.get(name))
    except zmq.ZMQError:
        return ""  # an ipc peer has no address; without CURVE nobody was asked who it is
