"""Small protocols that make the simulator's doings visible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from overlay.errors import InvariantViolation
from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    DatagramHandler,
    Event,
    EventHandler,
    Group,
    Handler,
    LinkLost,
    LinkUp,
    Message,
    Origin,
    OverlayProtocol,
    UdpAddress,
)

LAN = Group("239.1.1.1", 7400)


class Note(Message, frozen=True, tag=60001):
    number: int
    payload: bytes = b""


class Heap(Message, frozen=True, tag=60003):
    bulk: ClassVar[bool] = True
    number: int
    payload: bytes = b""


class Beacon(Message, frozen=True, tag=60002):
    number: int


class Witness(OverlayProtocol):
    """Remembers all that reaches it, with the time, and does what it is told."""

    name: ClassVar[str] = "witness"
    messages: ClassVar[tuple[type[Message], ...]] = (Note, Beacon, Heap)
    emits: ClassVar[tuple[type[Event], ...]] = (ContactLearned,)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.notes: list[int] = []
        self.heaps: list[int] = []
        self.order: list[int] = []  # of both
        self.heard: list[tuple[float, NodeId, int]] = []
        self.beacons: list[tuple[NodeId, int]] = []
        self.links: list[tuple[str, NodeId]] = []
        self.fired: list[tuple[Hashable, float]] = []
        self.stored: list[Hashable] = []
        self.kept: Mapping[bytes, bytes] = {}
        self.broken = False
        self.stopped_with: NodeId = ""

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        return {Note: self._on_note, Heap: self._on_heap}

    def datagram_handlers(self) -> Mapping[type[Message], DatagramHandler]:
        return {Beacon: self._on_beacon}

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        return {LinkUp: self._on_link_up, LinkLost: self._on_link_lost}

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        self.kept = dict(kept)

    def on_timer(self, key: Hashable, now: float) -> None:
        self.fired.append((key, now))

    def on_stored(self, token: Hashable, now: float) -> None:
        self.stored.append(token)

    def on_stop(self, now: float) -> None:
        if self.stopped_with:
            self.effects.send(self.stopped_with, Note(-1))

    def check_invariants(self) -> None:
        if self.broken:
            raise InvariantViolation(f"{self.me} was broken on purpose")

    def _on_note(self, src: NodeId, msg: Note, now: float) -> None:
        self.notes.append(msg.number)
        self.order.append(msg.number)
        self.heard.append((now, src, msg.number))

    def _on_heap(self, src: NodeId, msg: Heap, now: float) -> None:
        self.heaps.append(msg.number)
        self.order.append(msg.number)

    def _on_beacon(self, origin: Origin, msg: Beacon, now: float) -> None:
        assert origin.arrived_at == now
        self.beacons.append((origin.name, msg.number))

    def _on_link_up(self, event: LinkUp, now: float) -> None:
        self.links.append(("up", event.peer))

    def _on_link_lost(self, event: LinkLost, now: float) -> None:
        self.links.append(("lost", event.peer))

    # -- commands -----------------------------------------------------------------------------

    def tell(self, peer: NodeId, number: int, now: float) -> None:
        self.effects.send(peer, Note(number))

    def tell_much(self, peer: NodeId, size: int, now: float) -> None:
        self.effects.send(peer, Note(size, bytes(size)))

    def heave(self, peer: NodeId, number: int, size: int, now: float) -> None:
        self.effects.send(peer, Heap(number, bytes(size)))

    def shout(self, number: int, now: float) -> None:
        self.effects.cast(LAN, Beacon(number))

    def whisper(self, peer: NodeId, number: int, now: float) -> None:
        self.effects.cast(UdpAddress(peer, 1), Beacon(number))

    def remind(self, key: Hashable, after: float, now: float) -> None:
        self.effects.set_timer(key, now + after)

    def forget(self, key: Hashable, now: float) -> None:
        self.effects.cancel_timer(key)

    def keep(self, key: bytes, value: bytes | None, now: float) -> None:
        self.effects.store(key, value, key)

    def learn(self, peer: NodeId, now: float) -> None:
        self.effects.emit(ContactLearned(peer, (f"sim://{peer}",)))


def witness(host: Host) -> None:
    """A node with nothing but a witness."""
    host.add(Witness, None)
