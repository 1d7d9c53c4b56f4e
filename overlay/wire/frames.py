"""The head of a frame, protocol versions, and the framework's own messages (tags 0 to 15)."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import WireName
from overlay.protocol import Message

VERSION = 1  # the newest that we speak
OLDEST_VERSION = 1  # the oldest that we still understand

UNDECODABLE = (ValueError, TypeError, RecursionError)
"""What msgspec raises at bytes that a peer made up: its DecodeError is a ValueError, and so is the
UnicodeDecodeError of a string that is no UTF-8; a set of maps is a TypeError."""

FRAME_START = 0x94  # a frame's head is an array of four; Welcome and Refusal have other lengths

FRAMEWORK_SCOPE = "#"  # sections in this scope are for the driver, never for a protocol

Version = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
SCOPE_CHARACTERS = 256
ShortText = Annotated[str, msgspec.Meta(max_length=SCOPE_CHARACTERS)]
Endpoint = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class Section(NamedTuple):
    """Messages of one scope, in order."""

    scope: str
    messages: list[Any]


class WhoIs(Message, frozen=True, tag=1):
    """Datagram: who answers at this address? Padded, so that the answer is no amplifier."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    padding: Annotated[bytes, msgspec.Meta(max_length=8192 + 256)] = b""


class IAm(Message, frozen=True, tag=2):
    """Datagram: the answer; the certificate (empty when insecure) carries the CURVE key."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    name: WireName
    certificate: Annotated[bytes, msgspec.Meta(max_length=8192)] = b""


class Hello(Message, frozen=True, tag=3):
    """First frame on a link: who connects, and which versions it speaks."""

    oldest: Version
    newest: Version
    overlay: ShortText
    name: WireName
    life: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]  # one process run of a node
    endpoints: Annotated[tuple[Endpoint, ...], msgspec.Meta(max_length=16)] = ()
    certificate: Annotated[bytes, msgspec.Meta(max_length=8192)] = b""


class Welcome(Message, frozen=True, tag=4):
    """The answer to a Hello that is let in, with the version to speak."""

    version: Version
    name: WireName
    life: Annotated[bytes, msgspec.Meta(min_length=8, max_length=8)]
    certificate: Annotated[bytes, msgspec.Meta(max_length=8192)] = b""


class Refusal(Message, frozen=True, tag=5):
    """The answer to a Hello that is not let in: a reason for programs, a line for people."""

    reason: ShortText
    detail: ShortText = ""


class PieceStart(Message, frozen=True, tag=6):
    """A message too large for one frame begins: all of it but the payload."""

    scope: ShortText
    size: Annotated[int, msgspec.Meta(ge=0)]  # bytes of the payload to come
    message: bytes
    number: Annotated[int, msgspec.Meta(ge=0)] = 0  # which of those that are under way


class Piece(Message, frozen=True, tag=7):
    """The next bytes of the payload that the PieceStart of that number announced."""

    payload: bytes
    number: Annotated[int, msgspec.Meta(ge=0)] = 0


class Goodbye(Message, frozen=True, tag=8):
    """The sender closes this link on purpose; `idle` tells a pause from a departure."""

    idle: bool


class Mark(Message, frozen=True, tag=9):
    """So many bytes of bulk came before this; whoever reads it sends it back, bare."""

    upto: Annotated[int, msgspec.Meta(ge=0)]


FRAMEWORK_MESSAGES: tuple[type[Message], ...] = (
    WhoIs,
    IAm,
    Hello,
    Welcome,
    Refusal,
    PieceStart,
    Piece,
    Goodbye,
    Mark,
)


def empty_frame(version: int) -> bytes:
    """A frame that says nothing."""
    return msgspec.msgpack.encode((version, 0.0, (), ()))


def negotiate(oldest: int, newest: int) -> int:
    """Return the newest version that both sides speak, or raise with what we speak."""
    version = min(newest, VERSION)
    if version < max(oldest, OLDEST_VERSION):
        raise RemoteProtocolError(
            "incompatible-version",
            f"the peer speaks versions {oldest} to {newest}, we {OLDEST_VERSION} to {VERSION}",
        )
    return version
