"""Why two members are linked."""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated, TypeAlias

import msgspec


class Kind(IntFlag):
    """The reasons for a link; one link may have several, each end its own."""

    NONE = 0  # kept only because the other end wants it
    RING = 1  # nearest on the ring: never refused, so the zone holds together
    STRUCTURED = 2  # at a harmonic distance: makes routing take O(log n) hops
    RANDOM = 4  # anywhere: the graph stays connected when neighbours on the ring fail together
    INTEREST = 8  # shares a topic


ALL_KINDS = Kind.RING | Kind.STRUCTURED | Kind.RANDOM | Kind.INTEREST

WireKinds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=int(ALL_KINDS))]
WireReasons: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=int(ALL_KINDS))]
