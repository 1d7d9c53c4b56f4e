"""Facts about content-based routing, for siblings and applications."""

from __future__ import annotations

from typing import Any

from overlay.ids import NodeId
from overlay.predicates import Item
from overlay.protocol import Event
from protocols.content.interface import Advertised, EntryId


class AdvertisementAdded(Event, frozen=True):
    """This broker knows an advertisement that it did not know."""

    advertisement: Advertised


class AdvertisementChanged(Event, frozen=True):
    """A known one was advertised again, says something else, or has another last hop."""

    advertisement: Advertised
    before: Advertised


class AdvertisementRemoved(Event, frozen=True):
    """It was withdrawn, its publisher or the way to it is gone, or another one covers it now."""

    advertisement: Advertised


class NeighbourUp(Event, frozen=True):
    """A broker is a neighbour from now on."""

    peer: NodeId


class NeighbourDown(Event, frozen=True):
    """A broker is a neighbour no more: it left, or was silent for its lease."""

    peer: NodeId


class ClientAttached(Event, frozen=True):
    """A client has this node as its broker."""

    client: NodeId


class ClientGone(Event, frozen=True):
    """A client left or was silent for its lease: what it advertised and wanted is withdrawn."""

    client: NodeId


class BrokerAttached(Event, frozen=True):
    """This client's broker answers."""

    broker: NodeId


class BrokerLost(Event, frozen=True):
    """This client's broker is silent; it is greeted until it answers, and then told everything."""

    broker: NodeId


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
    ClientGone,
    BrokerAttached,
    BrokerLost,
    Delivered,
    EntryRefused,
)
