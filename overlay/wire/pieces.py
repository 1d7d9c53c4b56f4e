"""Puts messages back together that were too large for one frame.

Pieces of one message come in order; several messages of one sender may be under way at once, each
with a number. How many, and how many bytes, is bounded at both ends: a sender begins no more than
a receiver with the same limits takes.
"""

from __future__ import annotations

from typing import Any

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.wire.frames import Piece, PieceStart
from overlay.wire.reader import BatchReader

UNFINISHED = 8  # messages of one sender that may be under way; limits.message_bytes in all
SMALLEST_PIECES = 4096  # bytes: no sender's limits.frame_bytes is lower
FEW_PIECES = 16  # any message may come in so many


class _Unfinished:
    """What came of one message."""

    __slots__ = ("held", "parts", "start")

    def __init__(self, start: PieceStart) -> None:
        self.start = start
        self.parts: list[bytes] = []
        self.held = 0


class Reassembly:
    """The unfinished messages of one sender."""

    __slots__ = ("_announced", "_limits", "_reader", "_unfinished")

    def __init__(self, reader: BatchReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self._unfinished: dict[int, _Unfinished] = {}  # by number
        self._announced = 0  # bytes of all these, when they will be complete

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their message."""
        return sum(message.held for message in self._unfinished.values())

    def begin(self, start: PieceStart) -> None:
        """A message begins; an unfinished one of that number was given up by its sender."""
        self._forget(start.number)
        most = self._limits.message_bytes
        if start.size > most:
            raise RemoteProtocolError("message-too-large", f"{start.size} bytes")
        if len(self._unfinished) >= UNFINISHED:
            raise RemoteProtocolError("too-many-unfinished", f"more than {UNFINISHED} messages")
        if self._announced + start.size > most:
            raise RemoteProtocolError("too-many-unfinished", f"more than {most} bytes in all")
        self._announced += start.size
        self._unfinished[start.number] = _Unfinished(start)

    def add(self, piece: Piece) -> tuple[str, Any] | None:
        """Take the next bytes; returns (scope, message) with the last of them."""
        message = self._unfinished.get(piece.number)
        if message is None:
            raise RemoteProtocolError("stray-piece", f"{len(piece.payload)} bytes")
        start = message.start
        message.parts.append(piece.payload)
        message.held += len(piece.payload)
        if not piece.payload or message.held > start.size:
            self._forget(piece.number)
            raise RemoteProtocolError("wrong-pieces", f"more than the {start.size} announced")
        if len(message.parts) > FEW_PIECES + start.size // SMALLEST_PIECES:
            self._forget(piece.number)  # each takes memory of its own, however short it is
            raise RemoteProtocolError("wrong-pieces", f"too many for {start.size} bytes")
        if message.held < start.size:
            return None
        self._forget(piece.number)
        payload = b"".join(message.parts)
        msg = self._reader.message(start.message)
        return start.scope, self._reader.with_payload(msg, payload, "wrong-pieces")

    def _forget(self, number: int) -> None:
        message = self._unfinished.pop(number, None)
        if message is not None:
            self._announced -= message.start.size
