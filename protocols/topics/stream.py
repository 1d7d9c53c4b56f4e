"""One stream as it is sent: chunks to those who are interested, directly or down a tree.

What each receiver has is the business of `sending.py`, on top of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import inf
from typing import TypeAlias

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics import tree
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.history import Chunk, History
from protocols.topics.messages import LAST, LOST, Data, Nack, Range, StreamKey
from protocols.topics.modes import Mode

Resent: TypeAlias = dict[tuple[NodeId, int], float]
"""When which chunk was sent again to whom."""

FIRST_BEAT = 0.05  # s after the last message: a lost tail is noticed soon


class Stream(ABC):
    """A history, and the ways by which its chunks leave."""

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, config: TopicConfig, newest: int
    ) -> None:
        self.core = core
        self.key = key
        self.topic = topic
        self.mode = mode
        self.config = config
        self.history = History(newest)
        self.ended = False  # nothing follows
        self.lost = False  # because its publisher failed
        self._targets: tuple[NodeId, ...] = ()  # who is interested; not used in ack mode
        self._in_tree = False
        self._beat_at = inf
        self._beat_pause = FIRST_BEAT
        self._timer_at = inf

    @abstractmethod
    def gateways(self) -> list[NodeId]:
        """Who takes part for others: they get everything directly."""

    def _choose_route(self, wanted: dict[NodeId, str]) -> None:
        members = sum(1 for zone in wanted.values() if not zone)
        settings = self.core.settings
        if members >= settings.tree_from:
            self._in_tree = True
        elif members <= settings.tree_until:
            self._in_tree = False

    def _send_to_all(
        self, chunk: Chunk, members: Iterable[NodeId], others: Iterable[NodeId]
    ) -> None:
        """Send a chunk to members by the present route, and to others directly."""
        data = self.data(chunk)
        direct = dict.fromkeys(others)
        if self._in_tree:
            tree.cast(self.core, data)
            for member in members:  # me too: a tree never comes back to its root
                if member != self.core.me:
                    direct.pop(member, None)
                else:
                    direct[member] = None
        else:
            direct.update(dict.fromkeys(members))
        if direct:
            self.core.effects.send(tuple(direct), data)

    def data(self, chunk: Chunk, flags: int = 0) -> Data:
        """A chunk as it travels."""
        origin, stream = self.key
        return Data(
            origin,
            stream,
            self.topic,
            self.mode,
            chunk.first,
            chunk.count,
            self.history.oldest,
            chunk.sent_at,
            flags,
            chunk.payload,
        )

    def _progress(self, flags: int = 0) -> Data:
        """How far the stream is."""
        if self.ended:
            flags |= LAST | (LOST if self.lost else 0)
        origin, stream = self.key
        newest, oldest = self.history.newest, self.history.oldest
        return Data(origin, stream, self.topic, self.mode, newest + 1, 0, oldest, 0.0, flags, b"")

    def on_nack(self, src: NodeId, msg: Nack, now: float, resent: Resent) -> None:
        """Send again what is still here, and tell what is not."""
        check_ranges(src, msg.gaps, 0)
        not_before = now - self.core.settings.resend_after
        budget = self.config.window_bytes
        for first, last in msg.gaps:
            if first < self.history.oldest:
                self.core.effects.send(src, self._progress())
            for chunk in self.history.overlapping(first, last):
                if resent.get((src, chunk.first), -inf) > not_before:
                    self.core.counts.suppressed += 1
                    continue
                if budget <= 0:
                    return
                budget -= len(chunk.payload)
                resent[src, chunk.first] = now
                self.core.counts.resent += 1
                self.core.effects.send(src, self.data(chunk))

    def drop_old(self, now: float) -> None:
        """Without acks: forget what is over the bounds."""
        history, config = self.history, self.config
        keep = config.history_messages if self.mode is Mode.NACK else config.keep
        while (chunk := history.first) is not None and (
            history.messages > keep
            or history.bytes > config.history_bytes
            or now - chunk.sent_at > config.history_age
        ):
            history.drop_oldest()

    # -- time -----------------------------------------------------------------------------------

    def _arm(self, at: float) -> None:
        if at < self._timer_at:
            self._timer_at = at
            self.core.effects.set_timer(("out", self.key), at)

    def _beat_soon(self, now: float, pause: float) -> None:
        """Tell how far the stream is, after a pause, and then less and less often."""
        self._beat_pause = FIRST_BEAT
        self._beat_at = now + pause
        self._arm(self._beat_at)

    def _check_beat(self, now: float) -> float:
        if now >= self._beat_at:
            progress = self._progress()
            gateways = self.gateways()
            if self._in_tree:
                tree.cast(self.core, progress)
                others = [*gateways, *(p for p in self._targets if p == self.core.me)]
            else:
                others = [*self._targets, *gateways]
            if others:
                self.core.effects.send(tuple(dict.fromkeys(others)), progress)
            self._beat_pause = min(self._beat_pause * 2, self.core.settings.heartbeat)
            self._beat_at = now + self._beat_pause
        return self._beat_at


def check_ranges(src: NodeId, ranges: Iterable[Range], after: int) -> None:
    """RemoteProtocolError unless they ascend, and begin after that number."""
    for first, last in ranges:
        if not after < first <= last:
            raise RemoteProtocolError("range-nonsense", f"{src} lacks {first} to {last}")
        after = last
