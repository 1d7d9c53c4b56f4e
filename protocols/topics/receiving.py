"""One stream as it arrives at a node: put in order, handed over, acknowledged or asked for.

What is handed over goes to the subscriptions of this node, and to a relay if this node is a
gateway. Messages are compared by ranges of numbers; nothing is done for each of them.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Any

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics import tracing
from protocols.topics.core import Core
from protocols.topics.events import Gap, PublisherAppeared, PublisherFailed, PublisherGone
from protocols.topics.history import Chunk
from protocols.topics.messages import (
    ASK,
    BARE,
    LARGEST,
    LAST,
    LOST,
    Data,
    Leave,
    Range,
    StreamKey,
)
from protocols.topics.modes import Mode
from protocols.topics.ordering import weight
from protocols.topics.packing import repack, unpack
from protocols.topics.relation import Seat
from protocols.topics.repairing import Repairs
from protocols.topics.sources import Sourced
from protocols.topics.subscription import Batch, Subscription


class Incoming(Sourced):
    """What this node knows of a stream that it gets."""

    __slots__ = (
        "_draining",
        "_gap_at",
        "_new_gap",
        "_promised_by",
        "final",
        "lost",
        "oldest",
        "over",
        "repairs",
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
        relay: bool = False,
    ) -> None:
        super().__init__(core, key, topic, mode, source, now, relay=relay)
        self.repairs = Repairs(core, key, topic, mode, source, relay=relay)
        self.oldest = 0  # that the source still has
        self.final: int | None = None  # the last one, once its publisher closed
        self.lost = False  # and that because it failed
        self.over = False
        self._promised_by: NodeId | None = None  # who sent the last Begin
        self._gap_at = inf  # when its timer rings
        self._new_gap = False  # somebody must hear of it, though others are asked for already
        self._draining = False

    # -- where it begins ------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """What was handed over, as it travelled."""
        if self.relay is not None:
            return self.relay.history.end
        told = self.repairs.bytes if self.mode is Mode.NACK else self._since_ack
        return self._acked_bytes + told

    def moved(self, core: Core, now: float) -> None:
        """This node is elsewhere now: have its old source go on, until a nearer one can."""
        self.core = core
        self.repairs.moved(core)
        self.moves_until = now + self.core.settings.move_within
        self.lost_at = now  # it is called until it speaks
        self._gap_at, self._ack_armed = inf, False
        self._asked_accept = -inf
        if self.mode is Mode.ACK and self.begun:
            self.tell_moving()
            self._ack(now)
        for request in self.recalls:
            request.moved(core, now)
        if not self.begun:
            self._arm_gap(now, self.core.settings.nack_again)
        self._drain(now)
        self._look(now)

    def on_begin(self, src: NodeId, start: int, now: float, live: int = 0) -> None:
        """Where it begins, or goes on; `live`: for who is new, and wants no replay."""
        if src != self.source and not self._changes_to(src, start, now):
            self.core.counts.stray += 1
            return
        self._promised_by = src
        if not self.begun:
            # What is here already counts, though it was sent before we were known there.
            first = self.order.first()
            start = start if first is None else min(start, first.first)
            if self.relay is None and not self._replay().kind:
                start = max(start, live)
            self.begin(start, now, live=live)
        elif start > self.order.expected:
            self._skip_to(start, "gone", now)
        self._drain(now)
        self._look(now)

    def begin(
        self, start: int, now: float, had: Collection[Subscription] = (), live: int = 0
    ) -> None:
        """Its sender says that it begins there, or an earlier life of it, for `had`, ended."""
        start = max(start, 1)
        self.order.expected = start
        self.order.newest = max(self.order.newest, start - 1)
        self._acked = start - 1
        if self.relay is not None:
            self.relay.begin(start, live, now)
        if self.subscriptions:
            self.core.effects.emit(PublisherAppeared(self.topic, *self.key))
            if self.core.effects.tracing:
                tracing.began(self.core, self.key, self.topic, self.source, start)
        self._recall_for_all(had, now)

    def _wait_for_begin(self, chunk: Chunk | None, now: float) -> None:
        """Nack mode: the first words may be lost; the sender knows since when we are interested."""
        if chunk is not None:
            self._keep(chunk)
        self._send_accept(now)
        self._arm_gap(now, self.core.settings.nack_again)

    def _begin_without_answer(self, now: float) -> None:
        self.repairs.tries += 1
        if self.repairs.tries < self.core.settings.nack_tries:
            self._send_accept(now)
            self._arm_gap(now, self.core.settings.nack_again)
            return
        self.begin(self.order.next_after_gap(), now)
        self._drain(now)
        self._look(now)

    # -- data -----------------------------------------------------------------------------------

    def on_data(self, source: NodeId, msg: Data, via: NodeId, hops: int, now: float) -> None:
        """Some messages, or only how far the stream is; `via` handed on what `source` sent."""
        if msg.first == 0 or msg.first + msg.count > LARGEST:
            raise RemoteProtocolError("data-nonsense", f"{msg.first}, {msg.count} messages")
        chunk, items = self._read(msg)  # first of all: what is malformed changes nothing
        if msg.oldest:  # else it is a repair, by somebody who happens to have it
            if self.mode is not Mode.ACK:
                self.source = source
            if source == self.source:
                self.heard_at = now
                self.lost_at = None
                if self.mode is not Mode.ACK or source == self._promised_by:
                    self.oldest = max(self.oldest, msg.oldest)  # else it may get more for us yet
                self._attach(now)  # what said otherwise was late
            self.repairs.via, self.repairs.hops = via, hops
        order = self.order
        last = msg.first + msg.count - 1
        if last > order.newest:
            self._new_gap |= msg.first > order.newest + 1
            order.newest = last
        if self.mode is Mode.UNORDERED:
            self._on_unordered(msg, chunk, items, now)
            return
        if not self.begun:
            if self.mode is Mode.ACK:
                self._send_accept(now)
                return
            if self.mode is Mode.NACK:
                self._wait_for_begin(chunk, now)
                return
            self.begin(msg.first, now)
        if msg.flags & LAST:
            self.final, self.lost = last, bool(msg.flags & LOST)
        if chunk is not None:
            self._on_chunk(chunk, items, now)
        if msg.flags & ASK and self.mode is Mode.ACK:
            self.core.effects.at_tick_end(self._ack)
        self._look(now)

    def _read(self, msg: Data) -> tuple[Chunk | None, list[Any] | None]:
        """What it brings, unpacked if somebody here needs that, or if it will have to wait."""
        if not msg.count:
            return None, None
        bare = msg.flags & BARE > 0
        chunk = Chunk(msg.first, msg.count, msg.sent_at, msg.payload, bare=bare)
        expected = self.order.expected
        needed = bool(self.subscriptions)
        if self.mode is not Mode.UNORDERED:
            needed = chunk.last >= expected and (needed or chunk.first != expected)
        return chunk, unpack(chunk) if needed else None

    def _on_chunk(self, chunk: Chunk, items: list[Any] | None, now: float) -> None:
        order = self.order
        if self.mode is Mode.NACK:
            self.repairs.pass_on(chunk)
        if chunk.last < order.expected:
            self.core.counts.duplicates += chunk.count
            if self.mode is Mode.ACK:
                self._ack_soon(now)
            return
        if chunk.first <= order.expected:
            if self._hand_over(chunk, items, now):
                if order.bytes:
                    self._drain(now)
                return
            self.core.counts.held_back += 1
        self._keep(chunk)

    def _keep(self, chunk: Chunk) -> None:
        if not self.order.keep(chunk):
            self.core.counts.duplicates += chunk.count

    def _drain(self, now: float) -> None:
        """Hand over what waited and is next."""
        if self._draining:
            return  # a relay that has no receivers tells progress while it takes a chunk
        self._draining = True
        order = self.order
        try:
            while (chunk := order.first()) is not None:
                if chunk.last < order.expected:
                    self.core.counts.duplicates += chunk.count
                elif chunk.first > order.expected or not self._hand_over(chunk, None, now):
                    return
                order.drop(chunk)
        finally:
            self._draining = False

    def _hand_over(self, chunk: Chunk, items: list[Any] | None, now: float) -> bool:
        """Give what is next to everybody behind this node; False when somebody has no room."""
        if not self._has_room():
            return False
        order = self.order
        skip = order.expected - chunk.first
        if self.subscriptions or skip:
            items = unpack(chunk) if items is None else items
            if skip:
                del items[:skip]
                chunk = repack(chunk, order.expected, items)
        order.expected = chunk.last + 1
        self.repairs.tries = 0
        if items is not None:
            self._deliver(chunk, items)
        if self.relay is not None:
            self.relay.take(chunk, now)
        elif self.mode is Mode.ACK:
            self._progressed(len(chunk.payload), now)
        elif self.mode is Mode.NACK:
            self.repairs.remember(chunk)
        else:
            self._since_ack += len(chunk.payload)
        return True

    def _has_room(self) -> bool:
        room = True
        if self.mode is Mode.ACK or self.mode is Mode.NACK:
            for one in self.subscriptions:
                if not one.has_room:
                    one.held = True
                    room = False
        if self.relay is not None and not self.relay.has_room:
            room = False
        return room

    def _deliver(self, chunk: Chunk, items: list[Any]) -> None:
        batch = Batch(self.topic, self.key[0], chunk.first, chunk.sent_at, items, weight(chunk))
        for one in self.subscriptions:
            if one.has_room:
                one.put(batch)
                self.core.counts.delivered += chunk.count
            else:
                self.core.counts.dropped += chunk.count
        if self.core.effects.tracing:
            self.trace(chunk, self.repairs.via, self.repairs.hops)

    def _on_unordered(
        self, msg: Data, chunk: Chunk | None, items: list[Any] | None, now: float
    ) -> None:
        order = self.order
        if not self.begun:
            self.begin(msg.first, now)
        order.expected = order.newest + 1
        if msg.flags & LAST:
            self.final, self.lost = order.newest, bool(msg.flags & LOST)
        if chunk is not None:
            self._since_ack += len(chunk.payload)
            if items is not None:
                self._deliver(chunk, items)
            if self.relay is not None:
                self.relay.take(chunk, now)
        self._look(now)

    # -- what is missing ------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """See to what is missing, and to the end."""
        if not self.begun:
            return
        if self.order.lacks():
            if self._new_gap or self._gap_at == inf:  # what is asked for already has its time
                self._arm_gap(now, self.repairs.first_pause())
            self._new_gap = False
        elif self.repairs.awaited:
            self.repairs.caught_up(self.source)
        if self.final is not None and self.order.expected > self.final:
            self._end(now)

    def _arm_gap(self, now: float, pause: float) -> None:
        if now + pause < self._gap_at:
            self._gap_at = now + pause
            self.core.effects.set_timer(("gap", self.id), self._gap_at)

    def on_gap_timer(self, now: float) -> None:
        """A gap is still there, or not."""
        self._gap_at = inf
        if self.over or self.failed:
            return
        if not self.begun:
            self._begin_without_answer(now)
        elif self.order.lacks():
            self._see_to_gap(now)

    def _see_to_gap(self, now: float) -> None:
        order = self.order
        if self.mode is Mode.ORDERED:
            first = order.next_after_gap()
            self.core.counts.skipped += first - order.expected
            self._move_to(first)
            self._drain(now)
            self._look(now)
            return
        if self.oldest > order.expected:
            self._skip_to(self.oldest, "too old", now)
        elif self.mode is Mode.NACK and self.repairs.tries >= self.core.settings.nack_tries:
            self._skip_to(order.next_after_gap(), "nobody has it", now)
        self._drain(now)
        if self.mode is Mode.ACK:
            self._ack(now)
            self._arm_gap(now, self.core.settings.resend_after * 1.25)  # or it came to nothing
        elif order.lacks():
            self._arm_gap(now, self.repairs.ask(order.gaps(), self.source, now))
        self._look(now)

    def on_nack(self, seat: Seat, gaps: tuple[Range, ...]) -> None:
        """Somebody lacks messages."""
        self.repairs.on_nack(seat, gaps, self.order.expected)

    def _skip_to(self, start: int, reason: str, now: float) -> None:
        """What is missing before `start` never comes: say so; what is here is not lost."""
        order = self.order
        order.newest = max(order.newest, start - 1)
        while order.expected < start:
            first = order.first()
            early = start if first is None else first.first
            if early <= order.expected:
                before = order.expected
                self._drain(now)
                if order.expected == before and order.first() is first:
                    return  # nobody reads: the rest waits, too
                continue
            upto = min(early, start)
            self.core.counts.gaps += upto - order.expected
            if self.subscriptions:
                gap = Gap(self.topic, *self.key, order.expected, upto - 1, reason)
                self.core.effects.emit(gap)
            self._move_to(upto)

    def _move_to(self, expected: int) -> None:
        self.order.expected = expected
        self.repairs.tries = 0
        if self.relay is not None:
            self.relay.skip_to(expected)

    # -- acknowledging --------------------------------------------------------------------------

    def relay_progressed(self, now: float) -> None:
        """Those behind the relay have more."""
        if self.mode is not Mode.ACK or not self.begun or self.over:
            return
        self._drain(now)
        if self.failed:
            self._hand_over_rest(now)
            return
        if self.settled > self._acked:
            self._progressed(self._ack_bytes // 4, now)
        self._look(now)

    def resume(self, now: float) -> None:
        """A subscription has room again, or has caught up."""
        if self.over:
            return
        before = self.order.expected
        self._drain(now)
        if self.failed:
            self._hand_over_rest(now)
            return
        if self.order.expected > before and self.mode is Mode.ACK:
            self.core.effects.at_tick_end(self._ack)
        self._look(now)

    # -- the end --------------------------------------------------------------------------------

    def _end(self, now: float) -> None:
        """All of a closed stream is here."""
        if self.relay is not None and not self.relay.ended:
            self.relay.end(now, lost=self.lost)
        if self.over or self.recalls or self.settled < (self.final or 0):
            return
        self.over = True
        if self.mode is Mode.ACK:
            self._ack(now)
            self.core.effects.send(self.source, Leave(*self.id))
        if self.subscriptions:
            if self.lost:
                self.core.effects.emit(PublisherFailed(self.topic, *self.key, "its source failed"))
            else:
                self.core.effects.emit(PublisherGone(self.topic, *self.key))

    def fail(self, reason: str, now: float) -> None:
        """The source is gone: hand over what is here, say what is not; readers may take time."""
        self.failed = reason
        for request in self.recalls:
            request.give_up(reason, now)
        self._hand_over_rest(now)
        if self.subscriptions and self.begun:
            self.core.effects.emit(PublisherFailed(self.topic, *self.key, reason))

    def _hand_over_rest(self, now: float) -> None:
        """As far as there is room; it is over when nothing is left here."""
        order = self.order
        while self.begun and (chunk := order.first()) is not None:
            self._skip_to(chunk.first, self.failed, now)
            self._drain(now)
            if order.first() is chunk:
                return  # nobody reads it
        if self.recalls:
            return
        self.over = True
        if self.relay is not None:
            self.relay.end(now, lost=True)

    def check_invariants(self) -> None:
        """See the package's docstring."""
        if wrong := self.order.check():
            raise InvariantViolation(f"{self.core.me}: {self.topic}: {wrong}")
        waits = self.begun and not self.over and not self.failed
        if waits and self.order.lacks() and self._gap_at == inf:
            raise InvariantViolation(f"{self.core.me}: a gap in {self.topic} has no timer")
