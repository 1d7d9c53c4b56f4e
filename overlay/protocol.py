"""What a protocol is: a synchronous state machine that pushes effects into a sink.

A protocol has no sockets, no clock and no randomness of its own, so the same class runs on
ZeroMQ (`overlay.net`) and by the thousand in the simulator (`overlay.sim`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec

from overlay.ids import NodeId
from overlay.tracing import Trace

Scope: TypeAlias = str
"""Tells several instances of one protocol on a node apart; the frame header carries it."""

NODE_SCOPE: Scope = ""
"""The scope of what exists once per node. Its instances hear the events of every scope."""


class Message(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What travels: `class Ping(Message, frozen=True, tag=16)`.

    Tags are append-only (`protocols/tags.toml`). A field that may grow past 32 KiB must be
    `payload: bytes`: only that one travels as a frame of its own.
    """

    bulk: ClassVar[bool] = False
    """True in a class whose messages may wait: they go by the bulk lane of a link, which all
    others overtake."""


class Event(msgspec.Struct, frozen=True):
    """A fact that one protocol tells its siblings and the application, in the past tense."""

    def traces(self) -> Iterable[Trace]:
        """What it leaves in the traces whenever it is emitted: nothing, unless a class says so."""
        return ()


class UdpAddress(NamedTuple):
    """Where one datagram goes to or came from."""

    host: str
    port: int


class Group(NamedTuple):
    """A multicast group on every interface that the node uses."""

    host: str
    port: int


class Origin(NamedTuple):
    """Where a datagram came from, and who vouches for it."""

    address: UdpAddress
    name: NodeId  # proven by a signature; in an insecure overlay only a claim
    arrived_at: float  # the node's clock when the socket was read, for the time service
    interface: str = ""


class LinkUp(Event, frozen=True):
    """A link with `peer`, opened by either side, completed its handshake."""

    peer: NodeId


class LinkLost(Event, frozen=True):
    """The link to or from `peer` broke: a hint that it may be gone, never a verdict.

    It is `closed` if the peer's end closed it or refused it; else an attempt to open it was not
    answered in time, which happens to every process that has too little of the CPU.
    """

    peer: NodeId
    reason: str = ""
    closed: bool = True


class ContactLearned(Event, frozen=True):
    """`peer` can be reached at `endpoints`; the driver keeps it in its address book."""

    peer: NodeId
    endpoints: tuple[str, ...]


class PeerMet(Event, frozen=True):
    """`peer` lives at an address that the user gave, or says so in a beacon.

    `zone` is where a beacon says that it belongs; empty: nobody told.
    """

    peer: NodeId
    endpoints: tuple[str, ...]
    zone: Scope = ""


class NetworkChanged(Event, frozen=True):
    """This machine has an address that it had not: peers may be told of it, and others be near."""


class TurnedAway(Event, frozen=True):
    """Whoever lives at `who` (a name or an address) refused this node's first word."""

    who: str
    reason: str


Handler: TypeAlias = Callable[[NodeId, Any, float], None]  # (source, message, now)
DatagramHandler: TypeAlias = Callable[[Origin, Any, float], None]  # (origin, message, now)
EventHandler: TypeAlias = Callable[[Any, float], None]  # (event, now)


class Effects(ABC):
    """The sink for everything a protocol wants done; its host drains it."""

    __slots__ = ()

    tracing: int = 0
    """The level of the traces (`overlay.tracing.Level`): ask before a row is made."""

    @abstractmethod
    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Send over the link to `to`; to several peers it is encoded once.

        A link has two lanes, and each keeps its order: one for classes with `bulk`, one for all
        others, which go first. A message longer than `limits.frame_bytes` goes in pieces between
        those of the bulk lane, whatever its class: any other may overtake it.
        Best effort: a full queue or a broken link drops it and counts that.
        """

    def backlog(self, to: NodeId) -> int:
        """Bytes that wait on this node for the link to `to`; 0 where nothing ever waits."""
        return 0

    @abstractmethod
    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """Send one datagram, sealed for `reader` once that node's certificate is known here."""

    @abstractmethod
    def set_timer(self, key: Hashable, at: float) -> None:
        """Call `on_timer(key)` at that time; setting the same key again replaces it."""

    @abstractmethod
    def cancel_timer(self, key: Hashable) -> None:
        """Forget that timer; harmless when it is not set."""

    @abstractmethod
    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Keep (or with None forget) durably; `on_stored(token)` follows when it is on disk."""

    @abstractmethod
    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """Call back once, before this tick's flush; the same callback is registered once."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Tell siblings and the application."""

    @abstractmethod
    def trace(self, record: Trace) -> None:
        """Leave a row in the traces; only while `tracing` is at the level of its kind."""


class OverlayProtocol(ABC):
    """One state machine: no sockets, no clock, no global randomness.

    Commands of the application take `now` as their last argument and are called through
    `Host.call`, so that their events are delivered as any others.
    """

    name: ClassVar[str]
    messages: ClassVar[tuple[type[Message], ...]] = ()  # everything it sends or receives
    emits: ClassVar[tuple[type[Event], ...]] = ()

    def __init__(self, me: NodeId, effects: Effects, rng: Random, config: Any) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.config = config

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """Who handles what arrives over links; read once."""
        return {}

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        """Who handles what arrives as datagrams; read once."""
        return {}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Which facts of siblings and of the host this protocol listens to; read once."""
        return {}

    def groups(self) -> Sequence[Group]:
        """Multicast groups whose datagrams it wants; read when it starts and when it is removed."""
        return ()

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Begin; `kept` is what `store` kept in an earlier life."""

    def on_timer(self, key: Hashable, now: float) -> None:
        """Act on a timer set before."""

    def on_stored(self, token: Hashable, now: float) -> None:
        """Go on: what was stored under that token is on disk."""

    def on_stop(self, now: float) -> None:
        """Say goodbye; what is sent here still leaves."""

    def check_invariants(self) -> None:
        """Raise InvariantViolation if the state is wrong; the simulator asks after each step."""
