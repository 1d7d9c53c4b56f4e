"""What a run leaves behind: a hash that two equal runs share, and lines for people."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any, BinaryIO, TypeAlias

import msgspec

from overlay.ids import NodeId

TraceLine: TypeAlias = tuple[float, NodeId, str, Any]  # time, node, what happened, and the detail
TraceReader: TypeAlias = Callable[[TraceLine], None]

CHUNK = 1 << 16  # hashing in chunks costs a tenth of hashing each step by itself


class TraceHash:
    """A running hash over everything that happened to any node, with the messages' content."""

    __slots__ = ("_digest", "buffer", "write")

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=16)
        self.buffer = bytearray()  # what is not hashed yet; always the same object
        # Sets keep their iteration order: a protocol that sends one is not deterministic, and
        # the hash shall say so.
        self.write = msgspec.msgpack.Encoder(enc_hook=_type_name).encode_into

    def note(self, at: float, node: int, kind: str, detail: Hashable | Sequence[Any]) -> None:
        """Add one step."""
        self.write((at, node, kind, detail), self.buffer, -1)

    def digest_chunk(self) -> None:
        """Hash what was noted, if it is enough to be worth it."""
        if len(self.buffer) > CHUNK:
            self._digest.update(self.buffer)
            self.buffer.clear()

    def hexdigest(self) -> str:
        """Return the hash of everything so far."""
        digest = self._digest.copy()
        digest.update(self.buffer)
        return digest.hexdigest()


def _type_name(value: object) -> str:
    """Stand in for a timer's key that cannot be encoded: its address is no property of a run."""
    return type(value).__qualname__


class TraceFile:
    """A reader that writes each step as one line of JSON."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._encode = msgspec.json.Encoder(enc_hook=repr).encode

    def __call__(self, line: TraceLine) -> None:
        """Write one step."""
        at, node, kind, detail = line
        self._file.write(self._encode({"at": at, "node": node, "kind": kind, "detail": detail}))
        self._file.write(b"\n")
