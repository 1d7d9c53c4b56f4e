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
    graft: int = 0  # its publisher moved: the tree of that epoch, or a newer one, may be used

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


class Branch(NamedTuple):
    """A neighbour to which publications of an advertisement are handed on."""

    peer: NodeId
    tree: EntryId  # the cover whose tree they follow there; empty: their own
    epoch: int  # of that tree
    turns: int  # how often its part of it began or ended: what was known before is old


class MobileRouting(Protocol):
    """What a broker's routing does for clients that move: `Content.moving`."""

    def offers_of(self, client: NodeId) -> list[Advertised]:
        """What that client advertises here."""

    def stand_in(self, offer: Advertised) -> None:
        """Advertise for an absent client; its hop is this node. It counts as a publisher here."""

    def rest(self, entry: EntryId) -> None:
        """Be no source of it any more, but the anchor of its tree."""

    def step_down(self, entry: EntryId, me: NodeId) -> None:
        """Advertise it no more."""

    def is_needed(self, entry: EntryId, me: NodeId) -> bool:
        """Whether this node is the anchor of a tree that has sources."""

    def withhold(self, client: NodeId) -> None:
        """Let a client's advertisements not count, until `admit`."""

    def admit(self, client: NodeId) -> None:
        """Let them count."""

    def anchor(self, client: NodeId) -> None:
        """Build a client's trees anew from here, in its own epoch."""

    def branches(
        self, entry: EntryId, tree: EntryId, src: NodeId, *, wanting: bool = False
    ) -> list[Branch]:
        """The neighbours to which a publication that came from `src` may be handed on.

        With `wanting`, those alone that want any: where publications may be under way.
        """

    def hangs_on(self, entry: EntryId, tree: EntryId, src: NodeId) -> bool:
        """Whether this broker tells its subscriptions to `src` for the sake of that tree."""

    def has_read(self, peer: NodeId, series: int, stamp: int) -> bool:
        """Whether this node has read another's ledger up to that change."""

    def holds(self, entry: EntryId) -> bool:
        """Whether publications of it wait here for others on an older way."""

    def distances(self) -> dict[NodeId, int]:
        """How many links away other brokers are, as far as this one knows."""


class MobileContent(ContentView, Protocol):
    """What a sibling may ask of content-based routing to move a client."""

    @property
    def moving(self) -> MobileRouting:
        """A broker's part."""

    def attach(self, broker: NodeId, now: float, *, graft: bool = False, epoch: int = 0) -> None:
        """Have that broker; with `graft` it may use the trees that there are."""

    def detach(self, now: float) -> None:
        """Have no broker."""

    def next_epoch(self, now: float) -> int:
        """An epoch for the next `attach`."""

    def stand_alone(self) -> None:
        """Let every advertisement from now on have a tree of its own, that no cover moves."""

    def rooted(self, entry: EntryId, epoch: int) -> None:
        """The tree of this client's own advertisement is that of this epoch by now."""

    def hold(self, most: int) -> None:
        """Keep what this client publishes, until `let_go`."""

    def let_go(self, now: float) -> int:
        """Publish what was kept; how many."""

    def told(self, peer: NodeId) -> tuple[int, int]:
        """Send a neighbour or the broker what is new; series and stamp of the ledger."""

    def expel(self, client: NodeId, now: float) -> None:
        """A client is with another broker."""
