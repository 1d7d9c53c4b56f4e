"""The driver of one node: descriptors, ticks, and everything that a host wants done.

One task waits on the epoll set that holds all descriptors, another on the next timer; both call
`_tick`, which never awaits. ZMQ_FD tells only of changes, so whoever sent or received on a socket
looks at its EVENTS again before anybody waits.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

import trio
import zmq

from overlay.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from overlay.host import Host, Instance
from overlay.ids import NodeId, check_name
from overlay.limits import Limits
from overlay.net.addresses import Endpoint, advertised, parse_endpoint
from overlay.net.alarm import Alarm
from overlay.net.config import NetSettings
from overlay.net.context import SharedContext
from overlay.net.descriptors import Descriptors, allow_many
from overlay.net.effects import NetEffects
from overlay.net.envelopes import Envelopes
from overlay.net.inbound import Inbound
from overlay.net.introduction import ASK_AGAIN, Introductions, remove_certificates
from overlay.net.link import Link, State
from overlay.net.links import Links
from overlay.net.listening import listen, open_router
from overlay.net.memory import keep_freed
from overlay.net.outbox import Outbox
from overlay.net.refusals import Refusals
from overlay.net.session import Session
from overlay.net.status import DriverStatus, link_status, session_status
from overlay.net.store import Store
from overlay.net.tallies import Tallies
from overlay.net.timers import Timers
from overlay.net.trust import CertifiedTrust, OpenTrust, Trust
from overlay.net.udp import Datagrams
from overlay.protocol import (
    ContactLearned,
    Group,
    LinkLost,
    Message,
    NetworkChanged,
    OverlayProtocol,
    Scope,
    UdpAddress,
)
from overlay.tracing import Level, TraceSink
from overlay.wire.frames import FRAMEWORK_MESSAGES, OLDEST_VERSION, VERSION, Hello
from overlay.wire.reader import BatchReader
from overlay.wire.sizes import Sizes

if TYPE_CHECKING:
    from overlay.security.credentials import Credentials

log = logging.getLogger("overlay.net")

T = TypeVar("T")

SWEEP_EVERY = 1.0  # s from one look at all links to the next, at most
SWEEP_GAP = 0.005  # s, at least
LAST_WORDS = 0.2  # s that Goodbye has to leave, however long the rest took
REFRESH_TRUST = 5.0  # s between looks for a newer revocation list
POLLIN = int(zmq.POLLIN)  # arithmetic with zmq's own flags is slow


class Driver:
    """Runs one host on real sockets. Add protocols to `host`, then `run` it."""

    def __init__(
        self,
        name: NodeId,
        *,
        overlay: str,
        credentials: Credentials | None,
        net: NetSettings | None = None,
        limits: Limits | None = None,
        state: Path | None = None,
        seed: str | None = None,
    ) -> None:
        self.name = check_name(name)
        self.overlay = overlay
        self.insecure = credentials is None
        self.net = net or NetSettings()
        self.limits = limits or Limits()
        self.refusals = Refusals()
        self.timers = Timers()
        self.endpoints: list[str] = []
        self._trust: Trust = (
            OpenTrust(name, overlay) if credentials is None else CertifiedTrust(credentials)
        )
        self._life = os.urandom(8)
        self._wall = time.time() - time.monotonic() + self.net.clock_offset  # fixed: no jumps
        self.started_at = self.now()
        self.sizes = Sizes(FRAMEWORK_MESSAGES, self.limits)
        self._reader = BatchReader((), self.limits)
        self._rng = Random(seed) if seed is not None else Random()
        self._descriptors = Descriptors()
        self._shared = SharedContext.acquire()
        self._domain = b"overlay-" + os.urandom(8).hex().encode()
        self._in_tick = False
        self._last_flush = 0.0
        self._sweep_at = 0.0
        self._refresh_at = self.started_at + REFRESH_TRUST  # what was loaded just now is new
        self._alarm = Alarm(self.now)
        self._stop = trio.Event()
        self._stop_by = 0.0  # when what waits must have left
        self._flushed = trio.Event()  # replaced whenever the links were looked at
        self._ran = False
        self.store = Store(state, self._stored)
        self.links = Links(
            self._shared.context,
            self._trust,
            self.net,
            self.limits,
            self.sizes,
            self._rng,
            self._descriptors,
            me=self.name,
            hello=self._hello,
            now=self.now,
            unix_now=time.time,
            announce=lambda event, now: self.host.announce(event, now),
            refuse=self._refuse,
            ask_who=self._ask_who,
            due=self._sweep_by,
        )
        self.outbox = Outbox(self.name, self.links, self.sizes)
        self.host = Host(
            self.name,
            lambda host, instance: NetEffects(self, host, instance),
            seed if seed is not None else os.urandom(16).hex(),
            on_refusal=self._count_refusal,
            on_removed=self.timers.forget,
        )
        self.host.listen(ContactLearned, lambda told: self._believe(told.peer, told.endpoints))
        self._envelopes = Envelopes(
            self.name,
            self._trust,
            self._reader,
            self.limits,
            self.host.receive_datagram,
            self._refuse,
            self.links.learn_identity,
            self.now,
        )
        self.datagrams = Datagrams(
            lambda fd, ready: self._descriptors.watch(fd, lambda _: ready()),
            lambda fd: self._descriptors.unwatch((fd,)),
            self._envelopes.received,
            self.net.multicast_hops,
            self.now,
        )
        self._introductions = self._envelopes.introductions = Introductions(
            self.name,
            self._trust,
            self.datagrams,
            self._reader,
            self.limits,
            lambda link, peer, key: self.links.introduced(link, peer, key, self.now()),
            time.time,
        )
        self._inbound: Inbound

    def now(self) -> float:
        """The node's clock: Unix seconds at its start, and never a jump since."""
        return self._wall + time.monotonic()

    # -- life ---------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Bind, start the protocols, and serve until `stop`; once per driver."""
        if self._ran:
            raise LocalProtocolError("a driver runs once: make a new one to start again")
        self._ran = True
        try:
            allow_many()
            keep_freed(self.net.keep_freed)
            self._learn_messages()
            self._bind()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.store.run)
                nursery.start_soon(self._wait_for_descriptors)
                nursery.start_soon(self._wait_for_timers)
                self._in_tick = True
                try:
                    self.host.start(self.now(), self.store.kept)
                finally:
                    self._in_tick = False
                self._tick()
                task_status.started()
                await self._stop.wait()
                await self._say_goodbye()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._close()

    def stop(self) -> None:
        """Begin an orderly stop; harmless when it has begun."""
        if not self._stop.is_set():
            self._stop_by = self.now() + self.net.stop_within
            self._stop.set()

    async def _say_goodbye(self) -> None:
        """Let protocols leave, and what they sent and stored go out, for a bounded time."""
        self._in_tick = True
        try:
            self.host.stop(self.now())
        finally:
            self._in_tick = False
        self._tick()
        with trio.move_on_after(max(0.0, self._stop_by - self.now())):
            await self.store.settled()
            while not self.links.idle:
                await self._flushed.wait()
            if any(link.borrowed for link in self.links):
                await trio.sleep(0.05)  # closing with something unread resets a connection

    async def _close(self) -> None:
        self.links.close(max(LAST_WORDS, self._stop_by - self.now()))
        self._shared.desk.unregister(self._domain)
        if hasattr(self, "_router"):
            if hasattr(self, "_inbound"):
                self._inbound.close()
            self._router.close(linger=int(1000 * max(LAST_WORDS, self._stop_by - self.now())))
        self.datagrams.close()
        self._descriptors.close()
        self.store.close()
        if not self.insecure:
            remove_certificates(map(parse_endpoint, self.endpoints))
        if self._shared.release():
            await trio.to_thread.run_sync(self._shared.end)

    def _bind(self) -> None:
        router = self._router = open_router(
            self._shared, self.net, self.limits, self._trust, self._domain
        )
        if not self.insecure:
            self._descriptors.watch(self._shared.desk.fd, lambda _: self._shared.desk.answer())
        self._inbound = Inbound(
            router,
            self._reader,
            self._trust,
            self.net,
            self.limits,
            me=self.name,
            overlay=self.overlay,
            life=self._life,
            deliver=self.host.receive,
            settle=self.host.settle,
            refuse=self._refuse,
            opened=self._on_session,
            linked=self.links.linked,
            stir_link=self.links.stir,
            left=self.links.session_left,
            lost=self._on_session_lost,
            unix_now=time.time,
        )
        self._inbound.tallies = self._envelopes.tallies
        self.links.inbound = self._inbound
        self.yield_soon = self._inbound.end_intake
        self._bound = [
            listen(router, self.datagrams, parse_endpoint(text), self._trust.certificate)
            for text in self.net.bind
        ]
        self._tell_where()
        self._descriptors.watch(int(router.FD), self._inbound.expect)  # every tick drains it anyway
        self._descriptors.watch(self._inbound.monitor.fd, lambda _: self._inbound.read_monitor())
        self._inbound.read_monitor()
        self._shared.desk.answer()
        self.datagrams.join(*self.host.groups)

    def _tell_where(self) -> None:
        self.endpoints = [str(one) for one in advertised(self._bound, self.net.advertise)]

    def _learn_messages(self) -> None:
        kinds = self.host.message_types
        self.sizes.learn(kinds)
        self._reader.learn(kinds)

    def start_instance(self, protocol: OverlayProtocol) -> None:
        """Start a protocol that was added to the host while the node runs."""
        self._learn_messages()
        self.datagrams.join(*protocol.groups())
        self.call(self.host.launch, protocol)

    def remove_instance(self, protocol: OverlayProtocol) -> None:
        """Stop one protocol and forget its timers, and the groups that only it wanted."""
        self.call(self.host.remove, protocol)
        self.datagrams.leave(*(one for one in protocol.groups() if one not in self.host.groups))

    # -- waiting ------------------------------------------------------------------------------

    async def _wait_for_descriptors(self) -> None:
        ready = self._descriptors.fd
        while True:
            await trio.lowlevel.wait_readable(ready)
            while self._tick():
                await trio.lowlevel.checkpoint()  # let applications run between full ticks

    async def _wait_for_timers(self) -> None:
        while True:
            await self._alarm.sleep_until(self._due_at())
            while self._tick():  # what a tick leaves wakes nobody up: ZMQ_FD tells only of changes
                await trio.lowlevel.checkpoint()

    def _due_at(self) -> float:
        at = self.timers.next_at()
        return self._sweep_at if at is None else min(at, self._sweep_at)

    def _sweep_by(self, at: float) -> None:
        """Look at the links at that time, or earlier."""
        self._sweep_at = min(self._sweep_at, at)
        self._alarm.ring_by(at)

    # -- the tick -----------------------------------------------------------------------------

    def _tick(self) -> bool:
        """Take in, run timers, flush; True when more waits than one tick takes."""
        if self._in_tick:
            return False
        self._in_tick = True
        try:
            now = self.now()
            self._descriptors.poll(now)
            more = self._inbound.drain(now) | self.links.go_on(now)
            self._run_timers(now)
            if now >= self._sweep_at:
                self._sweep(now)
            self._flush(now)
            return more or self._has_more()
        finally:
            self._in_tick = False

    def _has_more(self) -> bool:
        """Whether something waits that wakes nobody up: sending swallows what ZMQ_FD tells."""
        if self.outbox.loopback or self.links.unread:
            return True
        return not self._inbound.is_empty and bool(int(self._router.get(zmq.EVENTS)) & POLLIN)

    def _run_timers(self, now: float) -> None:
        while True:
            due = self.timers.pop_due(now)
            if due is None:
                return
            self.host.fire(due[0], due[1], now)

    def _sweep(self, now: float) -> None:
        self._inbound.read_monitor()
        if self.datagrams.look_around():
            self._tell_where()
            self.host.announce(NetworkChanged(), now)
        self._sweep_at = now + SWEEP_EVERY
        self._sweep_by(self.links.sweep(now))
        self._sweep_by(self._introductions.sweep(now))
        self._sweep_at = max(self._sweep_at, now + SWEEP_GAP)
        if now >= self._refresh_at and not self.insecure:
            self._refresh_at = now + REFRESH_TRUST
            self._trust.refresh()
            self._inbound.recheck()
            self.links.recheck(now)

    def _flush(self, now: float) -> None:
        if self.outbox.loopback:
            waiting, self.outbox.loopback = self.outbox.loopback, []
            for scope, msg in waiting:
                self.host.receive(self.name, scope, [msg], now)
        self.host.settle(now)
        if self.links.dirty:
            for link in self.links.dirty:
                link.used_at = now
            self.links.flush()
        self._last_flush = self.now()
        if self._stop.is_set():
            self._flushed.set()
            self._flushed = trio.Event()

    # -- what hosts and applications ask for --------------------------------------------------

    def call(self, command: Callable[..., T], *args: Any, gap: float | None = None) -> T:
        """Run a command on a protocol; what it caused leaves at once, or with the next tick if the
        last flush was less than `gap` seconds ago (None: `net.flush_gap`)."""
        try:
            return self.host.call(command, *args, now=self.now())
        finally:
            self._after_call(self.net.flush_gap if gap is None else gap)

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """Call back at the end of this tick; on an idle node that is now."""
        self.host.at_tick_end(callback)
        self._after_call(self.net.flush_gap)

    def _after_call(self, gap: float) -> None:
        if self._in_tick or not self._ran or self._router.closed:
            return
        now = self.now()
        if now - self._last_flush <= gap:
            self._alarm.ring()
            return
        self._in_tick = True
        try:
            self._flush(now)
        finally:
            self._in_tick = False
        if self._has_more():
            self._alarm.ring()

    def cast(self, to: UdpAddress | Group, scope: Scope, msg: Message, reader: NodeId) -> None:
        """Sign, seal for a reader if one is named, and send one datagram."""
        self._envelopes.cast(self.datagrams, to, scope, msg, reader)

    def set_timer(self, instance: Instance, key: Hashable, at: float) -> None:
        """Set a timer, and wake the sleeper when it is the first."""
        self.timers.set(instance, key, at)
        self._alarm.ring_by(at)

    def record(self, level: int, traces: TraceSink | None) -> None:
        """Have rows up to that level taken from now on; None: nobody takes any."""
        self.host.record(level, traces)
        counting = traces is not None and level >= Level.MESSAGES
        tallies = Tallies(self.host, self.sizes) if counting else None
        self.links.count_with(tallies)
        self._envelopes.tallies = tallies
        if hasattr(self, "_inbound"):
            self._inbound.tallies = tallies

    def meet(self, endpoint: str) -> None:
        """Open a link to an address whose node's name is unknown; `PeerMet` tells it."""
        self.links.meet(parse_endpoint(endpoint))

    def link(self, peer: NodeId) -> bool:
        """Open a link to a peer, or keep it; True when it is open, else `LinkUp` will tell."""
        return self.links.to(peer).state is State.OPEN

    def learn(self, peer: NodeId, endpoints: Sequence[str]) -> None:
        """Put a peer's addresses into the book."""
        self.links.learn(peer, [*map(parse_endpoint, endpoints)])

    # -- what happens -------------------------------------------------------------------------

    def _refuse(self, who: str, error: RemoteProtocolError, count: int) -> None:
        self.host.trace_refusal(who, error, count)
        self._count_refusal(who, error, count)

    def _count_refusal(self, who: str, error: RemoteProtocolError, count: int) -> None:
        self.refusals.add(who, error, self.now(), count)

    def _believe(self, peer: NodeId, endpoints: Sequence[str]) -> None:
        try:
            self.learn(peer, endpoints)
        except ConfigError as error:
            self._refuse(peer, RemoteProtocolError("bad-endpoint", str(error)), 1)

    def _on_session(self, session: Session, hello: Hello) -> None:
        self.links.learn_identity(session.identity)
        self._believe(session.name, hello.endpoints)
        self.links.session_opened(session, self.now())

    def _on_session_lost(self, session: Session, reason: str) -> None:
        self.host.announce(LinkLost(session.name, reason, session.in_use), self.now())

    def _ask_who(self, link: Link, endpoint: Endpoint) -> bool:
        self._sweep_by(self.now() + ASK_AGAIN)
        return self._introductions.ask(link, endpoint, self.now())

    def _hello(self) -> Hello:
        mine = (self.overlay, self.name, self._life, tuple(self.endpoints), self._trust.certificate)
        return Hello(OLDEST_VERSION, VERSION, *mine)

    def _stored(self, batch: Iterable[tuple[Instance, Hashable]]) -> None:
        now = self.now()
        for instance, token in batch:
            self.host.stored(instance, token, now)
        self._after_call(self.net.flush_gap)

    def status(self) -> DriverStatus:
        """What `overlay status` shows."""
        counters = self.links.counters + self.datagrams.counts + self._inbound.counters
        counters["messages to itself dropped"] = self.outbox.loopback_dropped
        return DriverStatus(
            name=self.name,
            overlay=self.overlay,
            insecure=self.insecure,
            endpoints=self.endpoints,
            uptime=self.now() - self.started_at,
            links=[link_status(link, self.now()) for link in self.links],
            sessions=[session_status(one, self.now()) for one in self._inbound.sessions.values()],
            refusals=dict(sorted(self.refusals.counts.items())),
            counters=dict(sorted(counters.items())),
        )
