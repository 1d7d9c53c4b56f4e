"""Peers of an earlier life, as they lie on disk: a realm, a zone, and a line for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId, check_name
from protocols.beacon.messages import MAX_ENDPOINTS

STORED = b"last known"
MAX_BYTES = 65_536


class LastKnown(NamedTuple):
    """A member of this zone, and where it was."""

    name: NodeId
    endpoints: tuple[str, ...]


def pack(realm: str, zone: str, peers: Iterable[LastKnown]) -> bytes:
    """Text: `realm zone`, then `name endpoint endpoint …`, the latest first."""
    lines = [f"{realm} {zone}"]
    lines += [" ".join((one.name, *one.endpoints[:MAX_ENDPOINTS])) for one in peers]
    return "\n".join(lines).encode()


def unpack(stored: bytes, realm: str, zone: str, most: int) -> list[LastKnown]:
    """Read what `pack` wrote for the same realm and zone; what it cannot have written is left."""
    if len(stored) > MAX_BYTES:
        return []
    head, *lines = stored.decode(errors="replace").split("\n")
    if head != f"{realm} {zone}":
        return []
    found = []
    for line in lines[:most]:
        name, *endpoints = line.split(" ")
        try:
            check_name(name)
        except LocalProtocolError:
            continue
        if endpoints and all(0 < len(one) <= 256 for one in endpoints):
            found.append(LastKnown(name, tuple(endpoints[:MAX_ENDPOINTS])))
    return found
