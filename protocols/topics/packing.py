"""Chunks and what is in them: one MessagePack array of messages, encoded once.

A long message that is alone in its chunk is not packed: its bytes are the chunk, and neither its
publisher nor its readers copy them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from overlay.errors import RemoteProtocolError
from protocols.topics.history import Chunk

UNDECODABLE = (msgspec.DecodeError, ValueError, RecursionError, TypeError)
BARE_FROM = 4096  # bytes: to pack less costs nothing that can be measured

_encode: Callable[[list[Any]], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode


def pack(items: list[Any]) -> tuple[bytes, bool]:
    """The payload of a chunk of these messages, and whether it is bare."""
    if len(items) == 1 and items[0].__class__ is bytes and len(items[0]) >= BARE_FROM:
        return items[0], True
    return _encode(items), False


def repack(chunk: Chunk, first: int, items: list[Any]) -> Chunk:
    """A part of a chunk; `first` is the number of the first of these messages."""
    payload, bare = pack(items)
    return Chunk(first, len(items), chunk.sent_at, payload, bare=bare)


def unpack(chunk: Chunk) -> list[Any]:
    """The messages of a chunk; RemoteProtocolError when it holds something else."""
    if chunk.bare:
        items: Any = [chunk.payload]
    else:
        try:
            items = _decode(chunk.payload)
        except UNDECODABLE as error:
            raise RemoteProtocolError("malformed-chunk", str(error)) from None
    if not isinstance(items, list) or len(items) != chunk.count:
        raise RemoteProtocolError("malformed-chunk", f"not {chunk.count} messages")
    return items
