"""Facts about gateways and topics, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId, Vid
from overlay.protocol import Event, Scope


class GatewayMoved(Event, frozen=True):
    """Another member of this zone is the gateway of a topic that this node declared."""

    topic: str
    gateway: NodeId


class GatewayAppointed(Event, frozen=True):
    """This node is the gateway of a topic from now on: its zone is interested."""

    topic: str


class GatewayDismissed(Event, frozen=True):
    """It is so no more: nobody in the zone is interested, or another member took over."""

    topic: str


class GatewaysChanged(Event, frozen=True):
    """At a topic's gateway: its gateways in other zones or its parties in this one changed."""

    topic: str


class TopicKnown(Event, frozen=True):
    """The answer to question `id`."""

    id: int
    topic_id: Vid
    name: str
    zones: tuple[Scope, ...]  # that are interested, by name


class TopicUnknown(Event, frozen=True):
    """Question `id` has no answer; `reason` says why."""

    id: int
    topic_id: Vid
    reason: str
