"""What brokers and clients tell each other (table: the package's docstring)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName
from overlay.predicates import Value, WireConstraint
from overlay.protocol import Message

MAX_NAME = 96  # bytes of what follows the owner in an id
MAX_PATH = 64  # brokers between a publisher and the farthest subscriber
MAX_MODEL = 32
MAX_NOTE = 1024
MAX_LINES = 4096  # of each kind in one message; `content.page_bytes` is usually what ends it
DIGEST_BYTES = 8

EntryId: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=3, max_length=NAME_BYTES + 1 + MAX_NAME)
]
"""OWNER/NAME: the client that advertises or subscribes, and what it calls it. No broker is in it,
so that a client can move."""

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Digest: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
Model: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_MODEL)]
Role: TypeAlias = Literal["broker", "client"]
Path: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_PATH)]
"""The brokers on the way to whose entry it is, the teller first; empty in a client's ledger."""
Ids: TypeAlias = Annotated[tuple[EntryId, ...], msgspec.Meta(max_length=MAX_LINES)]


class AdvertisementLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a ledger: what somebody is going to publish, and the way to its broker."""

    id: EntryId
    epoch: Number  # grows whenever its owner advertises it again; the older one is senior
    constraint: WireConstraint
    model: Model = ""  # advertisements and subscriptions of two models never meet
    whole: bool = False  # must be known to every broker: nothing covers it
    note: Annotated[bytes, msgspec.Meta(max_length=MAX_NOTE)] = b""
    path: Path = ()
    graft: Number = 0
    """In a client's ledger: it moved here, and the tree that it has elsewhere, of that epoch or a
    newer one, may be used."""


class SubscriptionLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a ledger: what somebody behind the teller wants to get."""

    id: EntryId
    constraint: WireConstraint
    model: Model = ""
    path: Path = ()


class GraftLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a ledger: publications of an advertisement may come from my side, too."""

    id: EntryId
    epoch: Number  # whose tree it is
    up: bool  # told to the last hop on the way to the anchor; else to a branch that has a source
    live: bool = True  # false, to a branch: there is no source but its own


Advertisements: TypeAlias = Annotated[
    tuple[AdvertisementLine, ...], msgspec.Meta(max_length=MAX_LINES)
]
Subscriptions: TypeAlias = Annotated[
    tuple[SubscriptionLine, ...], msgspec.Meta(max_length=MAX_LINES)
]

Grafts: TypeAlias = Annotated[tuple[GraftLine, ...], msgspec.Meta(max_length=MAX_LINES)]


class Greeting(Message, frozen=True, tag=208):
    """I am here, for so long at least; and so far has my ledger for you come."""

    role: Role
    lease: Annotated[float, msgspec.Meta(ge=0, le=86_400)]  # s; 0: I leave
    series: Number  # which ledger; a new one begins whenever the teller forgot what it told
    stamp: Number  # changes told so far
    digest: Digest  # of all lines
    hears: bool = False  # I hear you: only then the link carries anything
    reply: bool = False  # greet me as well


class Change(Message, frozen=True, tag=209):
    """These lines of my ledger for you are new or changed, and those are gone."""

    series: Number
    stamp: Number  # one more than the last change's
    advertisements: Advertisements = ()
    unadvertised: Ids = ()
    subscriptions: Subscriptions = ()
    unsubscribed: Ids = ()
    grafts: Grafts = ()
    ungrafted: Ids = ()


class Again(Message, frozen=True, tag=210):
    """I have not all of your ledger: tell me the whole of it."""

    series: Number


class Page(Message, frozen=True, tag=211):
    """A part of the whole ledger; the last part makes the copy complete."""

    series: Number
    stamp: Number  # the copy is as of that change
    page: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
    last: bool
    advertisements: Advertisements = ()
    subscriptions: Subscriptions = ()
    grafts: Grafts = ()


class Publication(Message, frozen=True, tag=212):
    """What a publisher published, on its way along matching subscriptions."""

    advertisement: EntryId
    epoch: Number
    sequence: Number  # counts the publications of that epoch, from 1
    item: dict[str, Value]
    model: Model = ""
    tree: Annotated[str, msgspec.Meta(max_length=NAME_BYTES + 1 + MAX_NAME)] = ""
    """The advertisement whose tree it follows where its own one is covered and not known."""
    hops: Annotated[int, msgspec.Meta(ge=0, le=MAX_PATH)] = 0


class Refused(Message, frozen=True, tag=213):
    """I do not take that from you; `id` is empty when I do not take you at all."""

    reason: Annotated[str, msgspec.Meta(max_length=256)]
    id: Annotated[str, msgspec.Meta(max_length=NAME_BYTES + 1 + MAX_NAME)] = ""


MESSAGES: tuple[type[Message], ...] = (Greeting, Change, Again, Page, Publication, Refused)
