"""A peer hands finished trace files over to whoever collects them, in the background.

It never holds the peer up: files wait on its disk (within `traces.disk_bytes`), leave by the bulk
lane at `traces.ship_rate` at most, and are sent again until a collector says that it has them.
"""

from __future__ import annotations

import logging
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from nodes.trace_files import FILES, KEPT, PIECE_BYTES, Kept, Piece, inode_of, measured
from overlay.errors import OverlayError
from overlay.logs import about
from protocols.topics.events import SubscriberJoined

if TYPE_CHECKING:
    from nodes.peer import Peer
    from nodes.publishing import TopicPublisher
    from nodes.subscribing import TopicSubscription
    from overlay.traces.recorder import Recorder

log = logging.getLogger("overlay.traces")

LOOK_EVERY = 0.5  # s between two looks for files that are finished
SEND_AGAIN = 30.0  # s without an answer
WINDOW = 1 << 20  # bytes on their way to a collector

_encode = msgspec.msgpack.Encoder().encode
_kept = msgspec.msgpack.Decoder(Kept)


class Shipper:
    """Sends the files of one peer's recorder, the oldest first."""

    def __init__(self, peer: Peer) -> None:
        self.sent = 0  # files, each time that it was sent
        self.kept = 0  # files that a collector has
        self.refused = 0  # files that it will not have; they stay here
        self._peer = peer
        self._rate = peer.node.traces.settings.ship_rate
        self._sent_at: dict[Path, float] = {}
        self._unwanted: dict[Path, None] = {}
        peer.node.in_background(self.run)

    async def run(self) -> None:
        """Until the node stops."""
        try:
            async with (
                self._peer.subscribe(KEPT) as answers,
                self._peer.publisher(
                    FILES, history_bytes=2 * WINDOW, window_bytes=WINDOW, linger=0.0
                ) as out,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(self._hear, answers)
                nursery.start_soon(self._follow_collectors)
                await self._serve(out)
        except* OverlayError as group:  # its certificate may not allow these topics
            log.error(
                "traces are not handed over: %s",
                group.exceptions[0],
                extra=about("shipping-ended", "traces"),
            )

    @property
    def _recorder(self) -> Recorder | None:
        return self._peer.node.traces.recorder

    async def _serve(self, out: TopicPublisher) -> None:
        while True:
            path = self._next()
            if path is None or not (out.subscribers or out.gateways):
                await trio.sleep(LOOK_EVERY)
                continue
            self._sent_at[path] = trio.current_time()
            try:
                await self._send(out, path)
            except FileNotFoundError:  # it had to make room
                self._forget(path)

    def _next(self) -> Path | None:
        """The oldest file that nobody has, and that is not on its way."""
        recorder = self._recorder
        if recorder is None:
            return None
        late = trio.current_time() - SEND_AGAIN
        for path in recorder.files:
            if path not in self._unwanted and self._sent_at.get(path, -inf) < late:
                return path
        return None

    async def _send(self, out: TopicPublisher, path: Path) -> None:
        place = "/".join(path.parts[-3:])
        size, digest = await trio.to_thread.run_sync(measured, path)
        due = trio.current_time()
        with path.open("rb") as file:
            at = 0
            while data := await trio.to_thread.run_sync(file.read, PIECE_BYTES):
                await out.publish(_encode(Piece(place, size, digest, at, data)))
                at += len(data)
                due += len(data) / self._rate
                await trio.sleep_until(due)
        self.sent += 1

    async def _hear(self, answers: TopicSubscription) -> None:
        """Let go of what a collector has."""
        async for message in answers:
            try:
                answer = _kept.decode(message.data)
            except (msgspec.MsgspecError, TypeError):
                continue  # of somebody who has no business there
            if answer.node == self._peer.name:
                self._answered(answer)

    def _answered(self, answer: Kept) -> None:
        recorder = self._recorder
        files = recorder.files if recorder is not None else []
        for path in files:
            if "/".join(path.parts[-3:]) != answer.place:
                continue
            if answer.refused:
                self.refused += 1
                self._unwanted[path] = None
                log.error(
                    "a collector refused %s: %s",
                    path,
                    answer.refused,
                    extra=about("file-refused", "traces", path=str(path)),
                )
                return
            self.kept += 1
            if path.exists() and inode_of(path) != answer.inode:  # else it keeps it right here
                path.unlink()
            self._forget(path)

    def _forget(self, path: Path) -> None:
        self._sent_at.pop(path, None)
        if self._recorder is not None:
            self._recorder.forget(path)

    async def _follow_collectors(self) -> None:
        """A collector that comes (again) gets at once what no other one has."""
        with self._peer.node.events(SubscriberJoined) as joined:
            async for event in joined:
                if event.topic == FILES:
                    self._sent_at.clear()
