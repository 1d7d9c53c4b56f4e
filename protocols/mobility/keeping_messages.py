"""What mobile nodes and brokers tell each other (table: the package's docstring)."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName
from overlay.predicates import Value, WireConstraint
from overlay.protocol import Message

MAX_NAME = 96  # bytes of what a subscriber calls a subscription
MAX_MODEL = 32
MAX_WANTS = 1024
MAX_PLACES = 16  # brokers that a subscriber may have passed without being sure of them
MAX_MARKS = 4096
MAX_KEPT = 4096
MAX_REASON = 256
MAX_ENDPOINTS = 8

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
Stream: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_BYTES + 1 + MAX_NAME)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_REASON)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=31_622_400)]
Endpoints: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=256)], ...], msgspec.Meta(max_length=MAX_ENDPOINTS)
]


class Want(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One subscription of a mobile subscriber."""

    name: Name
    constraint: WireConstraint
    model: Annotated[str, msgspec.Meta(max_length=MAX_MODEL)] = ""


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker where the subscriber was, and how far it has taken what is kept there."""

    broker: WireName
    visit: Number
    next: Number
    sure: bool  # the broker said that it keeps the box
    endpoints: Endpoints = ()  # where that broker listens, as it said itself


class Kept(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One publication that is kept; without an advertisement: a gap in its place."""

    subscription: Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    advertisement: Stream = ""
    epoch: Number = 0
    sequence: Number = 0
    item: dict[str, Value] = {}
    lost: Number = 0  # publications in the gap; 0: nobody knows
    reason: Reason = ""


class Stand(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a stream has come for one subscription."""

    subscription: Name
    advertisement: Stream
    epoch: Number
    sequence: Number


class Here(Message, frozen=True, tag=280):
    """I am with you from now on: keep for me what matches, and fetch what others kept."""

    visit: Number  # grows with each broker that a subscriber turns to
    revision: Number  # of what it wants
    wants: Annotated[tuple[Want, ...], msgspec.Meta(max_length=MAX_WANTS)]
    since: Annotated[tuple[Place, ...], msgspec.Meta(max_length=MAX_PLACES)] = ()
    keep_for: Seconds = 0.0  # of silence; 0: as the broker is set


class Hosted(Message, frozen=True, tag=281):
    """I keep a box for you; without a revision I do not."""

    visit: Number
    revision: Number
    start: Number = 0  # what comes first
    complete: bool = True  # nothing is to be fetched elsewhere any more
    reason: Reason = ""
    endpoints: Endpoints = ()


class Batch(Message, frozen=True, tag=282):
    """What is kept, from `start` on: to the subscriber, or to the broker that it is with now."""

    client: WireName
    visit: Number
    start: Number
    taken: Number  # so far it was taken before, by whomever
    oldest: Number  # what is between was put out by a bound
    lost: Number  # so many publications
    reason: Reason
    entries: Annotated[tuple[Kept, ...], msgspec.Meta(max_length=MAX_KEPT)]


class Taken(Message, frozen=True, tag=283):
    """I have everything before `next`; also a sign of life."""

    client: WireName
    visit: Number
    next: Number
    done: bool = False  # and I heard that this was all


class Away(Message, frozen=True, tag=284):
    """I go away: keep what matches, for so long."""

    visit: Number
    next: Number
    keep_for: Seconds  # 0: I do not come back


class Fetch(Message, frozen=True, tag=285):
    """That subscriber is with me now: send me what you keep for it."""

    client: WireName
    visit: Number  # of the box
    next: Number
    by: Number  # the visit that fetches it: the newest one gets it


class Drained(Message, frozen=True, tag=286):
    """That was all, and I get nothing more for that subscriber; or why there is nothing."""

    client: WireName
    visit: Number
    by: Number  # who is told: the visit that fetches it
    end: Number
    stands: Annotated[tuple[Stand, ...], msgspec.Meta(max_length=MAX_MARKS)] = ()
    reason: Reason = ""


MESSAGES: tuple[type[Message], ...] = (Here, Hosted, Batch, Taken, Away, Fetch, Drained)
