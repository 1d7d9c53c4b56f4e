"""What a zone may be called, and the name of the zone that federates all others."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError
from overlay.ids import NAME_BYTES, check_name
from overlay.protocol import Scope

MANAGEMENT: Scope = "@management"
"""The scope of the management zone's membership; no base zone is called like this."""

RESERVED = "@"  # names that begin so belong to the framework

WireZone: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_BYTES)]
"""A base zone's name as a field of a message; `is_zone_name` says whether it is one."""


def check_zone_name(name: str) -> Scope:
    """Return the name if a base zone may carry it; otherwise LocalProtocolError says why not."""
    try:
        check_name(name)
    except LocalProtocolError as error:
        raise LocalProtocolError(f"a zone is named like a node: {error}") from None
    if name.startswith(RESERVED):
        raise LocalProtocolError(
            f"zone name {name!a} begins with {RESERVED!r}, which is reserved: use a letter"
        )
    return name


@lru_cache(maxsize=16_384)
def is_zone_name(name: str) -> bool:
    """Whether a base zone may be called so."""
    return is_node_name(name) and not name.startswith(RESERVED)


@lru_cache(maxsize=16_384)
def is_node_name(name: str) -> bool:
    """Whether a node may be called so."""
    try:
        check_name(name)
    except LocalProtocolError:
        return False
    return True
