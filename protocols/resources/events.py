"""What resource discovery tells its node."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.ids import NodeId
from overlay.predicates import Item
from overlay.protocol import Event
from overlay.tracing import Trace
from overlay.tracing.kinds import RESOURCE_DONE, RESOURCE_REGISTERED
from protocols.resources.models import ModelType


class Resource(msgspec.Struct, frozen=True):
    """One resource that was found."""

    id: str  # OWNER/NAME
    model: ModelType  # static or dynamic
    item: Item  # its values; of a static one those that its description fixes
    description: str = ""  # of a static one: the whole of it
    epoch: int = 0
    version: int = 0
    age: float = 0.0  # s since its values were read at its broker
    hops: int = 0  # brokers on the way
    distance: float | None = None  # s, round trip to its owner, where this node knows it
    gone: bool = False  # to a find that goes on: it is registered no more

    @property
    def owner(self) -> NodeId:
        """The node that registered it."""
        return self.id.partition("/")[0]

    @property
    def name(self) -> str:
        """What its owner calls it."""
        return self.id.partition("/")[2]


class FindEnded(Event, frozen=True):
    """A dynamic find is over."""

    find: int
    host: NodeId
    resources: tuple[Resource, ...]
    complete: bool  # False: a branch was lost, or the time was over before all had answered
    reason: str  # "all answered", "limit", "timeout", "branch lost"
    duration: float

    def traces(self) -> Iterable[Trace]:
        """One row."""
        yield Trace(
            RESOURCE_DONE,
            origin=self.host,
            stream=self.find,
            hops=max((one.hops for one in self.resources), default=0),
            duration=self.duration,
            detail=self.reason,
            value=float(len(self.resources)),
        )


class ResourceFound(Event, frozen=True):
    """To a find that goes on: a resource matches, or still does with other values."""

    watch: int
    resource: Resource


class ResourceGone(Event, frozen=True):
    """To a find that goes on: a resource that it was told of is registered no more."""

    watch: int
    resource: Resource


class ResourceExpired(Event, frozen=True):
    """A resource of this node was not updated within its lease, and is registered no more."""

    name: str


class ResourceRegistered(Event, frozen=True):
    """A resource of this node can be found from now on, or no more."""

    id: str
    model: ModelType
    change: str  # "registered", "unregistered" or "expired"

    def traces(self) -> Iterable[Trace]:
        """One row."""
        yield Trace(RESOURCE_REGISTERED, key=self.id, detail=f"{self.change} {self.model}")
