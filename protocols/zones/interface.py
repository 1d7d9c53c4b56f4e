"""What siblings and applications may know of zones, and what zones need of a membership."""

from __future__ import annotations

from typing import Annotated, Protocol, TypeAlias

import msgspec

from overlay.ids import NodeId, WireName
from overlay.protocol import Scope
from protocols.membership.interface import MembershipView
from protocols.zones.naming import MANAGEMENT, WireZone, check_zone_name, is_zone_name

__all__ = [
    "DELEGATE",
    "MANAGEMENT",
    "SUPERVISOR",
    "MemberEntry",
    "ZoneDirectory",
    "ZoneEntry",
    "ZoneMembership",
    "check_zone_name",
    "is_zone_name",
]

DELEGATE = "delegate"
"""The role, in its base zone and in the management zone, of who stands for its zone."""
SUPERVISOR = "supervisor"
"""The role, in the management zone, of who looks after zones that it is no member of."""

MAX_NAMED = 8  # delegates or supervisors of one zone that travel
MAX_ENDPOINTS = 8
MAX_SIZE = 1_000_000
SUMMARY_CHARACTERS = 512

Named: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_NAMED)]
Endpoints: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=256)], ...],
    msgspec.Meta(max_length=MAX_ENDPOINTS),
]


class ZoneEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One zone as the management zone knows it."""

    name: WireZone
    size: Annotated[int, msgspec.Meta(ge=0, le=MAX_SIZE)]  # members, as its delegates say
    delegates: Named = ()  # the most senior first; none: they are all gone for the moment
    supervisors: Named = ()
    summary: Annotated[str, msgspec.Meta(max_length=SUMMARY_CHARACTERS)] = ""  # "broker:2,dht:9"


class MemberEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One member of a zone, as an answer to `ask_members` tells it."""

    name: WireName
    born: Annotated[int, msgspec.Meta(ge=0, le=1 << 42)]  # tells two lives of one name apart
    endpoints: Endpoints = ()


class ZoneMembership(Protocol):
    """What zones need of the membership of one zone; `Membership` is one."""

    @property
    def view(self) -> MembershipView:
        """The members."""

    @property
    def stopped(self) -> bool:
        """Whether this node is no member (any more)."""

    def join(self, contacts: tuple[NodeId, ...], now: float, *, tries: int = -1) -> None:
        """Ask these members, too, to let this node in; so often, or until they answer."""

    def set_attribute(self, key: str, value: str | float | bool, now: float) -> None:
        """Set an attribute of this node."""

    def remove_attribute(self, key: str, now: float) -> None:
        """Remove one that is set."""


class ZoneDirectory(Protocol):
    """The zones of the overlay, as this node knows them."""

    @property
    def zone(self) -> Scope:
        """The base zone of this node; empty on a supervisor."""

    @property
    def is_delegate(self) -> bool:
        """Whether this node stands for its zone."""

    @property
    def delegates(self) -> tuple[NodeId, ...]:
        """The delegates of this node's zone, the most senior first."""

    @property
    def management(self) -> ZoneMembership | None:
        """The membership of the management zone, while this node is in it: a delegate's sibling
        may read its view and set attributes of its own there."""

    def zones(self) -> tuple[ZoneEntry, ...]:
        """All zones, by name; on a plain member as its delegate told last."""

    def refresh(self, now: float) -> None:
        """Have a plain member ask its delegate for news of other zones at once."""

    def ask_members(self, zone: Scope, now: float) -> int:
        """Ask who is in a zone; ZoneMembersKnown or ZoneMembersUnknown carries the id returned."""
