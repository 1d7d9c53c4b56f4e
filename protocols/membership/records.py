"""What is known about one member: immutable, so that simulated nodes share one object."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId, Vid, WireName, check_name, vid_of

MAX_INCARNATION = 1 << 42  # in ms: the year 2109. Leaves 20 bits for versions, see `first_version`
MAX_ENDPOINTS = 8
MAX_ACCUSERS = 17  # the first one and as many confirmations as can be configured
DIGEST_MASK = (1 << 63) - 1  # 63 bits: msgspec checks bounds of signed integers only

Incarnation: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INCARNATION)]
Life: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=DIGEST_MASK)]
Digest: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=DIGEST_MASK)]
Endpoint: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]


class State(IntEnum):
    """What a member is held to be. At one incarnation the higher state wins."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One claim about one member."""

    name: WireName
    incarnation: Incarnation
    state: State
    life: Life  # random: tells two processes of one name apart
    born: Incarnation  # the life's first incarnation: the older of two lives has the lower one
    endpoints: Annotated[tuple[Endpoint, ...], msgspec.Meta(max_length=MAX_ENDPOINTS)] = ()
    accusers: Annotated[tuple[WireName, ...], msgspec.Meta(max_length=MAX_ACCUSERS)] = ()
    abrupt: bool = False  # an accuser saw its link to the suspect close

    @property
    def vid(self) -> Vid:
        """Where it sits on the ring."""
        return vid_of(self.name)

    @property
    def present(self) -> bool:
        """Whether it counts as a member: a suspect does, until it is declared dead."""
        return self.state <= State.SUSPECT

    @property
    def left(self) -> bool:
        """Whether it said goodbye, and is not merely held to be dead."""
        return self.state is State.LEFT

    @property
    def seniority(self) -> tuple[int, int]:
        """Of two lives of one name the lower is the older, which keeps the name."""
        return (self.born, self.life)

    @property
    def cost(self) -> int:
        """About how many bytes it takes in a packet."""
        return 40 + len(self.name) + sum(map(len, self.endpoints)) + 16 * len(self.accusers)


def supersedes(claim: Record, known: Record) -> bool:
    """Whether a claim replaces what is known of that name (accusers merge separately)."""
    if claim.incarnation != known.incarnation:
        return claim.incarnation > known.incarnation
    if claim.life != known.life:
        # Two processes chose one incarnation: any rule will do that everybody applies.
        return claim.seniority < known.seniority
    return claim.state > known.state


def accused(known: Record, accusers: tuple[NodeId, ...], abrupt: bool, limit: int) -> Record:
    """The suspicion of a member with these accusers added; itself if that adds nothing."""
    more = tuple(dict.fromkeys(known.accusers + accusers))[:limit]
    abrupt = abrupt or known.abrupt
    if known.state == State.SUSPECT and len(more) == len(known.accusers) and abrupt == known.abrupt:
        return known
    return msgspec.structs.replace(known, state=State.SUSPECT, accusers=more, abrupt=abrupt)


def ended(known: Record, state: State) -> Record:
    """The same member, dead or gone."""
    return msgspec.structs.replace(known, state=state, accusers=(), abrupt=False)


@lru_cache(maxsize=65_536)
def fingerprint(*parts: str | int) -> int:
    """63 bits that every process computes alike; XOR of them is the digest of a view."""
    text = "\0".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") & DIGEST_MASK


@lru_cache(maxsize=65_536)
def is_good_name(name: str) -> bool:
    """Whether a node may carry that name."""
    try:
        check_name(name)
    except LocalProtocolError:
        return False
    return True
