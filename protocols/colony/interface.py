"""What applications and siblings tell a colony, and may read of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec

from overlay.ids import NodeId, WireName
from overlay.predicates import Constraint

Mode: TypeAlias = Literal[
    "broadcast",
    "exhaustive",
    "greedy-random",
    "greedy-ordered",
    "greedy-latency",
    "greedy-acceptance",
]
MODES: tuple[str, ...] = get_args(Mode)

Service: TypeAlias = Constraint


class Card(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who somebody is and how to reach it, without a broker between."""

    name: WireName
    endpoints: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=256)], ...], msgspec.Meta(max_length=8)
    ] = ()
    certificate: Annotated[bytes, msgspec.Meta(max_length=4096)] = b""


class Wish(msgspec.Struct, frozen=True):
    """What an application wants found: services of one computer, so many times."""

    services: tuple[Service, ...]
    instances: int = 1


class Terms(msgspec.Struct, frozen=True):
    """How a request is to be searched for."""

    mode: str = ""  # one of MODES; empty: as each broker is set
    fanout: int = 0  # individuals at a time, of greedy modes; 0: as each broker is set
    within: float = 0.0  # s; 0: as this node is set
    replies: int | None = None  # T_r; None: as many as instances, 0: EXHAUSTIVE_REPLY
    reliable: bool = False
    without: tuple[NodeId, ...] = ()  # who is not wanted


class Proposal(msgspec.Struct, frozen=True):
    """What a computer is asked to serve; its policy says yes or no."""

    client: NodeId
    request: int
    services: tuple[Service, ...]


Policy: TypeAlias = Callable[[Proposal], bool]
Trust: TypeAlias = Callable[[Card], bool]
"""Whether a certificate proves that its card tells the truth."""


class Individual(msgspec.Struct, frozen=True):
    """One row of a leader's registrations."""

    name: NodeId
    unit: str
    services: int
    rtt: float  # s; 0: not measured yet
    asked: int
    accepted: int
    unanswered: int  # in a row: refusals and timeouts


def everybody(_proposal: Proposal) -> bool:
    """The policy of who serves all."""
    return True


def believed(_card: Card) -> bool:
    """The trust of an insecure overlay."""
    return True
