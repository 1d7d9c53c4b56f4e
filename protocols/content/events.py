"""Facts about content-based routing, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overlay.ids import NodeId
from overlay.predicates import Item
from overlay.protocol import Event
from overlay.tracing import Trace
from overlay.tracing.kinds import CONTENT_ADVERTISED, CONTENT_LINKED
from protocols.content.interface import Advertised, EntryId


def _advertised(one: Advertised, detail: str) -> Trace:
    return Trace(
        CONTENT_ADVERTISED,
        one.hop,
        origin=one.publisher,
        key=one.id,
        hops=len(one.path),
        detail=detail,
    )


class AdvertisementAdded(Event, frozen=True):
    """This broker knows an advertisement that it did not know."""

    advertisement: Advertised

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (_advertised(self.advertisement, "added"),)


class AdvertisementChanged(Event, frozen=True):
    """A known one was advertised again, says something else, or has another last hop."""

    advertisement: Advertised
    before: Advertised

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (_advertised(self.advertisement, "changed"),)


class AdvertisementRemoved(Event, frozen=True):
    """It was withdrawn, its publisher or the way to it is gone, or another one covers it now."""

    advertisement: Advertised

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (_advertised(self.advertisement, "removed"),)


class NeighbourUp(Event, frozen=True):
    """A broker is a neighbour from now on."""

    peer: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.peer, detail="neighbour up"),)


class NeighbourDown(Event, frozen=True):
    """A broker is a neighbour no more: it left, or was silent for its lease."""

    peer: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.peer, detail="neighbour down"),)


class ClientAttached(Event, frozen=True):
    """A client has this node as its broker."""

    client: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.client, detail="client up"),)


class ClientGone(Event, frozen=True):
    """A client left or was silent for its lease: what it advertised and wanted is withdrawn."""

    client: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.client, detail="client down"),)


class ClientTold(Event, frozen=True):
    """This broker has read all that a client advertises and wants."""

    client: NodeId


class BrokerAttached(Event, frozen=True):
    """This client's broker answers."""

    broker: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.broker, detail="broker up"),)


class BrokerLost(Event, frozen=True):
    """This client's broker is silent; it is greeted until it answers, and then told everything."""

    broker: NodeId

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(CONTENT_LINKED, self.broker, detail="broker down"),)


class Delivered(Event, frozen=True):
    """A publication matches a subscription of this node."""

    subscription: EntryId
    advertisement: EntryId  # OWNER/NAME of what its publisher advertised
    epoch: int
    sequence: int
    item: Item
    hops: int = 0

    @property
    def publisher(self) -> NodeId:
        """The node that published it."""
        return self.advertisement.partition("/")[0]


class EntryRefused(Event, frozen=True):
    """A broker does not take an advertisement or a subscription of this node, or the node."""

    broker: NodeId
    reason: str
    id: EntryId = ""


EVENTS: tuple[Any, ...] = (
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
    NeighbourUp,
    NeighbourDown,
    ClientAttached,
    ClientTold,
    ClientGone,
    BrokerAttached,
    BrokerLost,
    Delivered,
    EntryRefused,
)
