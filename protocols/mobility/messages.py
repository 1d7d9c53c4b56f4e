"""What moving clients and their brokers tell each other (table: the package's docstring)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName
from overlay.predicates import WireConstraint
from overlay.protocol import Message

MAX_ENTRY = 96  # bytes of what follows the owner in an id, as in content-based routing
MAX_ENTRIES = 256  # advertisements that one message names
MAX_PROXIES = 16

EntryId: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=3, max_length=NAME_BYTES + 1 + MAX_ENTRY)
]
MaybeEntry: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_BYTES + 1 + MAX_ENTRY)]
MaybeName: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_BYTES)]
Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Algorithm: TypeAlias = Literal["standard", "prefetching", "proxy", "delayed", "prefetching+delayed"]
GRAFTING: tuple[Algorithm, ...] = ("proxy", "delayed", "prefetching+delayed")
PREFETCHING: tuple[Algorithm, ...] = ("prefetching", "prefetching+delayed")
KEEPING: tuple[Algorithm, ...] = ("delayed", "prefetching+delayed")
Handing: TypeAlias = Literal["best-effort", "sounded", "lossless"]
"""How a handover goes: at once; at once, with a word when the tree stands; or held until then."""
Proxies: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_PROXIES)]


class Root(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The epoch whose tree an advertisement has."""

    id: EntryId
    epoch: Number


Roots: TypeAlias = Annotated[tuple[Root, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An advertisement that a broker makes for a client which is not there."""

    id: EntryId
    constraint: WireConstraint
    model: Annotated[str, msgspec.Meta(max_length=32)] = ""
    whole: bool = False
    note: Annotated[bytes, msgspec.Meta(max_length=1024)] = b""
    graft: Number = 0  # the tree of that epoch, or of a newer one, is used, or none; 0: a new tree


Entries: TypeAlias = Annotated[tuple[Entry, ...], msgspec.Meta(max_length=MAX_ENTRIES)]


class MoveOut(Message, frozen=True, tag=272):
    """I leave you; perhaps for that broker, where I shall advertise in that epoch."""

    algorithm: Algorithm
    handing: Handing
    predicted: MaybeName = ""
    epoch: Number = 0


class MoveIn(Message, frozen=True, tag=273):
    """I come to you from that broker; my ledger is as of that change, once I have one for you."""

    number: Number  # grows with each move; repeated until the tree is ready, unless in best effort
    algorithm: Algorithm
    handing: Handing
    previous: MaybeName = ""
    proxies: Proxies = ()
    series: Number = 0
    stamp: Number = 0


class Handover(Message, frozen=True, tag=274):
    """Your client is with me now: let it go, and say when all that it published has passed."""

    client: WireName
    number: Number
    algorithm: Algorithm
    handing: Handing


class HandedOver(Message, frozen=True, tag=275):
    """It is gone from here, and nothing that it published is under way on my tree."""

    client: WireName
    number: Number


class StandIn(Message, frozen=True, tag=276):
    """Advertise this for a client until it comes; or, with no lease, no more."""

    client: WireName
    epoch: Number
    lease: Annotated[float, msgspec.Meta(ge=0, le=86_400)]  # s
    entries: Entries
    proxy: bool = False  # from now on, as long as it is renewed


class Sound(Message, frozen=True, tag=277):
    """Is this tree complete behind you? I asked after that change of my ledger for you."""

    entry: EntryId
    number: Number  # of the wave
    flush: bool  # publications went before: ask, again, whoever wants any
    series: Number
    stamp: Number
    tree: MaybeEntry = ""  # the advertisement whose tree it follows where its own is not known


class Sounded(Message, frozen=True, tag=278):
    """It is, as of that change of my ledger for you."""

    entry: EntryId
    number: Number
    series: Number
    stamp: Number
    apart: bool = False  # I get its publications by another way, and shall be asked there
    complete: bool = True  # else somebody behind me did not answer


class TreeReady(Message, frozen=True, tag=279):
    """The trees of your advertisements stand: publish."""

    number: Number  # of the move
    complete: bool  # else somebody did not answer
    proxies: Proxies = ()  # that were chosen for it
    roots: Roots = ()
    stands: bool = True  # else this is about roots alone


MESSAGES: tuple[type[Message], ...] = (
    *(MoveOut, MoveIn, Handover, HandedOver),
    *(StandIn, Sound, Sounded, TreeReady),
)
