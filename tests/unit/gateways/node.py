"""One node's gateways under test: views and a directory that change by command."""

from __future__ import annotations

from random import Random
from typing import Any

from overlay.ids import NodeId
from overlay.protocol import Event, Message, Scope
from protocols.gateways import Gateways, GatewaysSettings
from protocols.gateways.ledger import Book, Stake, key_for, line_hash, packed
from protocols.gateways.messages import LedgerChange, LedgerDigest, Line, Party
from protocols.membership.attributes import Value
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.zones.events import DelegateAppointed, ZoneAppeared, ZoneVanished
from protocols.zones.interface import MANAGEMENT, ZoneEntry
from tests.recording import Emit, RecordingEffects, Send
from tests.unit.zones.node import FixedMembership

ZONE: Scope = "hall"
SETTINGS = GatewaysSettings(
    batch_delay=0.02, confirm=1.0, refresh=5.0, linger=15.0, expire=20.0, review_delay=0.1
)


class FixedDirectory:
    """Implements `ZoneDirectory`."""

    def __init__(self, me: NodeId, zone: Scope) -> None:
        self.me = me
        self.zone = zone
        self.delegates: tuple[NodeId, ...] = ()
        self.management: FixedMembership | None = None
        self.table: dict[Scope, ZoneEntry] = {}
        self.refreshed = 0

    @property
    def is_delegate(self) -> bool:
        return self.me in self.delegates

    def zones(self) -> tuple[ZoneEntry, ...]:
        return tuple(self.table[name] for name in sorted(self.table))

    def refresh(self, now: float) -> None:
        self.refreshed += 1

    def ask_members(self, zone: Scope, now: float) -> int:
        raise AssertionError("gateways ask nobody for members")


class GatewaysNode:
    """`me`, in zone `hall` unless it is a supervisor, with the views that a test gives it."""

    def __init__(
        self, *, base: bool = True, settings: GatewaysSettings = SETTINGS, **views: Any
    ) -> None:
        self.now = 0.0
        self.effects = RecordingEffects()
        self.base = FixedMembership(ZONE, "me")
        self.management = FixedMembership(MANAGEMENT, "me")
        self.zones = FixedDirectory("me", ZONE if base else "")
        self.gateways = Gateways(
            "me",
            self.effects,
            Random(1),
            settings,
            base=self.base if base else None,
            zones=self.zones,
            **views,
        )
        self.gateways.on_start(0.0, {})
        self.stamp = 1000

    # -- inputs ---------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        self.gateways.event_handlers()[type(event)](event, self.now)
        self.gateways.check_invariants()

    def receive(self, src: NodeId, msg: Message) -> None:
        self.gateways.message_handlers()[type(msg)](src, msg, self.now)
        self.gateways.check_invariants()

    def joins(self, *names: NodeId, manager: bool = False, **said: Value) -> None:
        where = self.management if manager else self.base
        for name in names:
            where.put(name, 100, **said)
            self.hear(MemberJoined(where.zone, name, 100))
            self.hear(AttributesChanged(where.zone, name, tuple(said)))

    def says(self, name: NodeId, *, manager: bool = False, **said: Value) -> None:
        where = self.management if manager else self.base
        where.put(name, 100, **{**where.attributes(name), **said})
        self.hear(AttributesChanged(where.zone, name, tuple(said)))

    def fails(self, name: NodeId, *, manager: bool = False) -> None:
        where = self.management if manager else self.base
        where.drop(name)
        self.hear(MemberFailed(where.zone, name))

    def leaves(self, name: NodeId) -> None:
        self.base.drop(name)
        self.hear(MemberLeft(ZONE, name))

    def delegates(self, *names: NodeId) -> None:
        self.zones.delegates = names
        self.hear(DelegateAppointed(ZONE, names[0] if names else ""))

    def zone(self, name: Scope, *delegates: NodeId) -> None:
        """The directory shows a zone."""
        entry = ZoneEntry(name, 1, delegates)
        self.zones.table[name] = entry
        self.hear(ZoneAppeared(entry))

    def zone_ends(self, name: Scope) -> None:
        del self.zones.table[name]
        self.hear(ZoneVanished(name))

    def enter(self) -> None:
        """This node is in the management zone."""
        if self.zones.zone:
            self.management.put("me", 100, zone=self.zones.zone)
        self.zones.management = self.management
        self.hear(MemberJoined(MANAGEMENT, "me", 100))

    def leave_management(self) -> None:
        self.zones.management = None
        self.delegates()

    def declare(self, topic: str, publishes: bool = False, subscribes: bool = False) -> None:
        self.gateways.declare(topic, publishes=publishes, subscribes=subscribes, now=self.now)
        self.gateways.check_invariants()

    def told(
        self, src: NodeId, book: Book, *lines: tuple[str, int], by: Party | None = None
    ) -> None:
        """A peer's ledger changed."""
        self.stamp += 1
        index = -1 if by is None else 0
        parties = () if by is None else (by,)
        written = tuple(Line(topic, flags, index) for topic, flags in lines)
        self.receive(src, LedgerChange(book, self.stamp, written, parties))

    def pass_time(self, seconds: float) -> None:
        """Fire what comes due, each at its time."""
        end = self.now + seconds
        while self.effects.timers:
            key, at = min(self.effects.timers.items(), key=lambda timer: timer[1])
            if at > end:
                break
            self.now = max(self.now, at)
            del self.effects.timers[key]
            self.gateways.on_timer(key, self.now)
            self.gateways.check_invariants()
        self.now = end

    def settle(self) -> None:
        """Let reviews and batches pass, and forget what was done so far."""
        self.pass_time(0.3)
        self.effects.drain()

    # -- outputs --------------------------------------------------------------------------------

    def sent(self, kind: type[Message] | None = None) -> list[Send]:
        """What was sent since the last look; everything else is forgotten."""
        return [
            effect
            for effect in self.effects.drain()
            if isinstance(effect, Send) and (kind is None or isinstance(effect.msg, kind))
        ]

    def events(self) -> list[Event]:
        return [effect.event for effect in self.effects.drain() if isinstance(effect, Emit)]


def party(name: NodeId, zone: Scope) -> Party:
    """A gateway of another zone, and where it is."""
    return Party(name, zone, (f"tcp://{name}:1",))


def digest(book: Book, *lines: tuple[str, int], by: Party | None = None) -> LedgerDigest:
    """The digest of a ledger with these lines."""
    total = 0
    for topic, flags in lines:
        total ^= line_hash(key_for(topic, by.gateway if by else ""), Stake(flags, by))
    return LedgerDigest(book, len(lines), packed(total))
