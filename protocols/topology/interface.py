"""What siblings may know of a zone's links: read-only."""

from __future__ import annotations

from typing import Protocol

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.topology.interests import TOPICS, interests
from protocols.topology.kinds import Kind

__all__ = ["TOPICS", "Kind", "TopologyView", "interests"]


class TopologyView(Protocol):
    """The links of this node in one zone."""

    @property
    def zone(self) -> Scope:
        """The zone's name."""

    @property
    def version(self) -> int:
        """Changes whenever a neighbour comes or goes."""

    @property
    def degree(self) -> int:
        """How many neighbours there are."""

    def neighbours(self) -> tuple[NodeId, ...]:
        """All with whom this node agreed on a link, the oldest link first."""

    def is_neighbour(self, peer: NodeId) -> bool:
        """Whether a link to that member is up."""

    def kinds(self, peer: NodeId) -> Kind:
        """Why the two are linked, in the eyes of either; `Kind.NONE` without a link."""
