"""Members as a test wants them: a view that changes only by command, shared or of one's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import ClassVar

from overlay.ids import NodeId, Ring
from overlay.protocol import Effects, Event, OverlayProtocol, Scope
from protocols.membership.attributes import Value
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.membership.records import Record, State

ZONE: Scope = "hall"


class Roster:
    """Who is present, with which attributes, and who is gone."""

    def __init__(self, names: Iterable[NodeId], topics: Mapping[NodeId, str] | None = None) -> None:
        self.ring = Ring(names)
        self.gone: dict[NodeId, None] = {}
        self.attributes: dict[NodeId, dict[str, Value]] = {
            name: {"topics": words} for name, words in (topics or {}).items()
        }
        self.version = 0

    def add(self, name: NodeId) -> None:
        self.ring.add(name)
        self.gone.pop(name, None)
        self.version += 1

    def remove(self, name: NodeId) -> None:
        self.ring.remove(name)
        self.gone[name] = None
        self.version += 1

    def set(self, name: NodeId, key: str, value: Value) -> None:
        self.attributes.setdefault(name, {})[key] = value
        self.version += 1


class FixedView:
    """Implements `MembershipView` for one of the members."""

    __slots__ = ("me", "roster", "zone")

    def __init__(self, me: NodeId, roster: Roster) -> None:
        self.zone = ZONE
        self.me = me
        self.roster = roster

    @property
    def version(self) -> int:
        return self.roster.version

    def __len__(self) -> int:
        return len(self.roster.ring)

    def __contains__(self, name: object) -> bool:
        return name in self.roster.ring

    def members(self) -> tuple[NodeId, ...]:
        return tuple(self.roster.ring)

    def record(self, name: NodeId) -> Record | None:
        if name in self:
            return Record(name, 1, State.ALIVE, 1, 1)
        return Record(name, 1, State.DEAD, 1, 1) if name in self.roster.gone else None

    def ring(self) -> Ring:
        return self.roster.ring

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        return self.roster.attributes.get(name, {})

    def roles(self, name: NodeId) -> tuple[str, ...]:
        return ()


class FixedMembership(OverlayProtocol):
    """Tells what siblings wait for, when a test says so."""

    name: ClassVar[str] = "fixed"
    emits: ClassVar[tuple[type[Event], ...]] = (
        MemberJoined,
        MemberFailed,
        MemberLeft,
        AttributesChanged,
    )

    def __init__(self, me: NodeId, effects: Effects, rng: Random, config: Roster) -> None:
        super().__init__(me, effects, rng, config)
        self.view = FixedView(me, config)

    def tell(self, event: Event, now: float) -> None:
        self.effects.emit(event)
