"""Facts about this node's links, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Event, Scope
from protocols.topology.kinds import Kind


class NeighbourAdded(Event, frozen=True):
    """Both ends agreed on a link."""

    zone: Scope
    peer: NodeId
    kinds: Kind


class NeighbourRemoved(Event, frozen=True):
    """The link is over."""

    zone: Scope
    peer: NodeId
    kinds: Kind
    reason: str  # "failed", "left", "dropped", "silent", "unwanted", "full"
