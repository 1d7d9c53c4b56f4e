"""One stream as it arrives at a node: put in order, handed over, acknowledged or asked for.

What is handed over goes to the subscriptions of this node, and to a relay if this node is a
gateway. Messages are compared by ranges of numbers; nothing is done for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import msgspec

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from protocols.topics.core import Core
from protocols.topics.events import Gap, PublisherAppeared, PublisherFailed, PublisherGone
from protocols.topics.history import Chunk, History
from protocols.topics.messages import (
    ASK,
    LARGEST,
    LAST,
    LOST,
    MOST_GAPS,
    REPLAY_ALL,
    REPLAY_LAST,
    REPLAY_SINCE,
    Accept,
    Ack,
    Data,
    Leave,
    Nack,
    Offer,
    Range,
    StreamKey,
)
from protocols.topics.modes import Mode
from protocols.topics.relaying import Relay
from protocols.topics.subscription import Batch, Replay, Subscription

MESSAGE_BYTES = 16  # that each message counts as in a queue, besides its own

_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder().decode
_encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode

UNDECODABLE = (msgspec.DecodeError, ValueError, RecursionError, TypeError)


class Incoming:
    """What this node knows of a stream that it gets."""

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, source: NodeId, now: float
    ) -> None:
        self.core = core
        self.key = key
        self.topic = topic
        self.mode = mode
        self.source = source  # who sends it: its publisher, or a gateway
        self.receiver = core.rng.getrandbits(48)
        self.expected = 0  # the next message to hand over; 0: where it begins is not known yet
        self.newest = 0  # of which we heard
        self.oldest = 0  # that the source still has
        self.final: int | None = None  # the last one, once its publisher closed
        self.lost = False  # and that because it failed
        self.over = False
        self.heard_at = now
        self.lost_at: float | None = None  # when membership removed the source
        self.subscriptions: list[Subscription] = []
        self.relay: Relay | None = None
        self.recent = History()  # to help others out, in nack mode
        self._pending: dict[int, Chunk] = {}  # by first, which came too early or found no room
        self._pending_bytes = 0
        self._ack_bytes = 1 << 18
        self._since_ack = 0  # bytes
        self._acked = 0
        self._ack_armed = False
        self._asked_accept = -inf
        self._via: NodeId = source  # who handed the last chunk on
        self._hops = 1
        self._gap_armed = False
        self._tries = 0
        self._wanting: dict[NodeId, tuple[Range, ...]] = {}  # who asked us for what we lack

    # -- handshake ------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether we know where it begins."""
        return self.expected > 0

    @property
    def settled(self) -> int:
        """Everybody behind this node has all up to here."""
        have = self.expected - 1
        if self.relay is not None:
            have = min(have, self.relay.floor)
        return max(have, 0)

    def accept(self, src: NodeId, offer: Offer, now: float) -> None:
        """Take part, from where we are; or from where the sender says, if we are new to it."""
        self.source = src
        self.heard_at = now
        self.lost_at = None
        self._ack_bytes = max(1, int(offer.window * self.core.settings.ack_share))
        self._send_accept(now)

    def _send_accept(self, now: float) -> None:
        if now - self._asked_accept < self.core.settings.resend_after:
            return
        self._asked_accept = now
        replay = self.replay()
        have = self.settled if self.begun else 0
        accept = Accept(*self.key, self.receiver, have, replay.kind, replay.amount)
        self.core.effects.send(self.source, accept)

    def replay(self) -> Replay:
        """The most that any of its subscriptions wants; gateways take all there is."""
        if self.relay is not None:
            return Replay.all()
        wanted = [one.replay for one in self.subscriptions]
        for kind in (REPLAY_ALL, REPLAY_SINCE, REPLAY_LAST):
            amounts = [one.amount for one in wanted if one.kind == kind]
            if amounts:
                return Replay(kind, max(amounts) if kind == REPLAY_LAST else min(amounts))
        return Replay()

    def on_begin(self, src: NodeId, start: int, now: float) -> None:
        """Where it begins, or goes on."""
        if src != self.source:
            self.core.counts.stray += 1
            return
        if not self.begun:
            # What is here already counts, though it was sent before we were known there.
            self._begin(max(1, min(start, min(self._pending, default=start))), now)
        elif start > self.expected:
            self._skip_to(start, "gone", now)
        self._drain(now)
        self._look(now)

    def _begin(self, start: int, now: float) -> None:
        self.expected = start
        self._acked = start - 1
        self.newest = max(self.newest, start - 1)
        if self.relay is not None:
            self.relay.begin(start, now)
        if self.subscriptions:
            self.core.effects.emit(PublisherAppeared(self.topic, *self.key))

    def resume_at(self, expected: int, now: float) -> None:
        """Go on where an earlier life of this stream here had ended."""
        self._begin(expected, now)

    def _wait_for_begin(self, msg: Data, now: float) -> None:
        """The first word may have been lost: its sender knows since when we are interested."""
        if msg.count:
            self._keep(Chunk(msg.first, msg.count, msg.sent_at, msg.payload))
        self._send_accept(now)
        if not self._gap_armed:
            self._gap_armed = True
            self.core.effects.set_timer(("gap", self.key), now + self.core.settings.nack_again)

    def _begin_without_answer(self, now: float) -> None:
        self._tries += 1
        if self._tries < self.core.settings.nack_tries:
            self._gap_armed = True
            self.core.effects.set_timer(("gap", self.key), now + self.core.settings.nack_again)
            self._send_accept(now)
        else:
            self._tries = 0
            self._begin(min(self._pending, default=self.newest + 1), now)
            self._drain(now)
            self._look(now)

    # -- data -----------------------------------------------------------------------------------

    def on_data(self, source: NodeId, msg: Data, via: NodeId, hops: int, now: float) -> None:
        """Some messages, or only how far the stream is; `via` handed on what `source` sent."""
        if msg.first == 0 or msg.first + msg.count > LARGEST:
            raise RemoteProtocolError("data-nonsense", f"{msg.first}, {msg.count} messages")
        genuine = msg.oldest > 0  # else it is a repair, by somebody who happens to have it
        if genuine and self.mode is not Mode.ACK:
            self.source = source
        if genuine and source == self.source:
            self.heard_at = now
            self.lost_at = None
            self.oldest = max(self.oldest, msg.oldest)
        self._via, self._hops = via, hops
        if msg.count and self._wanting:
            self._pass_on(msg)
        if self.mode is Mode.UNORDERED:
            self._on_unordered(msg, now)
            return
        last = msg.first + msg.count - 1
        self.newest = max(self.newest, last)
        if not self.begun:
            if self.mode is Mode.ACK:
                self._send_accept(now)
                return
            if self.mode is Mode.NACK:
                self._wait_for_begin(msg, now)
                return
            self._begin(max(msg.first, 1), now)
        if msg.flags & LAST:
            self.final, self.lost = last, bool(msg.flags & LOST)
        if msg.count:
            self._on_chunk(Chunk(msg.first, msg.count, msg.sent_at, msg.payload), now)
        if msg.flags & ASK and self.mode is Mode.ACK:
            self.core.effects.at_tick_end(self._ack)
        self._look(now)

    def _on_chunk(self, chunk: Chunk, now: float) -> None:
        if chunk.last < self.expected:
            self.core.counts.duplicates += chunk.count
            if self.mode is Mode.ACK:
                self._ack_soon(now)
            return
        if chunk.first <= self.expected:
            if self._hand_over(chunk, now):
                if self._pending:
                    self._drain(now)
                return
            self.core.counts.held_back += 1
        elif self.subscriptions:
            unpack(chunk)  # what is malformed must not wait in the way of others
        self._keep(chunk)

    def _keep(self, chunk: Chunk) -> None:
        known = self._pending.get(chunk.first)
        if known is not None:
            self.core.counts.duplicates += chunk.count
            return
        size = len(chunk.payload) + MESSAGE_BYTES * chunk.count
        if self._pending_bytes + size > self.core.settings.pending_bytes and self._pending:
            self.core.counts.held_back += 1  # it will be sent again
            return
        self._pending[chunk.first] = chunk
        self._pending_bytes += size

    def _drain(self, now: float) -> None:
        """Hand over what waited and is next."""
        while self._pending:
            first = min(self._pending) if len(self._pending) > 1 else next(iter(self._pending))
            chunk = self._pending[first]
            if chunk.last < self.expected:
                self._forget(chunk)
                self.core.counts.duplicates += chunk.count
                continue
            if chunk.first > self.expected or not self._hand_over(chunk, now):
                return
            self._forget(chunk)

    def _forget(self, chunk: Chunk) -> None:
        del self._pending[chunk.first]
        self._pending_bytes -= len(chunk.payload) + MESSAGE_BYTES * chunk.count

    def _hand_over(self, chunk: Chunk, now: float) -> bool:
        """Give what is next to everybody behind this node; False when somebody has no room."""
        if not self._has_room():
            return False
        skip = self.expected - chunk.first
        items: list[Any] | None = None
        if self.subscriptions or skip:
            items = unpack(chunk)
            if skip:
                del items[:skip]
                chunk = Chunk(self.expected, len(items), chunk.sent_at, _encode(items))
        self.expected = chunk.last + 1
        self._tries = 0
        if items is not None:
            self._deliver(chunk, items)
        if self.relay is not None:
            self.relay.take(chunk, now)
        elif self.mode is Mode.ACK:
            self._progressed(len(chunk.payload), now)
        if self.mode is Mode.NACK and self.relay is None:
            self._remember(chunk)
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
        size = len(chunk.payload) + MESSAGE_BYTES * chunk.count
        batch = Batch(self.topic, self.key[0], chunk.first, chunk.sent_at, items, size)
        for one in self.subscriptions:
            if one.has_room:
                one.put(batch)
                self.core.counts.delivered += chunk.count
            else:
                self.core.counts.dropped += chunk.count

    def _on_unordered(self, msg: Data, now: float) -> None:
        self.newest = max(self.newest, msg.first + msg.count - 1)
        self.expected = self.newest + 1
        if msg.flags & LAST:
            self.final = self.newest
        if msg.count:
            chunk = Chunk(msg.first, msg.count, msg.sent_at, msg.payload)
            if self.subscriptions:
                self._deliver(chunk, unpack(chunk))
            if self.relay is not None:
                self.relay.take(chunk, now)
        self._look(now)

    def _remember(self, chunk: Chunk) -> None:
        recent = self.recent
        recent.add(chunk.first, chunk.count, chunk.sent_at, chunk.payload)
        while recent.bytes > self.core.settings.repair_bytes and len(recent):
            recent.drop_oldest()

    # -- what is missing ------------------------------------------------------------------------

    def gaps(self) -> tuple[Range, ...]:
        """What did not arrive, of all that we heard of; the first ranges of it."""
        found: list[Range] = []
        after = self.expected - 1
        for first in sorted(self._pending):
            if first > after + 1:
                found.append((after + 1, first - 1))
                if len(found) == MOST_GAPS:
                    return tuple(found)
            after = max(after, self._pending[first].last)
        if after < self.newest:
            found.append((after + 1, self.newest))
        return tuple(found)

    def _lacks(self) -> bool:
        """Whether the next message did not arrive though later ones are known."""
        return self.expected <= self.newest and self.expected not in self._pending

    def _look(self, now: float) -> None:
        """See to what is missing, and to the end."""
        if not self.begun:
            return
        if self._lacks() and not self._gap_armed:
            self._gap_armed = True
            settings = self.core.settings
            if self.mode is Mode.ACK:
                pause = settings.gap_delay
            elif self.mode is Mode.ORDERED:
                pause = settings.order_wait
            else:
                pause = settings.nack_delay * self._hops * self.core.rng.uniform(0.5, 1.0)
            self.core.effects.set_timer(("gap", self.key), now + pause)
        if self.final is not None and self.expected > self.final:
            self._end(now)

    def on_gap_timer(self, now: float) -> None:
        """A gap is still there, or not."""
        self._gap_armed = False
        if self.over:
            return
        if not self.begun:
            self._begin_without_answer(now)
            return
        if not self._lacks():
            return
        if self.mode is Mode.ORDERED:
            first = min(self._pending) if self._pending else self.newest + 1
            self.core.counts.skipped += first - self.expected
            self._move_to(first)
            self._drain(now)
            self._look(now)
            return
        self._gap_armed = True
        settings = self.core.settings
        if self.oldest > self.expected:
            self._skip_to(self.oldest, "too old", now)
            self._drain(now)
        if self.mode is Mode.ACK:
            self._ack(now)
            pause = settings.ask_after
        else:
            pause = self._ask_for_missing(now)
        self._gap_armed = self._lacks()
        if self._gap_armed:
            self.core.effects.set_timer(("gap", self.key), now + pause)
        else:
            self._look(now)

    def _ask_for_missing(self, now: float) -> float:
        """Send a Nack to somebody; returns the pause before the next one."""
        settings = self.core.settings
        if not self._lacks():
            return 0.0
        if self._tries >= settings.nack_tries:
            first = min(self._pending) if self._pending else self.newest + 1
            self._skip_to(first, "nobody has it", now)
            self._drain(now)
            self._tries = 0
            return settings.nack_again
        self._tries += 1
        self.core.counts.nacks += 1
        self.core.effects.send(self._repairer(), Nack(*self.key, self.gaps()))
        return settings.nack_again * min(1.5 ** (self._tries - 1), 10.0)

    def _repairer(self) -> NodeId:
        """Whom to ask: who handed chunks on to us, the source, or anybody who shares the topic."""
        choice = (self._tries - 1) % 3
        if choice == 2:
            others = [
                peer for peer in self.core.audience.interested(self.topic) if peer != self.core.me
            ]
            if others:
                return self.core.rng.choice(others)
        return self._via if choice == 0 else self.source

    def on_nack(self, src: NodeId, gaps: tuple[Range, ...], now: float) -> None:
        """Somebody lacks messages: send those that we have, and the others when they come."""
        lacking: list[Range] = []
        budget = self.core.settings.repair_bytes
        for first, last in gaps:
            for chunk in self.recent.overlapping(first, last):
                if budget <= 0:
                    return
                budget -= len(chunk.payload)
                self.core.counts.repairs += 1
                self.core.effects.send(src, self._repair(chunk))
            if last >= self.expected or not len(self.recent):
                lacking.append((first, last))
        if lacking and len(self._wanting) < 1024:
            self._wanting[src] = tuple(lacking)

    def ask_upstream(self, gaps: tuple[Range, ...]) -> None:
        """A relay lacks what somebody behind it asks for: its source may have it."""
        self.core.counts.nacks += 1
        self.core.effects.send(self.source, Nack(*self.key, gaps))

    def _repair(self, chunk: Chunk) -> Data:
        origin, stream = self.key
        return Data(
            origin,
            stream,
            self.topic,
            self.mode,
            chunk.first,
            chunk.count,
            0,  # what the source still has we do not know
            chunk.sent_at,
            0,
            chunk.payload,
        )

    def _pass_on(self, msg: Data) -> None:
        last = msg.first + msg.count - 1
        for peer, ranges in list(self._wanting.items()):
            if any(first <= last and msg.first <= upto for first, upto in ranges):
                self.core.counts.repairs += 1
                chunk = Chunk(msg.first, msg.count, msg.sent_at, msg.payload)
                self.core.effects.send(peer, self._repair(chunk))
                rest = tuple(r for r in ranges if r[1] > last)
                if rest:
                    self._wanting[peer] = rest
                else:
                    del self._wanting[peer]

    def _skip_to(self, start: int, reason: str, now: float) -> None:
        """What is missing before `start` never comes: say so; what is here is not lost."""
        self.newest = max(self.newest, start - 1)
        while self.expected < start:
            early = min(self._pending, default=start)
            if early <= self.expected:
                before = self.expected
                self._drain(now)
                if self.expected == before and early in self._pending:
                    return  # nobody reads: the rest waits, too
                continue
            upto = min(early, start)
            self.core.counts.gaps += upto - self.expected
            if self.subscriptions:
                gap = Gap(self.topic, *self.key, self.expected, upto - 1, reason)
                self.core.effects.emit(gap)
            self._move_to(upto)

    def _move_to(self, expected: int) -> None:
        self.expected = expected
        if self.relay is not None:
            self.relay.skip_to(expected)

    # -- acknowledging --------------------------------------------------------------------------

    def _progressed(self, size: int, now: float) -> None:
        self._since_ack += size
        if self._since_ack >= self._ack_bytes:
            self.core.effects.at_tick_end(self._ack)
        elif not self._ack_armed:
            self._ack_soon(now)

    def relay_progressed(self, now: float) -> None:
        """Those behind the relay have more."""
        if self.mode is not Mode.ACK or not self.begun:
            return
        self._drain(now)
        if self.settled > self._acked:
            self._progressed(self._ack_bytes // 4, now)
        self._look(now)

    def _ack_soon(self, now: float) -> None:
        if not self._ack_armed:
            self._ack_armed = True
            self.core.effects.set_timer(("ack", self.key), now + self.core.settings.ack_every)

    def on_ack_timer(self, now: float) -> None:
        """What was received since the last ack waits for its acknowledgement."""
        self._ack_armed = False
        self._ack(now)

    def _ack(self, now: float) -> None:
        if not self.begun or self.mode is not Mode.ACK:
            return
        self._since_ack = 0
        self._acked = self.settled
        self.core.counts.acks += 1
        self.core.effects.send(self.source, Ack(*self.key, self.receiver, self._acked, self.gaps()))

    def resume(self, now: float) -> None:
        """A subscription has room again."""
        before = self.expected
        self._drain(now)
        if self.expected > before and self.mode is Mode.ACK:
            self.core.effects.at_tick_end(self._ack)
        self._look(now)

    # -- the end --------------------------------------------------------------------------------

    def _end(self, now: float) -> None:
        """All of a closed stream is here."""
        if self.relay is not None and not self.relay.ended:
            self.relay.end(now, lost=self.lost)
        if self.settled < (self.final or 0) or self.over:
            return
        self.over = True
        if self.mode is Mode.ACK:
            self._ack(now)
            self.core.effects.send(self.source, Leave(*self.key))
        if self.subscriptions:
            if self.lost:
                self.core.effects.emit(PublisherFailed(self.topic, *self.key, "its source failed"))
            else:
                self.core.effects.emit(PublisherGone(self.topic, *self.key))

    def fail(self, reason: str, now: float) -> None:
        """The source is gone: hand over what is here, say what is not."""
        while self._pending and self.begun:
            first = min(self._pending)
            if first > self.expected:
                self._skip_to(first, reason, now)
            before = self.expected
            self._drain(now)
            if self.expected == before:
                break  # nobody reads it
        self.over = True
        if self.relay is not None:
            self.relay.end(now, lost=True)
        if self.subscriptions and self.begun:
            self.core.effects.emit(PublisherFailed(self.topic, *self.key, reason))

    def check_invariants(self) -> None:
        """See the package's docstring."""
        size = sum(
            len(chunk.payload) + MESSAGE_BYTES * chunk.count for chunk in self._pending.values()
        )
        if size != self._pending_bytes:
            raise InvariantViolation(
                f"{self.core.me}: {size} bytes wait, not {self._pending_bytes}"
            )
        if self.begun and self.newest < self.expected - 1:
            raise InvariantViolation(
                f"{self.core.me}: handed over {self.expected - 1} of {self.newest} of {self.topic}"
            )
        if self.begun and self._lacks() and not self._gap_armed and not self.over:
            raise InvariantViolation(f"{self.core.me}: a gap in {self.topic} has no timer")


def unpack(chunk: Chunk) -> list[Any]:
    """The messages of a chunk; RemoteProtocolError when it holds something else."""
    try:
        items = _decode(chunk.payload)
    except UNDECODABLE as error:
        raise RemoteProtocolError("malformed-chunk", str(error)) from None
    if not isinstance(items, list) or len(items) != chunk.count:
        raise RemoteProtocolError("malformed-chunk", f"not {chunk.count} messages")
    return items
