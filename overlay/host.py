"""One node, pure and synchronous: it routes messages, timers and events to its protocols.

A driver (`overlay.net` or `overlay.sim`) owns a host, hands it what happened, and gives each
protocol instance its effects. Events are drained from a queue after every handler, never by
recursion, so a handler always sees its own state finished.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    NODE_SCOPE,
    ContactLearned,
    DatagramHandler,
    Effects,
    Event,
    EventHandler,
    Group,
    Handler,
    LinkLost,
    LinkUp,
    Message,
    NetworkChanged,
    Origin,
    OverlayProtocol,
    PeerMet,
    Scope,
    TurnedAway,
    UdpAddress,
)
from overlay.tracing import Level, Trace, TraceSink
from overlay.tracing.kinds import LINK_LOST, LINK_UP, REFUSED

if TYPE_CHECKING:
    from overlay.security.rights import Rights

P = TypeVar("P", bound=OverlayProtocol)
T = TypeVar("T")

HOST_EVENTS: tuple[type[Event], ...] = (
    *(LinkUp, LinkLost, ContactLearned, PeerMet, TurnedAway, NetworkChanged),
)
STEP_CAP = (
    100_000  # events that one input may cause; more means that two protocols chase each other
)

Kept: TypeAlias = Mapping[bytes, bytes]
Listener: TypeAlias = Callable[[Any], None]
Recipe: TypeAlias = "Callable[[Host], None]"
"""Adds the protocols of one kind of node, in order."""
OverlayClock: TypeAlias = Callable[[float], "tuple[float, float] | None"]
"""What overlay time adds to a time of the node's clock, and how far it may be off; or None."""
RefusalListener: TypeAlias = Callable[[NodeId, RemoteProtocolError, int], None]


SIMULATED_PORT = 7400
DRIVER = "driver"  # whose rows are not a protocol's, in both worlds


def _at_its_name(peer: NodeId) -> UdpAddress | None:
    """In the simulator the address of a node is its name."""
    return UdpAddress(peer, SIMULATED_PORT)


class Surroundings(NamedTuple):
    """What a recipe may know of the node that it assembles; in the simulator nothing."""

    zone: Scope = ""  # the base zone that the node belongs to
    here: Callable[[], tuple[str, ...]] = tuple  # where peers reach it, once it is bound
    rights_of: Callable[[NodeId], Rights | None] = lambda _peer: None
    """What a peer's certificate allows; None when it was not seen: whoever let it in saw it."""
    udp_of: Callable[[NodeId], UdpAddress | None] = _at_its_name  # where it takes datagrams
    clock: Callable[[], float] | None = None
    """Reads the clock in the middle of a tick, for timestamps of round trips; None: it stands."""
    overlay: str = ""
    authority: bytes = b""  # what tells overlays of one name apart; empty when insecure
    certificate: bytes = b""  # this node's own; empty when insecure
    vouches: Callable[[NodeId, bytes], bool] = lambda _name, _certificate: True
    """Whether a certificate is that name's; its key is known then, and a link opens at once."""


def _nothing_kept(_instance: Instance) -> Kept:
    return {}


class Instance:
    """One running protocol: its scope, and the key under which a driver files its timers."""

    __slots__ = ("effects", "emits", "key", "name", "protocol", "running", "scope")

    def __init__(self, name: str, scope: Scope, emits: frozenset[type[Event]]) -> None:
        self.name = name
        self.key = f"{name}@{scope}" if scope else name
        self.scope = scope
        self.emits = emits
        self.running = False
        self.effects: HostEffects
        self.protocol: OverlayProtocol  # set once it is constructed, right after its effects


class HostEffects(Effects):
    """The part of the effects that never leaves the host; drivers add the rest."""

    __slots__ = ("_host", "_instance", "tracing")

    def __init__(self, host: Host, instance: Instance) -> None:
        self._host = host
        self._instance = instance
        self.tracing: int = host.tracing

    def emit(self, event: Event) -> None:
        """Queue the event; siblings hear of it when the current handler is done."""
        if type(event) not in self._instance.emits:
            raise LocalProtocolError(
                f"{self._instance.key} emits {type(event).__name__}, which is not in its `emits`"
            )
        if self.tracing:
            for record in event.traces():
                self.trace(record)
        self._host.queue_event(self._instance.scope, event)

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """Register once per tick."""
        self._host.at_tick_end(callback)

    def trace(self, record: Trace) -> None:
        """Hand it to whoever records this node."""
        traces = self._host.traces
        if traces is not None:
            traces.take(self._instance.name, self._instance.scope, record)


class Host:
    """Holds the instances of one node and calls them, one input at a time."""

    def __init__(
        self,
        me: NodeId,
        make_effects: Callable[[Host, Instance], HostEffects],
        seed: str,
        *,
        on_refusal: RefusalListener | None = None,
        on_removed: Callable[[Instance], None] | None = None,
    ) -> None:
        self.me = me
        self.surroundings = Surroundings()  # whoever runs the node replaces it before the recipe
        self.refusals: Counter[str] = Counter()
        self.overlay_clock: OverlayClock | None = None  # a recipe with a time service sets it
        self.tracing: int = Level.OFF
        self.traces: TraceSink | None = None
        self.tick_end_callbacks: dict[Callable[[float], None], None] = {}
        self._make_effects = make_effects
        self._seed = seed
        self._on_refusal = on_refusal
        self._on_removed = on_removed
        self._kept: Callable[[Instance], Kept] = _nothing_kept
        self._instances: dict[tuple[type[OverlayProtocol], Scope], Instance] = {}
        self._handlers: dict[Scope, dict[type[Message], Handler]] = {}
        self._datagrams: dict[Scope, dict[type[Message], DatagramHandler]] = {}
        self._hearers: dict[type[Event], list[tuple[Scope, EventHandler]]] = {}
        self._listeners: dict[type[Event], list[Listener]] = {}
        self._events: deque[tuple[Scope, Event]] = deque()
        self._running = False

    # -- assembling ---------------------------------------------------------------------------

    def add(self, cls: type[P], config: Any, scope: Scope = NODE_SCOPE, **views: Any) -> P:
        """Make an instance; `views` are the siblings' interfaces that its constructor takes.

        On a running node follow it with `launch`.
        """
        if (cls, scope) in self._instances:
            raise LocalProtocolError(f"{cls.name} runs already in scope {scope!r}")
        instance = Instance(cls.name, scope, frozenset(cls.emits))
        effects = instance.effects = self._make_effects(self, instance)
        rng = Random(f"{self._seed}/{self.me}/{instance.key}")
        protocol = cls(self.me, effects, rng, config, **views)
        self._merge_handlers(cls, scope, protocol)
        instance.protocol = protocol
        self._instances[cls, scope] = instance
        return protocol

    def _merge_handlers(self, cls: type[P], scope: Scope, protocol: P) -> None:
        messages = protocol.message_handlers()
        datagrams = protocol.datagram_handlers()
        for kind in (*messages, *datagrams):
            if kind not in cls.messages:
                raise LocalProtocolError(f"{cls.name} handles {kind.__name__} but does not list it")
        for table, handlers in (
            (self._handlers.setdefault(scope, {}), messages),
            (self._datagrams.setdefault(scope, {}), datagrams),
        ):
            for kind in handlers:
                if kind in table:
                    raise LocalProtocolError(f"{kind.__name__} would be handled twice in {scope!r}")
            table.update(handlers)  # type: ignore[arg-type]
        for event, hearer in protocol.event_handlers().items():
            self._hearers.setdefault(event, []).append((scope, hearer))

    def protocol(self, cls: type[P], scope: Scope = NODE_SCOPE) -> P:
        """Return the running instance of that class and scope."""
        try:
            found = self._instances[cls, scope].protocol
        except KeyError:
            raise LocalProtocolError(f"{cls.name} does not run in scope {scope!r}") from None
        assert isinstance(found, cls)
        return found

    def has(self, cls: type[OverlayProtocol], scope: Scope = NODE_SCOPE) -> bool:
        """Whether an instance of that class runs in that scope."""
        return (cls, scope) in self._instances

    @property
    def instances(self) -> list[Instance]:
        """All instances, in the order in which they were added."""
        return list(self._instances.values())

    @property
    def message_types(self) -> dict[type[Message], None]:
        """Every message type that the protocols of this node send or receive, in a fixed order."""
        return {kind: None for cls, _ in self._instances for kind in cls.messages}

    @property
    def groups(self) -> dict[Group, None]:
        """Every multicast group that an instance wants to hear."""
        instances = self._instances.values()
        return {group: None for one in instances for group in one.protocol.groups()}

    def listen(self, event: type[Event], listener: Listener) -> None:
        """Call the application's `listener` with each such event of any scope."""
        self._listeners.setdefault(event, []).append(listener)

    def unlisten(self, event: type[Event], listener: Listener) -> None:
        """Stop calling it."""
        self._listeners[event].remove(listener)

    # -- life ---------------------------------------------------------------------------------

    def start(self, now: float, kept: Callable[[Instance], Kept]) -> None:
        """Start every instance, in the order in which they were added."""
        self._refuse_events_nobody_emits()
        self._running = True
        self._kept = kept
        for instance in self.instances:
            if not instance.running:
                instance.running = True
                instance.protocol.on_start(now, kept(instance))
                self._drain(now)

    def launch(self, protocol: OverlayProtocol, now: float) -> None:
        """Start one that was added while the node runs; a recipe does so at the end of a tick.

        Its messages must be known to the driver: of types that another instance lists, too, or
        taught by the driver's own `start_instance`.
        """
        self._refuse_events_nobody_emits()
        instance = self.instance_of(protocol)
        instance.running = True
        protocol.on_start(now, self._kept(instance))

    def remove(self, protocol: OverlayProtocol, now: float) -> None:
        """Stop one instance and forget it; the driver forgets its timers."""
        instance = self.instance_of(protocol)
        if instance.running:
            protocol.on_stop(now)
        instance.running = False
        del self._instances[type(protocol), instance.scope]
        for kind in protocol.message_handlers():
            del self._handlers[instance.scope][kind]
        for kind in protocol.datagram_handlers():
            del self._datagrams[instance.scope][kind]
        for event, hearer in protocol.event_handlers().items():
            self._hearers[event].remove((instance.scope, hearer))
        if self._on_removed is not None:
            self._on_removed(instance)

    def stop(self, now: float) -> None:
        """Stop all instances, the last added first, so that siblings they need still run."""
        for instance in reversed(self.instances):
            if instance.running:
                instance.protocol.on_stop(now)
                self._drain(now)
                instance.running = False
        self._running = False

    def instance_of(self, protocol: OverlayProtocol) -> Instance:
        """Return what a driver knows that protocol by."""
        for instance in self._instances.values():
            if instance.protocol is protocol:
                return instance
        raise LocalProtocolError(f"{protocol.name} is not an instance of this node")

    def _refuse_events_nobody_emits(self) -> None:
        emitted = {event for instance in self._instances.values() for event in instance.emits}
        for event in self._hearers:
            if self._hearers[event] and event not in emitted and event not in HOST_EVENTS:
                raise LocalProtocolError(f"a protocol waits for {event.__name__}; nobody emits it")

    def record(self, level: int, traces: TraceSink | None) -> None:
        """Have rows up to that level taken from now on; None: nobody takes any."""
        self.traces = traces
        self.tracing = Level.OFF if traces is None else level
        for instance in self._instances.values():
            instance.effects.tracing = self.tracing

    # -- inputs -------------------------------------------------------------------------------

    def receive(self, src: NodeId, scope: Scope, batch: Sequence[Message], now: float) -> None:
        """Hand each message of a batch to its handler; bad ones are counted, the rest go on."""
        handlers = self._handlers.get(scope)
        if handlers is None:
            self.refuse(src, RemoteProtocolError("unknown-scope", repr(scope)), len(batch))
            return
        events = self._events
        handler_of = handlers.get
        rest = iter(batch)
        while True:
            try:  # around the loop, not inside it: the hot path pays nothing for it
                for msg in rest:
                    handler = handler_of(type(msg))
                    if handler is None:
                        raise RemoteProtocolError("unexpected-message", type(msg).__name__)
                    handler(src, msg, now)
                    if events:
                        self._drain(now)
            except RemoteProtocolError as error:
                error.protocol = self._protocol_of(msg)
                self.refuse(src, error)
                self._drain(now)
            else:
                return

    def receive_datagram(self, origin: Origin, scope: Scope, msg: Message, now: float) -> None:
        """Hand one datagram to its handler."""
        handler = self._datagrams.get(scope, {}).get(type(msg))
        if handler is None:
            self.refuse(origin.name, RemoteProtocolError("unexpected-datagram", type(msg).__name__))
            return
        try:
            handler(origin, msg, now)
        except RemoteProtocolError as error:
            error.protocol = self._protocol_of(msg)
            self.refuse(origin.name, error)
        self._drain(now)

    def fire(self, instance: Instance, key: Hashable, now: float) -> None:
        """A timer is due."""
        if instance.running:
            instance.protocol.on_timer(key, now)
            if self._events:
                self._drain(now)

    def stored(self, instance: Instance, token: Hashable, now: float) -> None:
        """What an instance stored is on disk."""
        if instance.running:
            instance.protocol.on_stored(token, now)
            self._drain(now)

    def announce(self, event: Event, now: float) -> None:
        """Tell a fact of the driver's own (`LinkUp`, `LinkLost`) to everybody who listens."""
        if self.traces is not None:
            self._trace_link(event)
        self._events.append((NODE_SCOPE, event))
        self._drain(now)

    def _trace_link(self, event: Event) -> None:
        assert self.traces is not None
        if isinstance(event, LinkUp):
            self.traces.take(DRIVER, NODE_SCOPE, Trace(LINK_UP, event.peer))
        elif isinstance(event, LinkLost):
            self.traces.take(DRIVER, NODE_SCOPE, Trace(LINK_LOST, event.peer, detail=event.reason))

    def call(self, command: Callable[..., T], *args: Any, now: float) -> T:
        """Run a command of the application on a protocol of this node."""
        try:
            return command(*args, now)
        finally:
            if self._events:
                self._drain(now)

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """Call back once, before this tick's flush: there a recipe may start and stop instances."""
        self.tick_end_callbacks[callback] = None

    def settle(self, now: float) -> None:
        """Run them now, if there are any: in the middle of a tick, between two frames."""
        if self.tick_end_callbacks:
            self.end_tick(now)

    def end_tick(self, now: float) -> None:
        """Run what protocols put off to the end of the tick; the driver flushes afterwards."""
        for _ in range(STEP_CAP):
            if not self.tick_end_callbacks:
                return
            callbacks = list(self.tick_end_callbacks)
            self.tick_end_callbacks.clear()
            for callback in callbacks:
                callback(now)
                if self._events:
                    self._drain(now)
        raise InvariantViolation(f"{self.me}: the end of a tick never settles")

    # -- events and refusals ------------------------------------------------------------------

    def queue_event(self, scope: Scope, event: Event) -> None:
        """Take an event of an instance in that scope."""
        self._events.append((scope, event))

    def _drain(self, now: float) -> None:
        events = self._events
        steps = 0
        while events:
            steps += 1
            if steps > STEP_CAP:
                raise InvariantViolation(f"{self.me}: events never settle: {events[0][1]!r}")
            scope, event = events.popleft()
            for hearing, hearer in tuple(self._hearers.get(type(event), ())):
                if hearing == scope or not hearing or not scope:
                    hearer(event, now)
            for listener in tuple(self._listeners.get(type(event), ())):
                listener(event)

    def refuse(self, src: NodeId, error: RemoteProtocolError, count: int = 1) -> None:
        """Count what a peer sent and must not have sent."""
        self.refusals[error.reason] += count
        self.trace_refusal(src, error, count)
        if self._on_refusal is not None:
            self._on_refusal(src, error, count)

    def _protocol_of(self, msg: Message) -> str:
        """Whose message it is; empty when nobody here sends such a one."""
        kind = type(msg)
        owners = (one.name for one in self._instances.values() if kind in one.protocol.messages)
        return next(owners, "")

    def trace_refusal(self, src: str, error: RemoteProtocolError, count: int) -> None:
        """Leave a row about something that was refused here, or by the driver."""
        if self.traces is not None:
            self.traces.take(
                DRIVER, NODE_SCOPE, Trace(REFUSED, src, detail=error.reason, count=count)
            )

    def check_invariants(self) -> None:
        """Ask every running protocol to check itself."""
        for instance in self._instances.values():
            if instance.running:
                instance.protocol.check_invariants()
