"""Facts about clients that move, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overlay.ids import NodeId
from overlay.protocol import Event
from overlay.tracing import Trace
from overlay.tracing.kinds import MOVED_IN, MOVED_OUT, TREE_READY


class MovedOut(Event, frozen=True):
    """This client left its broker."""

    broker: NodeId
    algorithm: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MOVED_OUT, self.broker, detail=self.algorithm),)


class MovedIn(Event, frozen=True):
    """This client turned to a broker; it may not have answered yet."""

    broker: NodeId
    previous: NodeId
    number: int
    algorithm: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(MOVED_IN, self.broker, stream=self.number, detail=self.algorithm),)


class TreeStands(Event, frozen=True):
    """The trees of this client stand at its new broker, and what it held is published: t4 is over.

    With `complete` false somebody did not answer in time.
    """

    broker: NodeId
    number: int
    complete: bool
    waited: float  # s since `movein`
    held: int  # publications that waited

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                TREE_READY,
                self.broker,
                stream=self.number,
                count=self.held,
                duration=self.waited,
                detail="complete" if self.complete else "incomplete",
            ),
        )


class MoveUnanswered(Event, frozen=True):
    """A broker has not said for `patience` that the trees stand; it is asked further.

    In lossless handover publications are held until it does, or until `movein` elsewhere.
    """

    broker: NodeId
    number: int


class ClientMovedOut(Event, frozen=True):
    """A client of this broker leaves; its entries are still in the tables."""

    client: NodeId


class ClientMovedIn(Event, frozen=True):
    """A client moved in at this broker; `previous` is empty if it was nowhere."""

    client: NodeId
    previous: NodeId


EVENTS: tuple[Any, ...] = (
    *(MovedOut, MovedIn, TreeStands, MoveUnanswered),
    *(ClientMovedOut, ClientMovedIn),
)
