"""One node's zones under test: views that change by command, and the recorded effects."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId, Ring
from overlay.protocol import Event, Message, Scope
from protocols.membership.attributes import Value
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.membership.records import Record, State
from protocols.zones import MANAGEMENT, Zones, ZonesSettings
from tests.recording import Emit, RecordingEffects, Send

ZONE: Scope = "hall"
SETTINGS = ZonesSettings(settle=1.0, appoint_after=0.25, dismiss_after=2.0, review_delay=0.1)


class FixedMembership:
    """Implements `ZoneMembership` and its view; remembers what it was told to do."""

    def __init__(self, zone: Scope, me: NodeId, born: int = 100) -> None:
        self.zone = zone
        self.me = me
        self.version = 0
        self.stopped = False
        self.full = False  # the application's attributes leave no room
        self.asked: list[NodeId] = []  # to be let in
        self._ring = Ring()
        self._records: dict[NodeId, Record] = {}
        self._attributes: dict[NodeId, dict[str, Value]] = {}
        self.put(me, born)

    @property
    def view(self) -> FixedMembership:
        return self

    def __len__(self) -> int:
        return len(self._ring)

    def __contains__(self, name: object) -> bool:
        return name in self._ring

    def members(self) -> tuple[NodeId, ...]:
        return tuple(self._ring)

    def ring(self) -> Ring:
        return self._ring

    def record(self, name: NodeId) -> Record | None:
        return self._records.get(name)

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        return self._attributes.get(name, {})

    def roles(self, name: NodeId) -> tuple[str, ...]:
        return tuple(filter(None, str(self.attributes(name).get("roles", "")).split(",")))

    def put(self, name: NodeId, born: int, **attributes: Value) -> None:
        self._ring.add(name)
        self._records[name] = Record(name, born, State.ALIVE, born, born, (f"tcp://{name}:1",))
        self._attributes[name] = dict(attributes)
        self.version += 1

    def drop(self, name: NodeId) -> None:
        self._ring.remove(name)
        old = self._records[name]
        self._records[name] = Record(name, old.incarnation, State.DEAD, old.life, old.born)
        self.version += 1

    def set_attribute(self, key: str, value: Value, now: float) -> None:
        assert not self.stopped
        if self.full:
            raise LocalProtocolError(f"attribute {key!a}: a member may have at most 128 keys")
        self._attributes[self.me][key] = value
        self.version += 1

    def remove_attribute(self, key: str, now: float) -> None:
        assert not self.stopped
        del self._attributes[self.me][key]
        self.version += 1

    def join(self, contacts: tuple[NodeId, ...], now: float, *, tries: int = -1) -> None:
        self.asked += contacts


class ZonesNode:
    """Runs `Zones` of "me", a member of the zone "hall", or a supervisor."""

    def __init__(
        self,
        *,
        base: bool = True,
        born: int = 100,
        settings: ZonesSettings = SETTINGS,
        kept: Mapping[bytes, bytes] | None = None,
        **views: Any,
    ) -> None:
        self.now = 0.0
        self.effects = RecordingEffects()
        self.base = FixedMembership(ZONE, "me", born)
        self.management = FixedMembership(MANAGEMENT, "me", born)
        self.zones = Zones(
            "me", self.effects, Random(1), settings, base=self.base if base else None, **views
        )
        self.zones.on_start(0.0, kept or {})

    # -- inputs ---------------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        self.zones.event_handlers()[type(event)](event, self.now)
        self.zones.check_invariants()

    def receive(self, src: NodeId, msg: Message) -> None:
        self.zones.message_handlers()[type(msg)](src, msg, self.now)
        self.zones.check_invariants()

    def joins(self, name: NodeId, born: int, *, manager: bool = False, **said: Value) -> None:
        where = self.management if manager else self.base
        where.put(name, born, **said)
        self.hear(MemberJoined(where.zone, name, born))
        if said:
            self.hear(AttributesChanged(where.zone, name, tuple(said)))

    def says(self, name: NodeId, *, manager: bool = False, **said: Value) -> None:
        where = self.management if manager else self.base
        record = where.record(name)
        assert record is not None
        where.put(name, record.born, **{**where.attributes(name), **said})
        self.hear(AttributesChanged(where.zone, name, tuple(said)))

    def fails(self, name: NodeId, *, manager: bool = False) -> None:
        where = self.management if manager else self.base
        where.drop(name)
        self.hear(MemberFailed(where.zone, name))

    def leaves(self, name: NodeId) -> None:
        self.base.drop(name)
        self.hear(MemberLeft(self.base.zone, name))

    def delegate_of(self, zone: Scope, name: NodeId, size: int = 1, born: int = 100) -> None:
        """Somebody in the management zone stands for a zone."""
        self.joins(name, born, manager=True, roles="delegate", zone=zone, size=size, summary="")

    def pass_time(self, seconds: float) -> None:
        """Fire what comes due, each at its time."""
        end = self.now + seconds
        while self.effects.timers:
            key, at = min(self.effects.timers.items(), key=lambda timer: timer[1])
            if at > end:
                break
            self.now = max(self.now, at)
            del self.effects.timers[key]
            self.zones.on_timer(key, self.now)
            self.zones.check_invariants()
        self.now = end

    def enter(self) -> None:
        """The recipe starts the membership of the management zone."""
        for key, value in self.zones.presentation().items():
            self.management.set_attribute(key, value, self.now)
        self.zones.enter_management(self.management, self.now)
        self.zones.check_invariants()

    def serve(self) -> None:
        """Become a delegate, in the management zone; forget what was done so far."""
        self.pass_time(2.0)
        assert self.zones.is_delegate
        self.enter()
        self.effects.drain()

    def serves(self) -> bool:
        """Whether it is a delegate now."""
        return self.zones.is_delegate

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
