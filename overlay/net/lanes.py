"""What waits on one link, and how it is handed to ZeroMQ.

Two lanes. What may wait goes by the bulk lane: only when the other one is empty, and never far
ahead of what the peer has read, because a queue of ZeroMQ's cannot be overtaken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import zmq

from overlay.net.session import Session
from overlay.net.window import BulkWindow
from overlay.protocol import Message, Scope
from overlay.wire.bulk import BulkLane
from overlay.wire.frames import FRAMEWORK_SCOPE, Mark, empty_frame
from overlay.wire.sizes import Encoded
from overlay.wire.writer import BatchWriter, Part, Tally

if TYPE_CHECKING:
    from overlay.net.links import Links

NOBLOCK = int(zmq.NOBLOCK)  # arithmetic with zmq's own flags is slow
POLLOUT = int(zmq.POLLOUT)

SMALL_BULK = 2048  # bytes: what others may have to wait for behind it is microseconds
MARK_AGAIN = 2.0  # s without an answer to a mark, then it is sent again

_ENCODER = msgspec.msgpack.Encoder()


class Lanes:
    """The sending half of a link; `Link` opens and closes the DEALER."""

    __slots__ = (
        "_carriers",
        "_dealer",
        "_frame_bytes",
        "_links",
        "_marked_at",
        "_window",
        "blocked",
        "bulk",
        "session",
        "writer",
    )

    def __init__(self, links: Links, writer: BatchWriter, now: float) -> None:
        self.writer = writer  # the lane of what should not wait
        self.bulk: BulkLane | None = None  # the other one, once it was needed
        self.blocked = False  # ZeroMQ's queue is full
        self._links = links
        self._dealer: zmq.Socket[bytes] | None = None
        self.session: Session | None = None  # the peer at the other end, while it is open
        self._carriers = links.sizes.carriers
        self._frame_bytes = links.limits.frame_bytes
        self._window = BulkWindow(links.net.bulk_ahead)
        self._marked_at = now

    # -- waiting ------------------------------------------------------------------------------

    def put(self, scope: Scope, msg: Message) -> bool:
        """Queue in the lane that it belongs to; False when there is something worth a `push`.

        Small bulk takes the other lane while its own is empty: it delays nobody, keeps its order,
        and needs no marks.
        """
        if type(msg) in self._carriers:
            size = len(msg.payload)  # type: ignore[attr-defined]
            if size > self._frame_bytes or (msg.bulk and (size > SMALL_BULK or self.bulk)):
                return self._bulk_lane().put(scope, msg)
        elif msg.bulk:
            return self._bulk_lane().put(scope, msg)
        return self.writer.put(scope, msg)

    def put_encoded(self, scope: Scope, encoded: Encoded) -> bool:
        """The same for a message that was encoded once for several peers."""
        payload = encoded.payload
        if (
            encoded.kind.bulk and (payload is not None or encoded.size > SMALL_BULK or self.bulk)
        ) or (payload is not None and len(payload) > self._frame_bytes):
            return self._bulk_lane().put_encoded(scope, encoded)
        return self.writer.put_encoded(scope, encoded)

    def _bulk_lane(self) -> BulkLane:
        if self.bulk is None:
            self.bulk = self._links.bulk_lane()
            self.bulk.version = self.writer.version
            self.bulk.tally = self.writer.tally
        return self.bulk

    def count_with(self, tally: Tally | None) -> None:
        """Have what leaves from now on counted, or not."""
        self.writer.tally = tally
        if self.bulk is not None:
            self.bulk.tally = tally

    @property
    def waiting(self) -> bool:
        """True while a lane has anything to send."""
        return bool(self.writer) or bool(self.bulk)

    @property
    def dropped_bulk(self) -> int:
        """Messages that found the bulk lane full."""
        return self.bulk.dropped if self.bulk is not None else 0

    def discard(self) -> int:
        """Drop everything that waits, and return how many frames that was."""
        return self.writer.discard() + (self.bulk.discard() if self.bulk is not None else 0)

    def _speak(self, version: int) -> None:
        """The handshake agreed on a version."""
        self.writer.version = version
        if self.bulk is not None:
            self.bulk.version = version

    def _pack(self) -> None:
        """Close what still grows: it may leave."""
        self.writer.pack()
        if self.bulk is not None:
            self.bulk.pack()

    # -- handing over -------------------------------------------------------------------------

    def _push_lanes(self) -> None:
        writer = self.writer
        frames = writer.frames
        while frames:
            parts, size = frames[0]
            if not self._hand_over(parts, size):
                return
            writer.sent()
        self.blocked = False
        if self.bulk is not None:
            self._push_bulk(self.bulk)

    def _push_bulk(self, lane: BulkLane) -> None:
        window = self._window
        while True:
            mark = window.due
            if mark is not None:
                if not self._send_mark(mark):
                    return
                window.marked()
            frame = lane.frame() if window.open else None
            if frame is None or not self._hand_over(*frame):
                return
            lane.sent()
            window.sent(frame[1])

    def _send_mark(self, mark: int) -> bool:
        now = self._links.now()
        sections = [(FRAMEWORK_SCOPE, [Mark(mark)])]
        head = _ENCODER.encode((self.writer.version, now, sections, ()))
        self._marked_at = now
        return self._hand_over([head], len(head))

    def stir(self) -> None:
        """Send nothing, which the peer's machine acknowledges all the same."""
        if self.session is not None and not self.waiting:
            self._hand_over([empty_frame(self.writer.version)], 0)

    def _repeat_mark(self, now: float) -> None:
        """A peer drops what comes in a flood, marks too: then nothing else would follow."""
        mark = self._window.overdue
        if mark is not None and now - self._marked_at > MARK_AGAIN:
            self._send_mark(mark)

    def _hand_over(self, parts: list[Part], size: int) -> bool:
        """Give ZeroMQ one frame; False, and `blocked`, when it takes no more."""
        dealer = self._dealer
        if dealer is None:
            return self._hand_to_borrowed(parts, size)
        while True:
            try:
                if len(parts) == 1:
                    dealer.send(parts[0], NOBLOCK)
                else:
                    dealer.send_multipart(parts, NOBLOCK, copy=False)
            except zmq.Again:
                # ZMQ_FD is silent about what a failed send took notice of: ask once more.
                if int(dealer.get(zmq.EVENTS)) & POLLOUT:
                    continue
                self.blocked = True
                return False
            links = self._links
            links.bytes_sent += size
            links.frames_sent += 1
            return True

    def _hand_to_borrowed(self, parts: list[Part], size: int) -> bool:
        """The same over the connection that the peer opened."""
        links = self._links
        assert self.session is not None
        if not links.send_borrowed(self.session, parts):
            self.blocked = True
            return False
        links.bytes_sent += size
        links.frames_sent += 1
        return True
