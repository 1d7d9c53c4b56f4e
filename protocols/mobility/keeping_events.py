"""Facts about mobility, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overlay.ids import NodeId
from overlay.predicates import Item
from overlay.protocol import Event
from overlay.tracing import Trace
from overlay.tracing.kinds import KEPT_FOR, KEPT_GAP


class Received(Event, frozen=True):
    """A publication matches a subscription of this mobile node; it comes once, and in order."""

    subscription: str  # as this node calls it
    advertisement: str  # OWNER/NAME of what its publisher advertised
    epoch: int
    sequence: int
    item: Item

    @property
    def publisher(self) -> NodeId:
        """The node that published it."""
        return self.advertisement.partition("/")[0]


class Gap(Event, frozen=True):
    """Publications of this node's subscriptions are lost, here in their order."""

    lost: int  # at least so many; 0: nobody knows
    reason: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(KEPT_GAP, count=self.lost, detail=self.reason),)


class Settled(Event, frozen=True):
    """A broker keeps for this subscriber from now on."""

    broker: NodeId
    visit: int


class NotKept(Event, frozen=True):
    """A broker does not keep for this subscriber."""

    broker: NodeId
    reason: str


class SubscriberAway(Event, frozen=True):
    """A subscriber of this broker went away or is silent: what matches is kept."""

    client: NodeId
    silent: bool  # it said nothing

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(KEPT_FOR, self.client, detail="silent" if self.silent else "away"),)


class SubscriberBack(Event, frozen=True):
    """It takes again, at this broker."""

    client: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(KEPT_FOR, self.client, detail="back"),)


class BoxHandedOver(Event, frozen=True):
    """Everything that was kept for a subscriber is at the broker where it is now."""

    client: NodeId
    broker: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(KEPT_FOR, self.client, origin=self.broker, detail="handed over"),)


class BoxExpired(Event, frozen=True):
    """A subscriber did not come back: what was kept for it is gone."""

    client: NodeId
    kept: int

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(KEPT_FOR, self.client, count=self.kept, detail="expired"),)


SUBSCRIBER_EVENTS: tuple[Any, ...] = (Received, Gap, Settled, NotKept)
KEEPER_EVENTS: tuple[Any, ...] = (SubscriberAway, SubscriberBack, BoxHandedOver, BoxExpired)
