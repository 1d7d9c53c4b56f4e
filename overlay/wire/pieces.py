"""Puts a message back together that was too large for one frame.

Pieces come over one ordered link, so there is at most one unfinished message for each sender.
"""

from __future__ import annotations

from typing import Any

from overlay.errors import RemoteProtocolError
from overlay.limits import Limits
from overlay.wire.frames import Piece, PieceStart
from overlay.wire.reader import BatchReader

SMALLEST_PIECES = 4096  # bytes: no sender's limits.frame_bytes is lower
FEW_PIECES = 16  # any message may come in so many


class Reassembly:
    """The unfinished message of one sender."""

    __slots__ = ("_held", "_limits", "_parts", "_reader", "_start")

    def __init__(self, reader: BatchReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self._start: PieceStart | None = None
        self._parts: list[bytes] = []
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their message."""
        return self._held

    def begin(self, start: PieceStart) -> None:
        """A message begins; an unfinished one before it was given up by its sender."""
        self._forget()
        if start.size > self._limits.message_bytes:
            raise RemoteProtocolError("message-too-large", f"{start.size} bytes")
        self._start = start

    def add(self, piece: Piece) -> tuple[str, Any] | None:
        """Take the next bytes; returns (scope, message) with the last of them."""
        start = self._start
        if start is None:
            raise RemoteProtocolError("stray-piece", f"{len(piece.payload)} bytes")
        self._parts.append(piece.payload)
        self._held += len(piece.payload)
        if not piece.payload or self._held > start.size:
            self._forget()
            raise RemoteProtocolError("wrong-pieces", f"more than the {start.size} announced")
        if len(self._parts) > FEW_PIECES + start.size // SMALLEST_PIECES:
            self._forget()  # each takes memory of its own, however short it is
            raise RemoteProtocolError("wrong-pieces", f"too many for {start.size} bytes")
        if self._held < start.size:
            return None
        payload = b"".join(self._parts)
        self._forget()
        msg = self._reader.message(start.message)
        return start.scope, self._reader.with_payload(msg, payload, "wrong-pieces")

    def _forget(self) -> None:
        self._start = None
        self._parts = []
        self._held = 0
