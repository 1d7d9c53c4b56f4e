"""A gateway hands a stream on: to the gateways of other zones, or to the members of its own.

Numbers and publisher stay as they are. Upstream is acknowledged only what all behind have, so a
successor finds everything that somebody may lack at the source before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from overlay.ids import NodeId
from overlay.tracing import Level
from protocols.topics import tracing
from protocols.topics.config import TopicConfig
from protocols.topics.core import Core
from protocols.topics.history import Chunk
from protocols.topics.messages import Accept, Ack, Recall, StreamKey
from protocols.topics.modes import Mode, name_of
from protocols.topics.relation import Seat
from protocols.topics.sending import Outgoing
from protocols.topics.stream import check_ranges

Wanted: TypeAlias = Callable[[], dict[Seat, str]]
Progressed: TypeAlias = Callable[[float], None]


class Relay(Outgoing):
    """The outgoing half of a stream at a gateway."""

    def __init__(
        self,
        core: Core,
        key: StreamKey,
        topic: str,
        mode: Mode,
        *,
        window: int,
        keep: int,
        wanted: Wanted,
    ) -> None:
        config = TopicConfig(
            reliability=name_of(mode),
            history_bytes=core.settings.relay_bytes,
            window_bytes=max(1024, window),
            keep=keep,
        )
        super().__init__(core, key, topic, mode, config, newest=0)
        self._wanted = wanted
        self.progressed: Progressed = _nobody_waits
        self.source: Callable[[], NodeId] = str  # who hands it to this node
        self.attached = True  # somebody sends to this node
        self._begun = 0
        self._live = 0  # the first message that was published since somebody here wants it
        self.backfilled = True  # False: what was published before it began is on its way

    def wanted(self) -> dict[Seat, str]:
        """Those behind it, as seen from the publisher."""
        return self._wanted() if self.has_begun and self.attached else {}

    @property
    def has_begun(self) -> bool:
        """Whether the source said where it begins."""
        return self._begun > 0

    def had(self, msg: Accept) -> bool:
        """Whether a receiver lacks what was here and is trimmed: it was served by another one."""
        if self.mode is not Mode.ACK or not msg.have or not self.has_begun:
            return False
        return self._begun <= msg.have + 1 < self.history.oldest

    def begin(self, start: int, live: int, now: float) -> None:
        """The source says where it begins: those behind can be greeted."""
        self.history.skip_to(start)
        self._begun = start
        self._live = live
        self.review(now)

    def _news_after(self, position: int) -> int:
        """What was published before is fetched for those who ask for a replay."""
        return max(position + 1, self._live)

    @property
    def has_room(self) -> bool:
        """Whether it takes another chunk; in nack mode old ones make place."""
        return self.mode is not Mode.ACK or self.history.bytes < self.config.history_bytes

    def trim(self, now: float) -> None:
        """What is only kept for late joiners makes place, however much of it is wanted."""
        super().trim(now)
        if self.mode is not Mode.ACK:
            return
        history, floor = self.history, self.floor
        while (chunk := history.first) is not None and chunk.last <= floor:
            if history.bytes < self.config.history_bytes:
                return
            history.drop_oldest()

    def _on_unknown_accept(self, src: NodeId, msg: Accept) -> None:
        """It has more from a predecessor: offers are repeated until this node has as much."""

    def _check_ack(self, src: NodeId, msg: Ack) -> None:
        """It may have more from a predecessor, and have heard of more; what is here counts."""
        check_ranges(src, msg.gaps, msg.upto)

    def on_recall(self, src: NodeId, msg: Recall, now: float) -> None:
        """Not before all is here that may be asked for: requests are repeated."""
        if self.backfilled:
            super().on_recall(src, msg, now)

    def take(self, chunk: Chunk, now: float) -> None:
        """Hand a chunk on."""
        before = self.history.newest
        if chunk.first <= before:  # unordered: late ones are handed on as they come
            self._send_to_all(chunk, self._targets, self.gateways())
            return
        age = max(0.0, self.core.overlay_time(now) - chunk.sent_at)
        added = self.history.add(
            chunk.first, chunk.count, chunk.sent_at, chunk.payload, now - age, bare=chunk.bare
        )
        self.core.counts.relayed += 1
        if self.core.effects.tracing >= Level.MESSAGES:
            tracing.relayed(self.core, self.key, self.topic, chunk, self.source())
        self.spread(added, before, now)
        self.trim(now)
        if not self.relations:
            self.progressed(now)

    def skip_to(self, number: int) -> None:
        """What lies before was lost on the way here: those behind must not wait for it."""
        self.history.skip_to(number)
        for relation in self.relations.values():
            self._bridge_hole(relation)

    def settled(self, now: float) -> None:
        """Tell upstream."""
        self.trim(now)
        self.progressed(now)


def _nobody_waits(_now: float) -> None:
    """Until the incoming half is there."""
