"""Who sends a stream to this node: asked, heard of, lost, and changed for another one."""

from __future__ import annotations

from math import inf

from overlay.ids import NodeId
from protocols.topics.acknowledging import Acknowledging
from protocols.topics.core import Core
from protocols.topics.events import PublisherAppeared
from protocols.topics.messages import Accept, Leave, Moving, Offer, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.subscription import Replay


class Sourced(Acknowledging):
    """A stream that arrives, and its sender: its publisher, or a gateway."""

    __slots__ = (
        "_asked_accept",
        "_candidate",
        "called_at",
        "failed",
        "heard_at",
        "lost_at",
        "moves_until",
    )

    def __init__(
        self,
        core: Core,
        key: StreamKey,
        topic: str,
        mode: Mode,
        source: NodeId,
        now: float,
        *,
        relay: bool,
    ) -> None:
        super().__init__(core, key, topic, mode, source, relay=relay)
        self.failed = ""  # why its source is held for gone, while something here is not read yet
        self.heard_at = now
        self.called_at = -inf  # when this node last asked for offers of it
        self.lost_at: float | None = None  # when membership removed the source
        self.moves_until = 0.0  # its publisher or this node changes its zone: sources change
        self._asked_accept = -inf
        self._candidate: NodeId = ""  # who was asked to be the source instead

    def accept(self, src: NodeId, offer: Offer, now: float) -> None:
        """Take part, from where we are; or from where the sender says, if we are new to it."""
        if src != self.source:
            self._change_source(src)
        self._is_heard(now)
        self._ack_bytes = max(1, int(offer.window * self.core.settings.ack_share))
        self._send_accept(now)

    def _change_source(self, src: NodeId) -> None:
        if self.mode is Mode.ACK and self.begun:
            self.core.effects.send(self.source, Leave(*self.id, moved=True))
        self.source, self._candidate = src, ""
        self._asked_accept = -inf

    def _is_heard(self, now: float) -> None:
        self.heard_at = now
        self.lost_at = None
        self.came_back()
        self._attach(now)

    def waits_for_source(self, offer: Offer, now: float) -> bool:
        """Whether it must get from its source, though that moves, what comes before an offer."""
        moves = now < self.moves_until and self.begun and not self.failed
        return moves and self.mode is Mode.ACK and offer.start > self.settled + 1

    def try_out(self, src: NodeId, offer: Offer) -> None:
        """Ask another one for all that is missing; it is the source once it promises that."""
        if offer.oldest <= self.settled + 1:
            self._candidate = src
            self._say_accept(src)

    def _changes_to(self, src: NodeId, start: int, now: float) -> bool:
        """Whether who was tried out begins where this node is: then it is the source."""
        if src != self._candidate or start > self.order.expected or now >= self.moves_until:
            return False
        self._change_source(src)
        self._is_heard(now)
        return True

    def _send_accept(self, now: float) -> None:
        if now - self._asked_accept < self.core.settings.resend_after:
            return
        self._asked_accept = now
        self._say_accept(self.source)

    def _say_accept(self, src: NodeId) -> None:
        have = self.settled if self.begun else 0
        # 0 says that we are new: who has begun, at the first message, wants all that there is.
        replay = Replay.all() if self.begun and not have else self._replay()
        for_others = self.relay is not None
        accept = Accept(*self.key, self.receiver, have, replay.kind, replay.amount, for_others)
        self.core.effects.send(src, accept)

    def came_back(self) -> None:
        """The source was only held for gone."""
        if self.failed:
            self.failed = ""
            if self.subscriptions:
                self.core.effects.emit(PublisherAppeared(self.topic, *self.key))

    def on_moving(self, now: float) -> None:
        """Its publisher changes its zone: the source stays until another one has all."""
        self.moves_until = now + self.core.settings.move_within
        if self.relay is not None:
            self.relay.on_moving(now)

    def tell_moving(self) -> None:
        """Have the source keep this node's place."""
        moving = Moving(*self.id, self.receiver, self.settled)
        self.core.effects.send(self.source, moving)
