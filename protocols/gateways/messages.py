"""What nodes tell each other about interest in topics (table: the package's docstring)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName, WireVid
from overlay.patterns import MAX_BYTES
from overlay.protocol import Message
from protocols.zones.interface import Endpoints

MAX_LINES = 1024
MAX_PARTIES = 256
MAX_ZONES = 256  # in an answer about one topic
DIGEST_BYTES = 8

BookNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=15)]
Stamp: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
AskId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
TopicName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_BYTES)]
Cursor: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_BYTES + 1 + NAME_BYTES)]
"""The last key that was read; empty for none."""
Digest: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]


class Party(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node that stands for a zone, and where it is."""

    gateway: WireName
    zone: WireName
    endpoints: Endpoints = ()


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a ledger: who publishes or subscribes to a topic; no flags: it is withdrawn."""

    topic: TopicName
    flags: Annotated[int, msgspec.Meta(ge=0, le=3)]
    party: Annotated[int, msgspec.Meta(ge=-1, lt=MAX_PARTIES)] = -1
    """Which of the message's parties; -1: the line is about the sender itself."""


Lines: TypeAlias = Annotated[tuple[Line, ...], msgspec.Meta(max_length=MAX_LINES)]
Parties: TypeAlias = Annotated[tuple[Party, ...], msgspec.Meta(max_length=MAX_PARTIES)]


class LedgerChange(Message, frozen=True, tag=96):
    """These lines of my ledger are new, changed or withdrawn."""

    book: BookNumber
    stamp: Stamp  # grows with each change of a sender: an older one is out of date
    lines: Lines
    parties: Parties = ()


class LedgerDigest(Message, frozen=True, tag=97):
    """So many lines are in the ledger that I keep for you, and this is their digest."""

    book: BookNumber
    count: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]
    digest: Digest


class LedgerAgreed(Message, frozen=True, tag=98):
    """I have the same."""

    book: BookNumber
    digest: Digest


class LedgerRequest(Message, frozen=True, tag=99):
    """Tell me the lines after that key."""

    book: BookNumber
    id: AskId
    after: Cursor = ""


class LedgerPage(Message, frozen=True, tag=100):
    """These are they; perhaps more after them."""

    book: BookNumber
    id: AskId
    after: Cursor  # as in the request: tells two pages of one reading apart
    stamp: Stamp
    lines: Lines
    parties: Parties = ()
    more: bool = False


class TopicRequest(Message, frozen=True, tag=101):
    """What is the topic with that id called, and which zones are interested in it?"""

    id: AskId
    topic: WireVid
    forwarded: bool = False  # answer it yourself


class TopicAnswer(Message, frozen=True, tag=102):
    """So it is called, and these are; or with no name, why I cannot tell."""

    id: AskId
    topic: WireVid
    name: Annotated[str, msgspec.Meta(max_length=MAX_BYTES)] = ""
    zones: Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_ZONES)] = ()
    reason: Reason = ""
    final: bool = True  # False: somebody else may know


MESSAGES: tuple[type[Message], ...] = (
    LedgerChange,
    LedgerDigest,
    LedgerAgreed,
    LedgerRequest,
    LedgerPage,
    TopicRequest,
    TopicAnswer,
)
