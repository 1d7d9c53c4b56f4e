"""One stream as it is sent: chunks to those who are interested, directly or down a tree.

What each receiver has is the business of `sending.py`, on top of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeAlias

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics import tree
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.history import Chunk, History
from protocols.topics.messages import BARE, LAST, LOST, RELAY, Data, Nack, Range, Repair, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat

Resent: TypeAlias = dict[tuple[NodeId, bool, StreamKey, int], float]
"""When which chunk was sent again to whom, for itself or (True) for others."""

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

    @property
    def by_tree(self) -> bool:
        """Whether members get it by a pruned broadcast, not by direct links."""
        return self._in_tree

    @abstractmethod
    def gateways(self) -> list[NodeId]:
        """Who takes part for others: they get everything directly."""

    def _choose_route(self, wanted: Iterable[Seat]) -> None:
        members = sum(1 for seat in wanted if not seat.relay)
        settings = self.core.settings
        if members >= settings.tree_from:
            self._in_tree = True
        elif members <= settings.tree_until:
            self._in_tree = False

    def _send_to_all(
        self, chunk: Chunk, members: Sequence[NodeId], gateways: Sequence[NodeId]
    ) -> None:
        """Send a chunk to members by the present route, and to gateways directly."""
        self._cast(self.data(chunk), members)
        if gateways:
            self.core.effects.send(_one_or_all(gateways), self.data(chunk, RELAY))

    def _cast(self, data: Data, members: Sequence[NodeId]) -> None:
        if self._in_tree:
            tree.cast(self.core, data)
            members = [self.core.me] if self.core.me in members else []  # a tree begins at me
        if members:
            self.core.effects.send(_one_or_all(members), data)

    def data(self, chunk: Chunk, flags: int = 0, kind: type[Data] = Data) -> Data:
        """A chunk as it travels."""
        origin, stream = self.key
        return kind(
            origin,
            stream,
            self.topic,
            self.mode,
            chunk.first,
            chunk.count,
            self.history.oldest,
            chunk.sent_at,
            flags | BARE if chunk.bare else flags,
            chunk.payload,
        )

    def _progress(self, flags: int = 0, upto: int | None = None) -> Data:
        """How far the stream is, or how far it was sent to somebody."""
        if self.ended:
            flags |= LAST | (LOST if self.lost else 0)
        origin, stream = self.key
        newest, oldest = self.history.newest, self.history.oldest
        if upto is not None:
            newest = upto
        return Data(origin, stream, self.topic, self.mode, newest + 1, 0, oldest, 0.0, flags, b"")

    def on_nack(self, src: NodeId, msg: Nack, now: float, resent: Resent) -> None:
        """Send again what is still here, and tell what is not."""
        check_ranges(src, msg.gaps, 0)
        flags = RELAY if msg.relay else 0
        not_before = now - self.core.settings.resend_after
        budget = self.config.window_bytes
        for first, last in msg.gaps:
            if first < self.history.oldest:
                self.core.effects.send(src, self._progress(flags))
            for chunk in self.history.overlapping(first, last):
                place = (src, msg.relay, self.key, chunk.first)
                if resent.get(place, -inf) > not_before:
                    self.core.counts.suppressed += 1
                    continue
                if budget <= 0:
                    return
                budget -= chunk.cost
                resent[place] = now
                self.core.counts.resent += 1
                self.core.effects.send(src, self.data(chunk, flags, Repair))

    def drop_old(self, now: float) -> None:
        """Without acks: forget what is over the bounds."""
        history, config = self.history, self.config
        keep = config.history_messages if self.mode is Mode.NACK else config.keep
        while (chunk := history.first) is not None and (
            history.messages > keep
            or history.bytes > config.history_bytes
            or now - chunk.kept_at > config.history_age
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
            self._cast(self._progress(), self._targets)
            gateways = self.gateways()
            if gateways:
                self.core.effects.send(gateways, self._progress(RELAY))
            self._beat_pause = min(self._beat_pause * 2, self.core.settings.heartbeat)
            self._beat_at = now + self._beat_pause
        return self._beat_at


def _one_or_all(peers: Sequence[NodeId]) -> NodeId | Sequence[NodeId]:
    """A single receiver needs nothing that is encoded to be shared."""
    return peers[0] if len(peers) == 1 else peers


def check_ranges(src: NodeId, ranges: Iterable[Range], after: int) -> None:
    """RemoteProtocolError unless they ascend, and begin after that number."""
    for first, last in ranges:
        if not after < first <= last:
            raise RemoteProtocolError("range-nonsense", f"{src} lacks {first} to {last}")
        after = last
