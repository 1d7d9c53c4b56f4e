"""A stream that arrives, and the subscriptions of this node that it is for.

All of them share it from where it begins. One that wants more of the time before than the others,
or comes later, recalls that for itself: meanwhile a `CatchUp` stands in its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from overlay.ids import NodeId
from overlay.tracing import Kind
from overlay.tracing.kinds import DELIVERED
from protocols.topics import tracing
from protocols.topics.catching_up import Backfill, CatchUp, Taker
from protocols.topics.core import Core
from protocols.topics.history import Chunk
from protocols.topics.messages import ArrivalKey, Recalled, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.ordering import Order
from protocols.topics.recalling import Recalling
from protocols.topics.relaying import Relay
from protocols.topics.subscription import Replay, Subscription, replay_for_all


class Readers(ABC):
    """Which stream it is, how far it is handed over, and to whom.

    A node may have very many of them: what few of them need is made when it is needed.
    """

    __slots__ = (
        "_asked",
        "core",
        "id",
        "key",
        "mode",
        "order",
        "recalls",
        "relay",
        "source",
        "subscriptions",
        "topic",
    )

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, source: NodeId, *, relay: bool
    ) -> None:
        self.id: ArrivalKey = (*key, relay)
        self.core = core
        self.key = key
        self.topic = topic
        self.mode = mode
        self.source = source  # who sends it: its publisher, or a gateway
        self.order = Order(core.settings.pending_bytes)
        self.subscriptions: list[Taker] = []
        self.relay: Relay | None = None  # at a gateway: then there are no subscriptions
        self.recalls: tuple[Recalling, ...] = ()  # for what came before some of them
        self._asked: Replay | None = None  # what the sender took into account where it begins

    @property
    def begun(self) -> bool:
        """Whether we know where it begins."""
        return self.order.expected > 0

    @property
    def settled(self) -> int:
        """Everybody behind this node has all up to here."""
        have = self.order.expected - 1
        if self.relay is not None:
            have = min(have, self.relay.settled_upto)
        return max(have, 0)

    @abstractmethod
    def resume(self, now: float) -> None:
        """A subscription has room again, or has caught up."""

    def _attach(self, now: float) -> None:
        if self.relay is not None and not self.relay.attached:
            self.relay.attached = True
            self.relay.review(now)

    def detach(self, now: float) -> None:
        """The source sends no more: those behind a relay must not wait here."""
        if self.relay is not None and self.relay.attached:
            self.relay.attached = False
            self.relay.release(now)

    def takers(self) -> list[Subscription]:
        """The subscriptions that it is for, also those that catch up."""
        return [one.one if isinstance(one, CatchUp) else one for one in self.subscriptions]

    def add(self, one: Subscription, now: float) -> None:
        """One more wants it."""
        self.subscriptions.append(one)
        if self.begun:
            self._catch_up(one, now)

    def remove(self, one: Subscription) -> bool:
        """One wants it no more; False when it did not."""
        for taker in self.subscriptions:
            if taker is one:
                self.subscriptions.remove(one)
                return True
            if isinstance(taker, CatchUp) and taker.one is one:
                taker.stop()
                one.held |= taker.held  # the others waited for it
                self._forget(taker)
                self.subscriptions.remove(taker)
                return True
        return False

    def has_room_again(self, one: Subscription, now: float) -> bool:
        """It was full, and was read; False when that is no matter here."""
        for taker in self.subscriptions:
            if isinstance(taker, CatchUp) and taker.one is one:
                taker.resume(now)
                return True
            if taker is one:
                self.resume(now)
                return True
        return False

    # -- what came before -----------------------------------------------------------------------

    def _replay(self) -> Replay:
        """What all of its subscriptions want; a gateway wants all, or fills it in later."""
        if self.relay is not None:
            return Replay.all() if self.mode in (Mode.ACK, Mode.NACK) else Replay()
        if self._asked is None:
            self._asked = replay_for_all(self.takers())
        return self._asked

    def _recall_for_all(self, had: Collection[Subscription], now: float) -> None:
        """It begins: see to those who want more than that, and did not have it already."""
        relay = self.relay
        if relay is not None and self.mode is Mode.ORDERED and relay.config.keep:
            self._recall(Backfill(self, relay, self.order.expected - 1, self._recalled), now)
        for one in self.takers():
            if one.replay != self._asked and one not in had:
                self._catch_up(one, now)

    def _catch_up(self, one: Subscription, now: float) -> None:
        if one.replay.kind and self.mode is not Mode.UNORDERED:
            late = CatchUp(self, one, self.order.expected - 1, self._recalled)
            self.subscriptions[self.subscriptions.index(one)] = late
            self._recall(late, now)

    def _recall(self, request: Recalling, now: float) -> None:
        self.recalls = (*self.recalls, request)
        request.begin(now)

    def _recalled(self, request: Recalling, now: float) -> None:
        self._forget(request)
        if isinstance(request, CatchUp):
            self.subscriptions[self.subscriptions.index(request)] = request.one
        self.core.effects.at_tick_end(self.resume)  # what waited for it, also the end

    def _forget(self, request: Recalling) -> None:
        self.recalls = tuple(one for one in self.recalls if one is not request)

    def recall(self, serial: int) -> Recalling | None:
        """The request of that number, if it is not answered yet."""
        return next((one for one in self.recalls if one.serial == serial), None)

    def trace(self, chunk: Chunk, via: NodeId, hops: int, kind: Kind = DELIVERED) -> None:
        """Leave a row about a chunk that subscriptions of this node got."""
        about = (self.core, self.key, self.topic, self.mode, chunk)
        tracing.delivered(*about, source=self.source, via=via, hops=hops, kind=kind)

    def on_recalled(self, src: NodeId, msg: Recalled, now: float) -> None:
        """A part of what came before."""
        request = self.recall(msg.serial)
        if request is None or src != self.source:
            self.core.counts.stray += 1
            return
        request.on_recalled(msg, now)
