"""Facts about gateways and topics, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId, Vid
from overlay.protocol import Event, Scope
from overlay.tracing import Trace
from overlay.tracing.kinds import GATEWAY_APPOINTED, GATEWAY_DISMISSED


class GatewayMoved(Event, frozen=True):
    """Another member of this zone is the gateway of a topic that this node declared."""

    topic: str
    gateway: NodeId


class GatewayAppointed(Event, frozen=True):
    """This node is the gateway of a topic from now on: its zone is interested."""

    topic: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(GATEWAY_APPOINTED, topic=self.topic),)


class GatewayDismissed(Event, frozen=True):
    """It is so no more: nobody in the zone is interested, or another member took over."""

    topic: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(GATEWAY_DISMISSED, topic=self.topic),)


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
