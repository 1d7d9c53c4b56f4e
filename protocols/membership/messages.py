"""What members of a zone send each other (the table is in the package's docstring)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import WireName
from overlay.protocol import Message
from protocols.membership.attributes import Attribute
from protocols.membership.records import Digest, Endpoint, Incarnation, Life, Record

BUCKETS = 64
BUCKET_BYTES = 8
MAX_NEWS = 1024  # entries per message that anybody may ask us to read, whatever their settings
MAX_SUMMARIES = 1024

Sequence: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
News: TypeAlias = Annotated[tuple[Record, ...], msgspec.Meta(max_length=MAX_NEWS)]
Attributes: TypeAlias = Annotated[tuple[Attribute, ...], msgspec.Meta(max_length=MAX_NEWS)]
Names: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_SUMMARIES)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]


class Ping(Message, frozen=True, tag=32):
    """Are you there?"""

    sequence: Sequence
    digest: Digest
    news: News = ()
    attributes: Attributes = ()


class Ack(Message, frozen=True, tag=33):
    """Yes, in this life."""

    sequence: Sequence
    life: Life
    digest: Digest
    news: News = ()
    attributes: Attributes = ()


class PingRequest(Message, frozen=True, tag=34):
    """Please ping that member for me."""

    sequence: Sequence
    target: WireName


class IndirectAck(Message, frozen=True, tag=35):
    """It answered in that life; or it did not, but at least I am here (Lifeguard's nack)."""

    sequence: Sequence
    reached: bool
    life: Life = 0


class Gossip(Message, frozen=True, tag=36):
    """News."""

    news: News
    attributes: Attributes = ()


class Join(Message, frozen=True, tag=37):
    """This is me: please tell everybody, and tell me who is there."""

    life: Life
    born: Incarnation
    incarnation: Incarnation
    endpoints: Annotated[tuple[Endpoint, ...], msgspec.Meta(max_length=8)]
    attributes: Attributes = ()


class JoinReply(Message, frozen=True, tag=38):
    """One piece of the view, to the newcomer of that life."""

    life: Life
    piece: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)]
    pieces: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)]
    floor: Incarnation  # how far an earlier life of that name had come; be above it
    news: News
    attributes: Attributes = ()


class JoinRefused(Message, frozen=True, tag=39):
    """No, to the newcomer of that life: replies are addressed by name, which another may hold."""

    life: Life
    reason: Reason


class Sync(Message, frozen=True, tag=40):
    """Our views differ: here are the digests of my buckets."""

    sequence: Sequence
    buckets: Annotated[bytes, msgspec.Meta(max_length=BUCKETS * BUCKET_BYTES)]


class Summary(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One member in a SyncSummary."""

    name: WireName
    incarnation: Incarnation
    life: Life
    state: Annotated[int, msgspec.Meta(ge=0, le=3)]
    attributes: Digest


class SyncSummary(Message, frozen=True, tag=41):
    """All that I hold in these buckets, the dead included."""

    sequence: Sequence
    buckets: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=0, lt=BUCKETS)], ...],
        msgspec.Meta(max_length=BUCKETS),
    ]
    members: Annotated[tuple[Summary, ...], msgspec.Meta(max_length=MAX_SUMMARIES)]


class SyncRecords(Message, frozen=True, tag=42):
    """What you lack, and the names of what I lack."""

    sequence: Sequence
    news: News
    attributes: Attributes = ()
    wanted: Names = ()


MESSAGES: tuple[type[Message], ...] = (
    Ping,
    Ack,
    PingRequest,
    IndirectAck,
    Gossip,
    Join,
    JoinReply,
    JoinRefused,
    Sync,
    SyncSummary,
    SyncRecords,
)
