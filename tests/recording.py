"""Effects for unit tests: they record exactly what a protocol wanted done, as data to compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

from overlay.ids import NodeId
from overlay.protocol import Effects, Event, Group, Message, UdpAddress
from overlay.tracing import Trace


class Send(NamedTuple):
    """A message left over the link to `to`."""

    to: NodeId
    msg: Message


class Cast(NamedTuple):
    """A datagram left, sealed for `reader` if one is named."""

    address: UdpAddress | Group
    msg: Message
    reader: NodeId = ""


class SetTimer(NamedTuple):
    """A timer was set, or set anew."""

    key: Hashable
    at: float


class CancelTimer(NamedTuple):
    """A timer was cancelled, whether it was set or not."""

    key: Hashable


class Store(NamedTuple):
    """A write was begun."""

    key: bytes
    value: bytes | None
    token: Hashable


class Emit(NamedTuple):
    """Siblings and the application were told."""

    event: Event


class TickEnd(NamedTuple):
    """A callback was put off to the end of the tick."""

    callback: Callable[[float], None]


class Traced(NamedTuple):
    """A row was left in the traces."""

    record: Trace


Recorded: TypeAlias = Send | Cast | SetTimer | CancelTimer | Store | Emit | TickEnd | Traced


class RecordingEffects(Effects):
    """Does nothing and remembers everything: `assert effects.drain() == [Send("b", Ping(1))]`.

    A send to several peers is recorded as one `Send` for each, in the order given.
    """

    def __init__(self) -> None:
        self.recorded: list[Recorded] = []
        self.timers: dict[Hashable, float] = {}  # what is set now
        self.backlogs: dict[NodeId, int] = {}  # what waits for links, as a test says

    def drain(self) -> list[Recorded]:
        """Return what was recorded since the last time."""
        recorded, self.recorded = self.recorded, []
        return recorded

    def send(self, to: NodeId | Sequence[NodeId], msg: Message) -> None:
        """Record it once per peer."""
        self.recorded += [Send(peer, msg) for peer in ((to,) if isinstance(to, str) else to)]

    def backlog(self, to: NodeId) -> int:
        """What the test says."""
        return self.backlogs.get(to, 0)

    def cast(self, address: UdpAddress | Group, msg: Message, reader: NodeId = "") -> None:
        """Record it."""
        self.recorded.append(Cast(address, msg, reader))

    def set_timer(self, key: Hashable, at: float) -> None:
        """Record it, and keep it in `timers`."""
        self.timers[key] = at
        self.recorded.append(SetTimer(key, at))

    def cancel_timer(self, key: Hashable) -> None:
        """Record it, and take it out of `timers`."""
        self.timers.pop(key, None)
        self.recorded.append(CancelTimer(key))

    def store(self, key: bytes, value: bytes | None, token: Hashable) -> None:
        """Record it."""
        self.recorded.append(Store(key, value, token))

    def at_tick_end(self, callback: Callable[[float], None]) -> None:
        """Record it."""
        self.recorded.append(TickEnd(callback))

    def emit(self, event: Event) -> None:
        """Record it."""
        self.recorded.append(Emit(event))

    def trace(self, record: Trace) -> None:
        """Record it."""
        self.recorded.append(Traced(record))
