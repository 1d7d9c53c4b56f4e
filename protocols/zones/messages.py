"""What nodes tell each other about zones (the table is in the package's docstring)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName
from overlay.protocol import Message
from protocols.zones.interface import Endpoints, MemberEntry, ZoneEntry
from protocols.zones.naming import WireZone

UNASKED = 0  # the id of Contacts that nobody asked for
MAX_CONTACTS = 8
MAX_PAGE_MEMBERS = 256
PAGE_ZONES = 64
MAX_PAGES = 2048

AskId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
ViewDigest: TypeAlias = Annotated[bytes, msgspec.Meta(max_length=8)]
Cursor: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_BYTES)]
"""The last member that is known; empty for none."""
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]


class Contact(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Somebody who may be in the management zone, and where."""

    name: WireName
    endpoints: Endpoints = ()


class ContactsRequest(Message, frozen=True, tag=80):
    """Are you in the management zone, and whom do you know there?"""

    id: AskId


class Contacts(Message, frozen=True, tag=81):
    """I am, or not; these are."""

    id: AskId
    inside: bool
    contacts: Annotated[tuple[Contact, ...], msgspec.Meta(max_length=MAX_CONTACTS)] = ()


class TableRequest(Message, frozen=True, tag=82):
    """Which zones are there? My table has this digest."""

    id: AskId
    digest: ViewDigest = b""


class TablePage(Message, frozen=True, tag=83):
    """One page of the table with that digest; of no pages when yours is the same."""

    id: AskId
    digest: ViewDigest
    page: Annotated[int, msgspec.Meta(ge=0, lt=MAX_PAGES)] = 0
    pages: Annotated[int, msgspec.Meta(ge=0, le=MAX_PAGES)] = 0
    zones: Annotated[tuple[ZoneEntry, ...], msgspec.Meta(max_length=PAGE_ZONES)] = ()


class MembersRequest(Message, frozen=True, tag=84):
    """Who is in that zone, clockwise after that member?"""

    id: AskId
    zone: WireZone
    after: Cursor = ""
    forwarded: bool = False  # answer it yourself or deny it


class MembersPage(Message, frozen=True, tag=85):
    """These are; perhaps more after them."""

    id: AskId
    after: Cursor  # as in the request: tells two pages of one question apart
    members: Annotated[tuple[MemberEntry, ...], msgspec.Meta(max_length=MAX_PAGE_MEMBERS)]
    more: bool = False
    fresh: bool = True  # told by a member; a supervisor tells what it heard last


class MembersDenied(Message, frozen=True, tag=86):
    """I cannot tell, because ..."""

    id: AskId
    reason: Reason
    final: bool = False  # the zone does not exist: asking again would be in vain


class RosterDigest(Message, frozen=True, tag=87):
    """If your roster of my zone has another digest, ask me."""

    zone: WireZone
    digest: ViewDigest


MESSAGES: tuple[type[Message], ...] = (
    ContactsRequest,
    Contacts,
    TableRequest,
    TablePage,
    MembersRequest,
    MembersPage,
    MembersDenied,
    RosterDigest,
)
