"""What beacons say. All of them are datagrams, and the envelope names (and proves) the sender."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.protocol import Message

VERSION = 1
MAX_ENDPOINTS = 8

Endpoints: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=256)], ...],
    msgspec.Meta(max_length=MAX_ENDPOINTS),
]


class Presence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who speaks, besides its name. The VID is not told: it is the hash of the name."""

    version: Annotated[int, msgspec.Meta(ge=1, le=255)]
    overlay: Annotated[str, msgspec.Meta(max_length=64)]
    authority: Annotated[bytes, msgspec.Meta(max_length=32)]  # of its CA; empty when insecure
    zone: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]  # or the management zone
    size: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]  # of that zone, as it sees it
    endpoints: Endpoints


BeaconId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""The sender's own: what it casts by IPv4 and by IPv6 has one number, and is heard once."""


class Query(Message, frozen=True, tag=144):
    """Who is there?"""

    who: Presence
    id: BeaconId
    attempt: Annotated[int, msgspec.Meta(ge=0, le=3)]  # later ones ask for more answers


class Answer(Message, frozen=True, tag=145):
    """I am."""

    who: Presence
    id: BeaconId  # of the query


class Announcement(Message, frozen=True, tag=146):
    """I am still there."""

    who: Presence
    id: BeaconId
