"""Facts about what was routed, broadcast and summed up, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.ids import NodeId, Vid
from overlay.protocol import Event, Scope
from overlay.tracing import Trace
from overlay.tracing.kinds import BROADCAST_DONE, ROUTE_ARRIVED, ROUTE_FAILED, ROUTED
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

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                ROUTE_ARRIVED,
                origin=self.origin,
                stream=self.id,
                hops=self.hops,
                bytes=len(self.payload),
                detail=self.service,
                key=f"{self.key:032x}",
            ),
        )


class Routed(Event, frozen=True):
    """What this node routed arrived at `by`."""

    zone: Scope
    id: int
    by: NodeId
    hops: int

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(ROUTED, self.by, stream=self.id, hops=self.hops),)


class RouteFailed(Event, frozen=True):
    """What this node routed did not arrive in time, or nobody could tell that it did."""

    zone: Scope
    id: int
    reason: str  # of the last try, or "timeout"

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(ROUTE_FAILED, stream=self.id, detail=self.reason),)


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

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                BROADCAST_DONE,
                stream=self.id,
                count=max(1, self.reached),
                value=float(self.missing),
                hops=self.depth,
            ),
        )


class AggregateDone(Event, frozen=True):
    """What this node asked for; it leaves out the members who are missing."""

    zone: Scope
    id: int
    name: str
    aggregate: Aggregate
    reached: int
    missing: int
    depth: int

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                BROADCAST_DONE,
                stream=self.id,
                count=max(1, self.reached),
                value=float(self.missing),
                hops=self.depth,
            ),
        )
