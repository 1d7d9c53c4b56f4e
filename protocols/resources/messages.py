"""What brokers send each other about requests (table: the package's docstring)."""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

import msgspec

from overlay.ids import NAME_BYTES, WireName
from overlay.predicates import Value, WireConstraint
from overlay.protocol import Message
from protocols.resources.models import ModelType

MAX_FOUND = 1024  # resources in one message; `Results.bytes_at_most` is usually what ends it
MAX_HOPS = 64
MAX_AGE = 1e7  # s

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Age: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=MAX_AGE)]
Hops: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_HOPS)]
ResourceId: TypeAlias = Annotated[str, msgspec.Meta(min_length=3, max_length=NAME_BYTES + 97)]
"""OWNER/NAME: the id of its advertisement."""


class RequestId(NamedTuple):
    """Who asked, and its number there; numbers of two lives differ."""

    host: WireName  # the broker of the client that asks: its DHBroker
    number: Number


class Slip(NamedTuple):
    """The place of a message in the series from its sender to its receiver (`courier.py`)."""

    series: Number
    number: Number  # from 1
    base: Number  # the receiver confirmed everything before


NO_SLIP = Slip(0, 0, 0)


class Found(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A resource as its broker's PubCache had it."""

    resource: ResourceId
    epoch: Number  # of its advertisement
    version: Number  # of its values in that epoch: the later is the larger
    item: dict[str, Value]
    age: Age  # s since it was read, not counting time on links
    hops: Hops = 0  # brokers between the one that read it and the one that asked


FoundResources: TypeAlias = Annotated[tuple[Found, ...], msgspec.Meta(max_length=MAX_FOUND)]


class Request(Message, frozen=True, tag=240):
    """Find what matches; `cover`: its host has results that this one can share."""

    slip: Slip
    id: RequestId
    model: ModelType
    constraint: WireConstraint
    age: Age = 0.0  # s since it was asked, not counting time on links
    hops: Hops = 0
    cover: RequestId | None = None  # the `payload` of algorithm 1
    direct: bool = False  # results go straight to its host
    fresh: bool = False  # no cover will do: it wants what is there now


class Results(Message, frozen=True, tag=241):
    """These match."""

    slip: Slip
    id: RequestId
    model: ModelType
    found: FoundResources


class Done(Message, frozen=True, tag=242):
    """Of this request nothing more comes from me."""

    slip: Slip
    id: RequestId
    model: ModelType
    complete: bool  # False: a branch behind me was lost
    age: Age = 0.0  # s: what was registered and matched since then is among the results
    elsewhere: bool = False  # I got it from another neighbour too: results may go that way
    sent: Number = 0  # results that went straight to the host


class Gone(Message, frozen=True, tag=243):
    """The cover that you sent it after has no results for it: route it yourself."""

    slip: Slip
    id: RequestId
    model: ModelType
    cover: RequestId


class Update(Message, frozen=True, tag=245):
    """The latest values of a resource of mine: you are my broker."""

    slip: Slip
    model: ModelType
    resource: ResourceId
    epoch: Number
    version: Number
    item: dict[str, Value]


class Receipt(Message, frozen=True, tag=244):
    """I have all before `next` of that series; 0: I know nothing of it, begin another."""

    series: Number
    next: Number


Carried: TypeAlias = Request | Results | Done | Gone | Update
"""What the courier carries: each once, in order, or the link is told to be lost."""

CARRIED: tuple[type[Carried], ...] = (Request, Results, Done, Gone, Update)
