"""Results travel in packages: many in one message, none of them too large for the first lane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from protocols.resources.messages import MAX_FOUND, Found

MOST_BYTES = 24_000  # of one package: a field past 32 KiB would have to be a payload of its own

_encode = msgspec.msgpack.Encoder().encode


def item_bytes(item: object) -> int:
    """How long values are when they travel."""
    return len(_encode(item))


def packages(found: Sequence[Found]) -> Iterator[tuple[Found, ...]]:
    """All of them, in order, in as few packages as the bounds allow."""
    package: list[Found] = []
    room = MOST_BYTES
    for one in found:
        size = item_bytes(one)
        if package and (size > room or len(package) >= MAX_FOUND):
            yield tuple(package)
            package, room = [], MOST_BYTES
        package.append(one)
        room -= size
    if package:
        yield tuple(package)
