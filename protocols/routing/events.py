"""Facts about what was routed, broadcast and summed up, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId, Vid
from overlay.protocol import Event, Scope
from protocols.routing.aggregates import Aggregate


class RouteArrived(Event, frozen=True):
    """This node is responsible for `key`, and got this message for it."""

    zone: Scope
    key: Vid
    origin: NodeId
    id: int
    payload: bytes
    hops: int
    service: str = ""


class Routed(Event, frozen=True):
    """What this node routed arrived at `by`."""

    zone: Scope
    id: int
    by: NodeId
    hops: int


class RouteFailed(Event, frozen=True):
    """What this node routed did not arrive in time, or nobody could tell that it did."""

    zone: Scope
    id: int
    reason: str  # of the last try, or "timeout"


class BroadcastArrived(Event, frozen=True):
    """This node got a broadcast, for the first time; its own included."""

    zone: Scope
    origin: NodeId
    id: int
    payload: bytes
    hops: int
    service: str = ""


class BroadcastDone(Event, frozen=True):
    """What this node broadcast has reached so many members, and not those who are missing."""

    zone: Scope
    id: int
    reached: int
    missing: int
    depth: int  # the most hops to anybody


class AggregateDone(Event, frozen=True):
    """What this node asked for; it leaves out the members who are missing."""

    zone: Scope
    id: int
    name: str
    aggregate: Aggregate
    reached: int
    missing: int
    depth: int
