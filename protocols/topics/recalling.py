"""Asks the sender of a stream for what came before, part by part, and puts it in order.

The sender keeps nothing about it: each request says what is here already, and what is lost on the
way is asked for again. The messages after `upto` come by the stream itself, so the two never meet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.tracing import Kind
from protocols.topics.core import Core
from protocols.topics.history import Chunk
from protocols.topics.messages import LARGEST, ArrivalKey, Recall, Recalled, StreamKey
from protocols.topics.ordering import Order
from protocols.topics.packing import repack, unpack
from protocols.topics.subscription import Replay


class Recaller(Protocol):
    """What a request must know of the stream that it is about."""

    core: Core
    id: ArrivalKey
    key: StreamKey
    topic: str
    source: NodeId

    def trace(self, chunk: Chunk, via: NodeId, hops: int, kind: Kind = ...) -> None:
        """Leave a row about a chunk that subscriptions of this node got."""


class Recalling(ABC):
    """A request for the messages that `replay` wants, up to `upto`."""

    def __init__(self, stream: Recaller, replay: Replay, upto: int) -> None:
        core = stream.core
        self.serial = core.rng.getrandbits(48)
        self.over = False
        self._stream = stream
        self._core = core
        self._replay = replay
        self._upto = upto
        self._order = Order(core.settings.pending_bytes)
        self._order.newest = upto
        self._until = 0  # where the part ends that was sent last
        self._tries = 0  # in vain
        self._armed = False
        self._source_lost = ""  # why it is not asked any more

    # -- what is done with it -------------------------------------------------------------------

    @abstractmethod
    def _has_room(self) -> bool:
        """Whether more can be taken now; if not, `resume` is called when it can."""

    @abstractmethod
    def _take(self, chunk: Chunk, items: list[Any]) -> None:
        """The next messages."""

    @abstractmethod
    def _missed(self, first: int, last: int, reason: str) -> None:
        """These are gone at the sender."""

    @abstractmethod
    def _done(self, now: float) -> None:
        """All of it is here, or known to be gone."""

    # -- asking ---------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """Ask for it, unless nothing was before."""
        if not self._upto:
            self._order.expected = 1
        self.resume(now)

    def ask(self, now: float) -> None:
        """Ask for what is not here, and again after a pause."""
        if self._tries >= self._core.settings.nack_tries:
            self.give_up("nobody has it", now)
            return
        self._core.effects.send(
            self._stream.source,
            Recall(
                *self._stream.key,
                self.serial,
                max(self._order.expected - 1, 0),
                self._upto,
                self._replay.kind,
                self._replay.amount,
                self._stream.id[2],
            ),
        )
        self._arm(now)
        self._tries += 1

    def _arm(self, now: float) -> None:
        self._armed = True
        pause = self._core.settings.ask_after * min(1.5**self._tries, 10.0)
        self._core.effects.set_timer(("recall", (self._stream.id, self.serial)), now + pause)

    def on_timer(self, now: float) -> None:
        """No answer, or not all of it."""
        self._armed = False
        self.resume(now)

    def on_recalled(self, msg: Recalled, now: float) -> None:
        """A part of the answer."""
        if not msg.start or not msg.first or msg.first + msg.count > LARGEST:
            raise RemoteProtocolError("data-nonsense", f"{msg.first}, {msg.count} messages")
        chunk = Chunk(msg.first, msg.count, msg.sent_at, msg.payload, bare=msg.bare)
        if msg.count:
            unpack(chunk)  # what is malformed changes nothing
        order, start = self._order, min(msg.start, self._upto + 1)
        before = order.expected
        self._until = max(self._until, msg.until)
        if not before:
            order.expected = start
        elif start > before:
            self._skip_to(start, "gone")
        if msg.count and order.expected <= chunk.last and chunk.first <= self._upto:
            order.keep(chunk)
        if self._drain() and order.expected > before:
            self._tries = 0  # an answer that brings nothing does not hurry the next request
            if order.expected <= self._until:
                self._arm(now)
            else:
                self._armed = False
        self.resume(now)

    def resume(self, now: float) -> None:
        """Hand over what is next; ask for more when all of a part is here, or nothing came."""
        while not self.over and self._drain():
            if self._order.expected > self._upto:
                self._end(now)
            elif self._source_lost:
                self._skip_to(self._order.next_after_gap(), self._source_lost)
            else:
                if not self._armed:
                    self.ask(now)
                return

    def _drain(self) -> bool:
        """False when there is no room for what is next."""
        order = self._order
        while (chunk := order.first()) is not None and chunk.first <= order.expected:
            if chunk.last >= order.expected:
                if not self._has_room():
                    return False
                self._hand_over(chunk)
            order.drop(chunk)
        return True

    def _hand_over(self, chunk: Chunk) -> None:
        first, last = max(self._order.expected, chunk.first), min(self._upto, chunk.last)
        items = unpack(chunk)
        if (first, last) != (chunk.first, chunk.last):
            items = items[first - chunk.first : last - chunk.first + 1]
            chunk = repack(chunk, first, items)
        self._order.expected = last + 1
        self._take(chunk, items)

    def _skip_to(self, start: int, reason: str) -> None:
        """What is missing before `start` never comes; what is here of it does."""
        order = self._order
        start = min(start, order.next_after_gap())
        if start > order.expected:
            self._missed(order.expected, start - 1, reason)
            order.expected = start

    def give_up(self, reason: str, now: float) -> None:
        """Nobody answers any more: what is here is handed over, what is not is gone."""
        self._source_lost = reason
        if not self._order.expected:
            self._order.expected = self._upto + 1  # nobody said that there is anything
        self._cancel()
        self.resume(now)

    def moved(self, core: Core, now: float) -> None:
        """This node is elsewhere now, and its timers are not."""
        self._core = core
        self._armed = False
        self.resume(now)

    def stop(self) -> None:
        """Nobody wants it any more."""
        self.over = True
        self._cancel()

    def _end(self, now: float) -> None:
        self.stop()
        self._done(now)

    def _cancel(self) -> None:
        self._armed = False
        self._core.effects.cancel_timer(("recall", (self._stream.id, self.serial)))
