"""What siblings may know of gateways, and what they declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.gateways.names import gateway_key, topic_id

__all__ = ["PATTERNS", "GatewayBook", "May", "RemoteGateway", "gateway_key", "topic_id"]

PATTERNS = "patterns"
"""The attribute, in a base zone of a member and in the management zone of a delegate, that tells
to which patterns of topics it subscribes: one on each line, perhaps wider ones than meant."""

May: TypeAlias = Callable[[NodeId, str, str], bool]
"""(name, "publish" or "subscribe", topic): whether the name's certificate, if known, allows it."""


class RemoteGateway(NamedTuple):
    """Who stands for another zone in a topic."""

    zone: Scope
    publishes: bool  # somebody in that zone does
    subscribes: bool


class GatewayBook(Protocol):
    """Which node stands for which zone in a topic, as this node knows."""

    def declare(self, topic: str, *, publishes: bool, subscribes: bool, now: float) -> None:
        """Tell what this node does with a topic, from now on; neither: it withdraws."""

    def gateway_of(self, topic: str) -> NodeId | None:
        """The topic's gateway in this node's zone; None on a node without one."""

    def is_gateway(self, topic: str) -> bool:
        """Whether this node is the topic's gateway, and somebody in the zone is interested."""

    def remote_gateways(self, topic: str) -> Mapping[NodeId, RemoteGateway]:
        """At the topic's gateway: the gateways of all other interested zones."""

    def knows_remote(self, topic: str) -> bool:
        """Whether a home that had time to hear of all told `remote_gateways`, or there is no other
        zone; false: somebody who is not in it may be interested."""

    def local_publishers(self, topic: str) -> tuple[NodeId, ...]:
        """At the topic's gateway: the members of this zone that declared to publish to it."""

    def local_subscribers(self, topic: str) -> tuple[NodeId, ...]:
        """At the topic's gateway: those that subscribe to it, by name or perhaps by pattern."""
