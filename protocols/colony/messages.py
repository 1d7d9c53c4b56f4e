"""What travels between the units of a colony."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from overlay.ids import WireName
from overlay.protocol import Message
from protocols.colony.interface import Card, Mode

MAX_SERVICES = 65_536  # in one message
MAX_WANTS = 4096  # of one request
MAX_CONJUNCTION = 16
MAX_INSTANCES = 1000
MAX_DEPTH = 64  # of the tree: a path that is longer is no path
MAX_WITHOUT = 64
MAX_HOPS = 2 * MAX_DEPTH

Serial: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Version: TypeAlias = Serial
WireService: TypeAlias = Annotated[str, msgspec.Meta(max_length=4096)]  # a constraint, readable
Services: TypeAlias = Annotated[tuple[WireService, ...], msgspec.Meta(max_length=MAX_SERVICES)]
Path: TypeAlias = Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_DEPTH)]
Reason: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)]
Seconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, le=86_400.0)]
Index: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=MAX_WANTS)]
Indices: TypeAlias = Annotated[tuple[Index, ...], msgspec.Meta(max_length=MAX_WANTS)]
Places: TypeAlias = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=256)], ...], msgspec.Meta(max_length=8)
]
Unit: TypeAlias = Literal["computer", "broker"]


class Want(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One thing that a request asks for."""

    index: Index  # in its request
    services: Annotated[
        tuple[WireService, ...], msgspec.Meta(min_length=1, max_length=MAX_CONJUNCTION)
    ]  # of one computer together
    instances: Annotated[int, msgspec.Meta(ge=1, le=MAX_INSTANCES)] = 1  # computers to find
    replies: Annotated[int, msgspec.Meta(ge=0, le=MAX_INSTANCES)] = 1  # to hand on; 0: all


class Acceptance(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A computer serves a want."""

    index: Index
    servant: Card
    hops: Annotated[int, msgspec.Meta(ge=0, le=MAX_HOPS)] = 0  # of the request, on its way there


class LogIn(Message, frozen=True, tag=256):
    """I want to be an individual of your colony."""

    serial: Serial
    unit: Unit
    version: Version
    services: Services  # the union of what my colony offers


class Welcome(Message, frozen=True, tag=257):
    """You are."""

    serial: Serial  # of the LogIn
    path: Path  # of the leader, up to the root
    known: Version
    here: Places = ()  # where the leader is reached
    above: Places = ()  # and where its own leader is, to turn to when it is gone


class LogInRefused(Message, frozen=True, tag=258):
    """You are not; `reason` is for people."""

    serial: Serial
    reason: Reason
    again: Seconds = 0.0  # it is of no use to come again before


class LogOut(Message, frozen=True, tag=259):
    """I am no individual of your colony, or you of mine."""

    reason: Reason


class Beat(Message, frozen=True, tag=260):
    """I live."""

    number: Serial
    version: Version
    rtt: Seconds  # of the last Beat; 0: not measured yet


class Ancestry(Message, frozen=True, tag=261):
    """So do I; this is the path, and the version of your offers that I have."""

    number: Serial  # of the Beat; 0: nobody asked
    path: Path
    known: Version
    here: Places = ()
    above: Places = ()


class Offers(Message, frozen=True, tag=262):
    """What my colony offers now; `base` 0: `added` is all of it."""

    version: Version
    base: Version
    added: Services
    removed: Services = ()


class ServiceRequest(Message, frozen=True, tag=263):
    """Find somebody for each of these (SREQ)."""

    id: Serial  # the client's
    client: Card
    wants: Annotated[tuple[Want, ...], msgspec.Meta(min_length=1, max_length=MAX_WANTS)]
    within: Seconds  # that the receiver may take
    mode: Mode | Literal[""] = ""  # empty: as each broker is set
    fanout: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0  # of greedy modes; 0: as set
    hops: Annotated[int, msgspec.Meta(ge=0, le=MAX_HOPS)] = 0
    serial: Serial = 0  # of a reliable request, to acknowledge; 0: it is none
    without: Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_WITHOUT)] = ()


class ServiceResponse(Message, frozen=True, tag=264):
    """Who was found, and for which wants nobody (more) is (SRESP)."""

    id: Serial
    client: WireName
    accepted: Annotated[tuple[Acceptance, ...], msgspec.Meta(max_length=MAX_WANTS)] = ()
    rejected: Indices = ()
    serial: Serial = 0


class Ack(Message, frozen=True, tag=265):
    """What you sent under that serial is safe here."""

    serial: Serial
