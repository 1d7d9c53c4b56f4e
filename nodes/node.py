"""A node that an application holds: it runs as long as its `async with` block.

async with Node(config, peer(config)) as node:
    echo = node.protocol(Echo)
    node.meet("tcp://127.0.0.1:5555")
    ...
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec
import trio

from nodes.event_stream import EventStream
from nodes.folders import runtime_folder
from nodes.mdns import Mdns, runs_beacon
from nodes.service import ControlService
from nodes.settings import DEFAULT_OVERLAY, DEFAULT_ZONE, NodeConfig
from nodes.tracing import Tracing
from overlay.errors import LocalProtocolError, OverlayError, RemoteProtocolError, SecurityError
from overlay.host import Surroundings
from overlay.ids import NodeId, check_name
from overlay.limits import Limits
from overlay.logs import speak_for
from overlay.net.config import NetSettings
from overlay.net.driver import Driver
from overlay.net.status import DriverStatus
from overlay.protocol import NODE_SCOPE, Event, OverlayProtocol, Scope
from overlay.security.rights import Rights
from protocols.membership.events import MemberFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from types import TracebackType

    from nodes.moving import Relocation
    from overlay.host import Recipe
    from overlay.security.credentials import Credentials

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Event)
P = TypeVar("P", bound=OverlayProtocol)
T = TypeVar("T")

EVENT_BUFFER = 4096  # events that an application may lag behind before it loses some


class NodeStatus(msgspec.Struct, frozen=True):
    """What `overlay status` shows."""

    name: NodeId
    zone: str
    pid: int
    insecure: bool
    driver: DriverStatus
    protocols: dict[str, dict[str, Any]]  # the counts of each instance that keeps some
    events_dropped: int  # by applications that read too slowly
    control: dict[str, int]


class Node:
    """Runs the protocols of a recipe on ZeroMQ; SecurityError without key material."""

    def __init__(self, config: NodeConfig, recipe: Recipe) -> None:
        self.name, self.overlay, self.zone, self._credentials = _identify(config)
        self.config = config
        self.driver: Driver  # made when the node starts: it holds sockets
        self.control = ControlService()
        self.control.register("status", self.status)
        self.control.register("stop", self.stop)
        self.control.register("meet", self.meet)
        self.traces = Tracing(self)
        self._recipe = recipe
        self._streams: dict[EventStream[Any], tuple[type[Any], ...]] = {}  # what each one hears
        self._at_stop: dict[Callable[[], None], None] = {}
        self._background: list[Callable[[], Awaitable[None]]] = []
        self._listening = False
        self._hearing: dict[Callable[[Any], None], tuple[type[Event], ...]] = {}
        self._move: Relocation | None = None  # the node stops only to go on elsewhere
        self._stopping = False
        self._events_dropped = 0
        self._failure: BaseException | None = None  # what a callback of the application raised
        self._stopped = trio.Event()
        self._life = AsyncExitStack()
        self._entered = False

    # -- life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start; when this returns, peers can reach the node."""
        if self._entered:
            raise LocalProtocolError("a Node lives once: make another one to start again")
        self._entered = True
        try:
            await self._life.enter_async_context(self._running())
        except BaseExceptionGroup as group:
            raise only_error(group) from group.__cause__
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop in good order: what is queued still leaves."""
        try:
            await self._life.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            alone = only_error(group)
            if alone is not error:  # the body's own error goes on by itself
                raise alone from alone.__cause__

    async def run(self) -> None:
        """Wait until something stops the node: `stop`, or `overlay stop`."""
        await self._stopped.wait()

    def stop(self) -> None:
        """Begin to stop; harmless when it stops already."""
        self._stopping = True
        self.driver.stop()

    def _on_member_failed(self, failed: MemberFailed) -> None:
        if not failed.restarted:
            self.driver.links.give_up(failed.member)

    def _assemble(self) -> None:
        """Make a driver, with the protocols and all who listen to them."""
        self.driver = Driver(
            self.name,
            overlay=self.overlay,
            credentials=self._credentials,
            net=self.config.section(NetSettings),
            limits=self.config.section(Limits),
            state=self.config.state,
        )
        self.driver.host.surroundings = Surroundings(
            self.zone,
            lambda: tuple(self.driver.endpoints),
            self._rights_of,
            self.driver.links.udp_of,
            self.driver.now,
            self.overlay,
            self._authority(),
            self.driver.links.trust.certificate,
            self._vouches,
        )
        self._recipe(self.driver.host)
        self.driver.host.listen(MemberFailed, self._on_member_failed)
        self.traces.begin()
        self._listening = True
        for stream in self._streams:
            self._listen(stream)
        for hear, kinds in self._hearing.items():
            for kind in kinds:
                self.driver.host.listen(kind, hear)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        self._assemble()
        async with AsyncExitStack() as sockets, trio.open_nursery() as nursery:
            before = speak_for(self.name, self.zone)
            sockets.callback(speak_for, *before)
            await nursery.start(self._drive)
            if self.config.control:
                listening = self.control.listening(runtime_folder(), self.name)
                listener = await sockets.enter_async_context(listening)
                nursery.start_soon(self.control.serve, listener)
            for task in self._background:
                nursery.start_soon(task)
            for seed in self.config.seeds:
                self.driver.meet(seed)
            if runs_beacon(self):
                nursery.start_soon(Mdns(self).run)
            try:
                yield
            finally:
                self.stop()
            await self._stopped.wait()
            nursery.cancel_scope.cancel()  # the control socket, and what runs beside it
        if self._failure is not None:
            raise self._failure

    async def _drive(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            await self.driver.run(task_status=task_status)
            while (move := self._move) is not None and not self._stopping:
                self._move = None
                await self._go(move)
        finally:
            await self.traces.end()
            self._stopped.set()
            for stream in tuple(self._streams):
                stream.close()
            for callback in tuple(self._at_stop):
                callback()

    async def _go(self, move: Relocation) -> None:
        """Run elsewhere; where that cannot be, back here."""
        before = self.config, self.zone
        while True:
            self.config, self.zone = move.config, move.zone
            try:
                self._assemble()
                await self.driver.run(task_status=move)
                return
            except (OverlayError, OSError) as error:
                if move.arrived.is_set() or move.refused is not None:
                    raise
                move.go_back(error, *before)

    async def relocate(self, move: Relocation) -> None:
        """Stop, and go on elsewhere; returns when the node runs there, or here again."""
        move.leave()
        self._move = move
        self.driver.stop()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_stopped, nursery.cancel_scope)
            await move.arrived.wait()
            nursery.cancel_scope.cancel()
        if not move.arrived.is_set():
            raise LocalProtocolError(f"{self.name} stopped")

    async def _until_stopped(self, scope: trio.CancelScope) -> None:
        await self._stopped.wait()
        scope.cancel()

    def check_zone(self, zone: Scope) -> None:
        """SecurityError when this node may not be a member of that zone."""
        Rights(zones=(zone,))  # refuses what no zone can be called
        check_right(self._credentials, zone)

    # -- use ----------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether it has started, and not stopped."""
        return self._listening and not self._stopped.is_set()

    @property
    def endpoints(self) -> list[str]:
        """Where peers reach this node."""
        return self.driver.endpoints

    def protocol(self, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """The running instance of that class and scope."""
        return self.driver.host.protocol(cls, scope)

    def call(self, command: Callable[..., T], *args: Any) -> T:
        """Run a command of a protocol, which gets the time as its last argument."""
        result: T = self.driver.call(command, *args)
        return result

    def meet(self, address: str) -> None:
        """Open a link to an address whose name is not known; `LinkUp` tells the name."""
        self.driver.meet(address)

    def link(self, peer: NodeId) -> bool:
        """Open a link to a peer whose address is known; True when it is open already."""
        return self.driver.link(peer)

    def learn(self, peer: NodeId, endpoints: Sequence[str]) -> None:
        """Remember where a peer is reached; a link opens when something is sent to it."""
        self.driver.learn(peer, endpoints)

    @overload
    def events(self, kind: type[E], /, *, capacity: int = ...) -> EventStream[E]: ...

    @overload
    def events(
        self, kind: type[E], other: type[F], /, *, capacity: int = ...
    ) -> EventStream[E | F]: ...

    @overload
    def events(
        self, *kinds: type[Event], capacity: int = ..., where: Callable[[Any], bool] = ...
    ) -> EventStream[Any]: ...

    def events(
        self,
        *kinds: type[Any],
        capacity: int = EVENT_BUFFER,
        where: Callable[[Any], bool] | None = None,
    ) -> EventStream[Any]:
        """Listen from now on, or from the start; close it (`with node.events(...) as stream`).

        A stream that is made before the node starts misses nothing, not even the first link.
        """
        stream: EventStream[Any] = EventStream(capacity, self._forget, where)
        self._streams[stream] = kinds
        if self._listening:
            self._listen(stream)
        return stream

    def _listen(self, stream: EventStream[Any]) -> None:
        for kind in self._streams[stream]:
            self.driver.host.listen(kind, stream.put)

    def _forget(self, stream: EventStream[Any]) -> None:
        for kind in self._streams.pop(stream):
            if self._listening:
                self.driver.host.unlisten(kind, stream.put)
        self._events_dropped += stream.dropped

    def listen(
        self, kinds: Iterable[type[Event]], callback: Callable[[Any], None]
    ) -> Callable[[], None]:
        """Call back with each such event, at once; call what is returned to hear no more.

        An error in the callback stops the node, and the end of its block raises it.
        """
        heard = tuple(kinds)
        hear = self.guarded(callback)
        for kind in heard:
            self.driver.host.listen(kind, hear)
        self._hearing[hear] = heard

        def unlisten() -> None:
            if self._hearing.pop(hear, None) is not None:
                for kind in heard:
                    self.driver.host.unlisten(kind, hear)

        return unlisten

    def guarded(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same, whose errors stop the node in good order instead of in mid-step."""

        def call(argument: Any) -> None:
            try:
                callback(argument)
            except Exception as error:  # noqa: BLE001 - it is the application's, and told below
                self._failure = self._failure or error
                self.stop()

        return call

    def in_background(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run this beside the driver, from the node's start to its end; call it before."""
        self._background.append(task)

    def at_stop(self, callback: Callable[[], None]) -> None:
        """Call this once the node has stopped, unless `forget_at_stop` comes first."""
        self._at_stop[callback] = None

    def forget_at_stop(self, callback: Callable[[], None]) -> None:
        """Do not; harmless when it was not asked for."""
        self._at_stop.pop(callback, None)

    def _rights_of(self, name: NodeId) -> Rights | None:
        """What a certificate allows, this node's own included; None when it was not seen."""
        if name != self.name:
            return self.driver.links.rights_of(name)
        return None if self._credentials is None else self._credentials.identity.rights

    def _vouches(self, name: NodeId, certificate: bytes) -> bool:
        """Whether it is that name's; a link to it then needs no introduction."""
        links = self.driver.links
        try:
            proven = links.trust.identify(certificate, name, None, time.time())
        except RemoteProtocolError:
            return False
        if links.trust.curve is not None:
            links.learn_identity(proven)
        return True

    @property
    def fingerprint(self) -> bytes:
        """Of this node's certificate, which binds its keys; empty when insecure."""
        return b"" if self._credentials is None else self._credentials.identity.fingerprint

    def _authority(self) -> bytes:
        if self._credentials is None:
            return b""
        from overlay.security.certificate import overlay_id_of  # loaded with the credentials

        return overlay_id_of(self._credentials.authority_certificate)

    def status(self) -> NodeStatus:
        """Everything that can be told about this node now."""
        host = self.driver.host
        counts = {
            instance.key: msgspec.to_builtins(instance.protocol.counts)
            for instance in host.instances
            if hasattr(instance.protocol, "counts")
        }
        return NodeStatus(
            name=self.name,
            zone=self.zone,
            pid=os.getpid(),
            insecure=self.config.insecure,
            driver=self.driver.status(),
            protocols=counts,
            events_dropped=self._events_dropped + sum(stream.dropped for stream in self._streams),
            control=dict(self.control.counts),
        )


def _identify(config: NodeConfig) -> tuple[NodeId, str, Scope, Credentials | None]:
    """Who the node is, in which overlay and zone, and how it proves that."""
    if config.name:
        check_name(config.name)
    if config.zone:
        Rights(zones=(config.zone,))  # refuses what no zone can be called
    if config.insecure:
        made_up = f"{socket.gethostname().partition('.')[0][:40] or 'node'}-{token_hex(3)}"
        zone = config.zone or DEFAULT_ZONE
        return config.name or made_up, config.overlay or DEFAULT_OVERLAY, zone, None
    from overlay.security.credentials import load_credentials  # 40 ms and 11 MB: only when used

    credentials = load_credentials(config.keys, config.name)
    identity = credentials.identity
    if config.overlay and config.overlay != identity.overlay:
        raise SecurityError(
            f"the keys of {identity.name!r} belong to overlay {identity.overlay!r},"
            f" not to {config.overlay!r}"
        )
    if config.zone:
        check_right(credentials, config.zone)
    zone = config.zone or _home_zone(identity.rights)
    return identity.name, identity.overlay, zone, credentials


def check_right(credentials: Credentials | None, zone: Scope) -> None:
    """SecurityError when who has these may not be a member of that zone."""
    identity = None if credentials is None else credentials.identity
    if identity is not None and not identity.rights.may_join(zone):
        raise SecurityError(
            f"{identity.name!r} may not join zone {zone!r}: run"
            f" `overlay keys issue {identity.name} --zone {zone} --force`"
        )


def _home_zone(rights: Rights) -> Scope:
    """Where a node belongs that was told no zone; empty when its certificate leaves a choice."""
    if rights.may_join(DEFAULT_ZONE):
        return DEFAULT_ZONE
    return rights.zones[0] if len(rights.zones) == 1 else ""


def only_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error inside of nested groups, so that callers can catch it by its own type."""
    errors: list[BaseException] = []
    pending: list[BaseException] = [group]
    while pending:
        error = pending.pop()
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        elif not isinstance(error, trio.Cancelled):
            errors.append(error)
    return errors[0] if len(errors) == 1 else group
