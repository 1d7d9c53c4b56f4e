"""Facts about the table, for siblings and applications."""

from __future__ import annotations

from overlay.protocol import Event, Scope


class TableJoined(Event, frozen=True):
    """This node knows the table: it may keep keys of it, and ask."""

    table: int
    founded: bool  # whether this node founded it


class StorageZoneAdded(Event, frozen=True):
    """A zone offers storage: shards move there."""

    zone: Scope
    slices: int


class StorageZoneRemoved(Event, frozen=True):
    """A zone offers none any more: its shards move away."""

    zone: Scope


class RebalancingProgressed(Event, frozen=True):
    """So many shards that this node leads are to get other members; 0: it is done."""

    left: int
    moved: int  # since the last time that none was left


class MajorityLost(Event, frozen=True):
    """So many shards of this node cannot be read or written now; 0: all can again."""

    shards: int
