"""What travels between two hops of a route, or of a tree over a range of the ring."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from overlay.ids import WireName, WireVid
from overlay.protocol import Message
from protocols.routing.aggregates import Aggregate, Tally

MOST_HOPS = 255
SERVICE_CHARACTERS = 32
WORD_CHARACTERS = 256
MOST_PATIENCE = 3600.0  # seconds

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_HOPS)]
Steps: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_HOPS)]
Service: TypeAlias = Annotated[str, msgspec.Meta(max_length=SERVICE_CHARACTERS)]
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=WORD_CHARACTERS)]
Patience: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MOST_PATIENCE)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=32)]


class RouteStep(Message, frozen=True, tag=64):
    """Bring this to whoever is responsible for `key`."""

    transfer: Number  # the sender's own, for the answers; a repetition has the same
    origin: WireName
    id: Number  # the origin's own: a second arrival is recognised by it
    key: WireVid
    hops: Steps  # that it took, this one included
    patience: Patience  # seconds after which its origin has given up
    service: Service
    direct: bool  # a link to the responsible member itself may be opened
    payload: bytes


class Taken(Message, frozen=True, tag=65):
    """I have what you handed over under this number, and will tell its end."""

    transfer: Number


class RouteDone(Message, frozen=True, tag=66):
    """It arrived at `by`, or ended there for that reason; passed back step by step."""

    transfer: Number
    by: WireName
    hops: Hops
    reason: Reason = ""  # empty: it arrived


class Spread(Message, frozen=True, tag=67):
    """Take this, and see to it that all members in [start, upto) get it."""

    transfer: Number
    origin: WireName
    id: Number
    start: WireVid
    upto: WireVid
    hops: Steps
    patience: Patience  # seconds after which an incomplete end is better than none
    interest_key: Word  # with `interest`: only for members whose attribute lists that word
    interest: Word
    gauge: Word  # what to sum up; empty: a broadcast
    service: Service
    payload: bytes


class RangeDone(Message, frozen=True, tag=68):
    """So many in that range have got it, so many not; and this is what they hold."""

    transfer: Number
    reached: Tally
    missing: Tally
    depth: Hops  # the most hops to anybody in the range
    aggregate: Aggregate


class Ask(Message, frozen=True, tag=69):
    """What became of what I handed over under this number?"""

    transfer: Number


MESSAGES: tuple[type[Message], ...] = (RouteStep, Taken, RouteDone, Spread, RangeDone, Ask)
