"""Facts about a colony, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Event
from protocols.colony.interface import Card


class LeaderFound(Event, frozen=True):
    """This unit is an individual of that leader's colony now; `path` leads from it to the root."""

    leader: NodeId
    path: tuple[NodeId, ...]


class LeaderRefused(Event, frozen=True):
    """A leader does not take this unit; `reason` says why."""

    leader: NodeId
    reason: str


class LeaderLost(Event, frozen=True):
    """This unit is no individual of that leader's colony any more."""

    leader: NodeId
    reason: str


class LeaderWanted(Event, frozen=True):
    """None of the leaders that this unit knows takes it: whoever can find one may tell it."""

    tried: tuple[NodeId, ...]


class IndividualLoggedIn(Event, frozen=True):
    """A unit is an individual of this broker's colony now."""

    name: NodeId
    unit: str
    services: int


class IndividualLoggedOut(Event, frozen=True):
    """It is not any more: it left, fell silent, or was lazy."""

    name: NodeId
    reason: str


class ColonyUsed(Event, frozen=True):
    """The application offers or is about to ask something: this unit wants a colony."""


class ServantFound(Event, frozen=True):
    """A computer serves want `index` of this node's request; talk to it directly."""

    request: int
    index: int
    servant: Card
    hops: int  # the request took to get there
    after: float  # s


class ServiceRejected(Event, frozen=True):
    """Nobody (more) serves want `index`; `found` computers of those wanted do."""

    request: int
    index: int
    found: int
    reason: str  # rejected, or timed out


class RequestEnded(Event, frozen=True):
    """A request of this node is over: exactly one for each."""

    request: int
    found: int  # wants for which all instances were found
    wanted: int
    complete: bool  # False: its time ran out
    after: float  # s
