"""What siblings may know of and ask from content-based routing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from overlay.ids import NodeId
from overlay.predicates import Constraint, Item

EntryId: TypeAlias = str
"""OWNER/NAME of an advertisement or a subscription: who made it, and what it is called there."""

MayBe: TypeAlias = Callable[[NodeId, str], bool]
"""Whether that name's certificate allows the role "broker"."""


def anybody(_name: NodeId, _role: str) -> bool:
    """Where nobody has certificates."""
    return True


def entry_id(owner: NodeId, name: str) -> EntryId:
    """The id of what `owner` calls `name`."""
    return f"{owner}/{name}"


def owner_of(entry: EntryId) -> NodeId:
    """Who advertised or subscribed."""
    return entry.partition("/")[0]


class Advertised(NamedTuple):
    """An advertisement, as one broker knows it: a row of its SRT."""

    id: EntryId
    epoch: int
    constraint: Constraint
    model: str
    whole: bool
    note: bytes
    hop: NodeId  # the last hop: this node itself, a client of it, or a neighbour
    path: tuple[NodeId, ...] = ()  # the brokers on the way, from the last hop on

    @property
    def publisher(self) -> NodeId:
        """The node that advertised it."""
        return owner_of(self.id)


class Subscribed(NamedTuple):
    """A subscription that came from one hop: a row of the PRT."""

    id: EntryId
    constraint: Constraint
    model: str
    hop: NodeId
    path: tuple[NodeId, ...] = ()


class ContentView(Protocol):
    """The routing tables of one node: read-only. A client's SRT has only its own entries."""

    @property
    def is_broker(self) -> bool:
        """Whether this node routes for others; else it is a client."""

    @property
    def broker(self) -> NodeId | None:
        """Whom this node asks: itself if it is a broker, its broker while that answers, or None."""

    def neighbours(self) -> tuple[NodeId, ...]:
        """The brokers that this broker is linked to and hears from."""

    def clients(self) -> tuple[NodeId, ...]:
        """The nodes that have this one as their broker."""

    def is_client(self, hop: NodeId) -> bool:
        """Whether that last hop is no broker: this node's own application, or a client."""

    def advertisement(self, entry: EntryId) -> Advertised | None:
        """The advertisement with that id, if it is known here."""

    def advertisements(
        self, constraint: Constraint | None = None, model: str = ""
    ) -> Iterator[Advertised]:
        """Those of that model that intersect the constraint; with None: all of that model."""

    def subscriptions(self, hop: NodeId | None = None) -> Iterator[Subscribed]:
        """The PRT, or the part of it that came from one hop."""


class ContentRouter(ContentView, Protocol):
    """What a sibling may ask for. Names are this node's own: ids are `entry_id(me, name)`."""

    def advertise(
        self,
        name: str,
        constraint: Constraint,
        now: float,
        *,
        model: str = "",
        note: bytes = b"",
        whole: bool = False,
    ) -> EntryId:
        """Announce what will be published; with `whole` every broker gets to know it.

        Without it a broker is not told of what another advertisement covers. The same name again
        replaces what was advertised, and begins a new epoch unless nothing changed.
        """

    def unadvertise(self, name: str, now: float) -> None:
        """Withdraw it; LocalProtocolError when there is none of that name."""

    def subscribe(
        self, name: str, constraint: Constraint, now: float, *, model: str = ""
    ) -> EntryId:
        """Want every publication of that model that matches: `Delivered` follows for each."""

    def unsubscribe(self, name: str, now: float) -> None:
        """Want it no more; LocalProtocolError when there is none of that name."""

    def publish(self, name: str, item: Item, now: float) -> int:
        """Publish under that advertisement, and return the sequence number.

        LocalProtocolError when the advertisement does not determine the item.
        """
