"""The bulk lane of a link: frames that may wait, and messages too large for any frame.

A message past `limits.frame_bytes` leaves in pieces. It takes turns with the other large ones and
with the ordinary frames of the lane, one piece or frame each, so nothing waits for all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from overlay.errors import LocalProtocolError
from overlay.limits import Limits
from overlay.protocol import Message, Scope
from overlay.wire.frames import FRAMEWORK_SCOPE, SCOPE_CHARACTERS, Piece, PieceStart
from overlay.wire.pieces import UNFINISHED
from overlay.wire.sizes import Encoded, Sizes
from overlay.wire.writer import BatchWriter, Parts, Tally


class _Large:
    """A message that leaves in pieces: how far it got, and the room that it takes until it left."""

    __slots__ = ("at", "begun", "payload", "room", "start")

    def __init__(self, start: PieceStart, payload: bytes, room: int) -> None:
        self.start = start
        self.payload = memoryview(payload)
        self.room = room
        self.begun = False  # its PieceStart left
        self.at = 0  # bytes that left


class BulkLane:
    """One queue, capped in bytes, from which frames are taken one by one."""

    __slots__ = (
        "_batches",
        "_carriers",
        "_clock",
        "_encoder",
        "_limits",
        "_next",
        "_number",
        "_sizes",
        "_source",
        "_step",
        "_turns",
        "_under_way",
        "_waiting",
    )

    def __init__(
        self, sizes: Sizes, limits: Limits, capacity: int, clock: Callable[[], float]
    ) -> None:
        self._batches = BatchWriter(sizes, limits, capacity, clock)
        self._sizes = sizes
        self._carriers = sizes.carriers
        self._limits = limits
        self._step = limits.frame_bytes
        self._clock = clock
        self._encoder = msgspec.msgpack.Encoder()
        self._number = 0  # of the next large message
        self._waiting: deque[_Large] = deque()  # until others are through
        self._under_way = 0  # bytes that were announced and are not complete
        self._turns: deque[_Large | None] = deque([None])  # None: the ordinary frames
        self._next: Parts | None = None  # chosen, and not sent yet
        self._source: _Large | None = None  # whose frame that is

    def __bool__(self) -> bool:
        """True while anything waits."""
        return bool(self._batches or self._waiting or len(self._turns) > 1)

    @property
    def dropped(self) -> int:
        """Messages that found the lane full."""
        return self._batches.dropped

    @property
    def room(self) -> int:
        """Bytes that may still be queued."""
        return self._batches.room

    @property
    def queued(self) -> int:
        """Bytes that wait."""
        return self._batches.queued

    @property
    def version(self) -> int:
        """Of the wire; the handshake agrees on it."""
        return self._batches.version

    @version.setter
    def version(self, version: int) -> None:
        self._batches.version = version

    @property
    def tally(self) -> Tally | None:
        """Is told of each batch, and of each large message as it is queued."""
        return self._batches.tally

    @tally.setter
    def tally(self, tally: Tally | None) -> None:
        self._batches.tally = tally

    def put(self, scope: Scope, msg: Message) -> bool:
        """Queue one message; False when a frame can be taken now. A full lane drops and counts."""
        if type(msg) in self._carriers and len(msg.payload) > self._step:  # type: ignore[attr-defined]
            return self._put_large(scope, self._sizes.encoded(msg))
        return self._batches.put(scope, msg)

    def put_encoded(self, scope: Scope, encoded: Encoded) -> bool:
        """Queue a message that was encoded once for several peers."""
        if encoded.payload is not None and len(encoded.payload) > self._step:
            return self._put_large(scope, encoded)
        return self._batches.put_encoded(scope, encoded)

    def _put_large(self, scope: Scope, encoded: Encoded) -> bool:
        payload = encoded.payload
        assert payload is not None
        if len(scope) > SCOPE_CHARACTERS:
            raise LocalProtocolError(f"scope {scope[:20]!r}… is over {SCOPE_CHARACTERS} characters")
        start = PieceStart(scope, len(payload), bytes(encoded.raw), self._number)
        size, _ = self._sizes.bound(start)
        if size > self._sizes.surely_fits:
            self._batches.check_fit(FRAMEWORK_SCOPE, encoded.kind, start)
        if not self._batches.reserve(size + len(payload)):
            return True
        if self.tally is not None:
            self.tally([(scope, [encoded.raw])], [(0, payload)], size + len(payload))
        self._number += 1
        self._waiting.append(_Large(start, payload, size + len(payload)))
        return False

    def pack(self) -> None:
        """Close the open batch: it may leave."""
        self._batches.pack()

    def frame(self) -> Parts | None:
        """The frame whose turn it is, the same one until `sent`; None when there is none."""
        if self._next is None:
            self._next = self._choose()
        return self._next

    def _choose(self) -> Parts | None:
        self._let_begin()
        for _ in range(len(self._turns)):
            source = self._source = self._turns[0]
            self._turns.rotate(-1)
            if source is not None:
                return self._piece(source)
            if self._batches.frames:
                return self._batches.frames[0]
        return None

    def _let_begin(self) -> None:
        """Large messages come under way in order, as many as a receiver takes."""
        while self._waiting and len(self._turns) <= UNFINISHED:
            size = self._waiting[0].start.size
            if self._under_way + size > self._limits.message_bytes:
                return
            self._under_way += size
            self._turns.append(self._waiting.popleft())

    def _piece(self, large: _Large) -> Parts:
        if not large.begun:
            head = self._head(large.start, [])
            return [head], len(head)
        part = large.payload[large.at : large.at + self._step]
        head = self._head(Piece(b"", large.start.number), [0])
        return [head, part], len(head) + len(part)

    def _head(self, msg: Message, attached: list[int]) -> bytes:
        sections = [(FRAMEWORK_SCOPE, [msg])]
        return self._encoder.encode((self.version, self._clock(), sections, attached))

    def sent(self) -> None:
        """The frame left."""
        large, self._next = self._source, None
        if large is None:
            self._batches.sent()
        elif not large.begun:
            large.begun = True
        else:
            large.at += self._step
            if large.at >= large.start.size:
                self._turns.remove(large)
                self._end(large)

    def _end(self, large: _Large) -> None:
        self._under_way -= large.start.size
        self._batches.release(large.room)

    def begin_again(self) -> None:
        """The link broke: what left of unfinished messages is lost, so all of each goes again."""
        self._next = None
        for large in self._turns:
            if large is not None:
                large.begun = False
                large.at = 0

    def discard(self) -> int:
        """Drop everything that waits; returns how many frames and large messages that was."""
        self._next = None
        large = [one for one in self._turns if one is not None]
        for one in large:
            self._end(one)
        for one in self._waiting:
            self._batches.release(one.room)
        lost = self._batches.discard() + len(large) + len(self._waiting)
        self._turns = deque([None])
        self._waiting.clear()
        return lost
