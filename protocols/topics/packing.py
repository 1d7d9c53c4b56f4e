"""Chunks and what is in them: one MessagePack array of messages, encoded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from overlay.errors import RemoteProtocolError
from protocols.topics.history import Chunk

UNDECODABLE = (msgspec.DecodeError, ValueError, RecursionError, TypeError)

pack: Callable[[list[Any]], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode


def unpack(chunk: Chunk) -> list[Any]:
    """The messages of a chunk; RemoteProtocolError when it holds something else."""
    try:
        items = _decode(chunk.payload)
    except UNDECODABLE as error:
        raise RemoteProtocolError("malformed-chunk", str(error)) from None
    if not isinstance(items, list) or len(items) != chunk.count:
        raise RemoteProtocolError("malformed-chunk", f"not {chunk.count} messages")
    return items
