"""Replica groups: who keeps a shard, how many of them must agree, and whose ballot is whose."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import NodeId, WireName
from overlay.protocol import Scope

MOST_MEMBERS = 14
LARGEST = (1 << 63) - 1
VERSION_BITS, ROUND_BITS, PLACE_BITS = 31, 24, 8

Life: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << VERSION_BITS) - 1)]
Zone: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]
Endpoints: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=256)], ...],
    msgspec.Meta(max_length=8),
]


class Member(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One life of one server: after it lost its memory it is somebody else."""

    name: WireName
    life: Life
    zone: Zone
    endpoints: Endpoints = ()  # where peers of other zones reach it

    def same(self, other: Member) -> bool:
        """Whether both mean the same life; endpoints may differ."""
        return self.name == other.name and self.life == other.life


Members: TypeAlias = Annotated[tuple[Member, ...], msgspec.Meta(max_length=MOST_MEMBERS)]


class Group(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The replicas of a shard from one version on; the preferred leader is the first."""

    version: Version
    members: Members

    def place(self, name: NodeId) -> int:
        """The place of a member by its name; -1: it is none."""
        for at, member in enumerate(self.members):
            if member.name == name:
                return at
        return -1

    def names(self) -> tuple[NodeId, ...]:
        """All names, in order."""
        return tuple(member.name for member in self.members)

    @property
    def majority(self) -> int:
        """More than half."""
        return len(self.members) // 2 + 1

    def is_majority(self, names: Collection[NodeId]) -> bool:
        """Whether these members are more than half of the group."""
        return sum(member.name in names for member in self.members) >= self.majority

    def suffices(self, names: Collection[NodeId], quorum: int) -> bool:
        """Whether a write that these members have may be acknowledged: a majority, `quorum` of
        them, and, where the group lies in several zones, at least two of those."""
        have = [member for member in self.members if member.name in names]
        if len(have) < max(self.majority, min(quorum, len(self.members))):
            return False
        return len({member.zone for member in have}) > 1 or len(self.zones()) < 2

    def zones(self) -> dict[Scope, int]:
        """How many members lie in each zone."""
        counts: dict[Scope, int] = {}
        for member in self.members:
            counts[member.zone] = counts.get(member.zone, 0) + 1
        return counts


def ballot_of(version: int, turn: int, place: int) -> int:
    """The ballot of the member at `place` in its group's round `turn`: nobody else's."""
    return (version << ROUND_BITS | turn) << PLACE_BITS | place


def place_of(ballot: int) -> int:
    """Whose ballot it is, as a place in its group."""
    return ballot & ((1 << PLACE_BITS) - 1)


def version_of(ballot: int) -> int:
    """The version of the group that it belongs to."""
    return ballot >> (ROUND_BITS + PLACE_BITS)


def next_ballot(promised: int, version: int, place: int) -> int:
    """The lowest ballot of that member over everything promised."""
    turn = 1
    if version_of(promised) == version:
        turn = (promised >> PLACE_BITS & ((1 << ROUND_BITS) - 1)) + 1
    return ballot_of(version, turn, place)
