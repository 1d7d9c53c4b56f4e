"""What siblings may know of a zone's members: read-only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from overlay.ids import NodeId, Ring
from overlay.protocol import Scope
from protocols.membership.attributes import ROLES, Value
from protocols.membership.records import Record

__all__ = ["ROLES", "MembershipView", "Record", "Value"]


class MembershipView(Protocol):
    """The members of one zone as this node knows them."""

    @property
    def zone(self) -> Scope:
        """The zone's name."""

    @property
    def me(self) -> NodeId:
        """This node, a member itself."""

    @property
    def version(self) -> int:
        """Changes whenever a member, a state or an attribute does."""

    def __len__(self) -> int:
        """How many members are present."""

    def __contains__(self, name: object) -> bool:
        """Whether that member is present: alive or suspect."""

    def members(self) -> tuple[NodeId, ...]:
        """All who are present, clockwise on the ring."""

    def record(self, name: NodeId) -> Record | None:
        """What is known of a member, present, dead or left; None for strangers."""

    def ring(self) -> Ring:
        """The ring of all who are present; kept up to date, so do not change it."""

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        """The attributes of a member; empty for strangers."""

    def roles(self, name: NodeId) -> tuple[str, ...]:
        """What a member serves as."""
