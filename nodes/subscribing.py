"""Subscriptions as applications hold them: an async iterator, or a callback."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import msgspec
import trio

from nodes.topic_events import SUBSCRIPTION_EVENTS, SubscriptionEvent
from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.patterns import covers
from protocols.topics.events import Gap, PublisherAppeared
from protocols.topics.machine import Topics
from protocols.topics.subscription import Admit, Batch, Replay, Subscription, anybody

if TYPE_CHECKING:
    from nodes.node import Node

LONGEST_TURN = 0.005  # s that a reader who has much to read goes on before others run
CAPACITY = 8 << 20  # bytes that a subscription holds for its reader
GAPS = 1000  # that a subscription remembers


class Message(msgspec.Struct, frozen=True, gc=False):
    """What a subscription yields."""

    topic: str
    publisher: NodeId
    sequence: int  # counts the messages of its publisher, from 1
    sent_at: float  # Unix seconds, by the publisher's overlay time
    data: Any


class HalfRead:
    """A batch of which some messages were read: a loop that is left loses none of the others."""

    __slots__ = ("_batch", "numbered")

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.numbered = enumerate(batch.items, batch.first)

    def messages(self) -> Iterator[Message]:
        """Those that were not read yet, one by one."""
        batch = self._batch
        topic, publisher, sent_at = batch.topic, batch.publisher, batch.sent_at
        for sequence, data in self.numbered:
            yield Message(topic, publisher, sequence, sent_at, data)

    def rest(self) -> Batch | None:
        """All of them together, if there are any."""
        numbered = list(self.numbered)
        if not numbered:
            return None
        items = [data for _, data in numbered]
        return msgspec.structs.replace(self._batch, first=numbered[0][0], items=items)


NO_BATCH = Batch("", "", 1, 0.0, [], 0)


class _Subscribed:
    """What iterators and callbacks have in common: the begin, the end, and events.

    `accept` says which publishers are wanted; it is asked again for each of their events.
    """

    def __init__(
        self,
        node: Node,
        pattern: str,
        *,
        replay: Replay | None = None,
        accept: Admit = anybody,
        capacity: int = CAPACITY,
        on_event: Callable[[SubscriptionEvent], None] | None = None,
    ) -> None:
        self.pattern = pattern
        self._node = node
        self._options: dict[str, Any] = {"replay": replay, "admit": accept, "capacity": capacity}
        self._accept = accept
        self._on_event = on_event
        self._sub = Subscription(pattern, Replay(), accept, capacity)
        self._sub.open = False  # until it is replaced by one that the topics fill
        self._unlisten: Callable[[], None] = _nothing
        self._gaps: deque[Gap] = deque(maxlen=GAPS)
        self.lost = 0  # messages that are gone: the sum of all gaps

    def open(self) -> None:
        """Begin, without `async with`; `close` ends it."""
        if not self._node.is_running:
            raise LocalProtocolError(f"{self._node.name} does not run")
        self._sub = self._node.call(self._subscribe)
        self._sub.tell_gap = self._node.guarded(self._hear)
        self._sub.on_batch(self._on_batch)
        self._sub.on_crowd(lambda: self._node.driver.yield_soon())
        self._node.at_stop(self._end)
        kinds = (Gap,) if self._on_event is None else SUBSCRIPTION_EVENTS
        self._unlisten = self._node.listen(kinds, self._hear)
        if self._on_event is not None:
            for stream in self._topics.streams:  # that others subscribed to
                if stream.begun and self._sub in stream.takers():
                    self._on_event(PublisherAppeared(stream.topic, *stream.key))

    def _subscribe(self, now: float) -> Subscription:
        return self._topics.subscribe(self.pattern, now, **self._options)

    @property
    def _topics(self) -> Topics:
        return self._node.protocol(Topics)  # another one after a move

    @property
    def is_open(self) -> bool:
        """Whether messages may still arrive."""
        return self._sub.open

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What never arrives, as far as it is known; the last thousand of them."""
        return tuple(self._gaps)

    def close(self) -> None:
        """Take in no more; what has arrived can still be read."""
        if self.is_open and self._node.is_running:
            self._node.call(self._topics.unsubscribe, self._sub)
        self._end()

    def _end(self) -> None:
        self._node.forget_at_stop(self._end)
        self._unlisten()
        self._sub.open = False

    def _hear(self, event: SubscriptionEvent) -> None:
        if not covers(self.pattern, event.topic):
            return
        if not self._accept(event.publisher, event.topic):
            return
        if isinstance(event, Gap):
            self._gaps.append(event)
            self.lost += event.last - event.first + 1
        if self._on_event is not None:
            self._on_event(event)

    def _take(self) -> Batch:
        sub = self._sub
        batch = sub.take()
        if sub.held and sub.bytes * 2 <= sub.capacity:
            self._node.call(self._topics.resume, sub)
        return batch

    def _on_batch(self) -> None:
        raise NotImplementedError


class TopicSubscription(_Subscribed):
    """Yields the messages of all topics that a pattern covers; ends when it is closed.

    One task reads it. A loop that was left may be begun again: it goes on where it was.
    """

    def __init__(self, node: Node, pattern: str, **options: Any) -> None:
        super().__init__(node, pattern, **options)
        self._readers = trio.lowlevel.ParkingLot()
        self._half_read = HalfRead(NO_BATCH)
        self._turn_until = 0.0
        # One of each: a loop that is left must not leave an unfinished generator behind. One that
        # was cancelled has finished, and is replaced.
        self._by_message = self._messages()
        self._by_batch = self._batches()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        for reading in (self._by_message, self._by_batch):
            with suppress(RuntimeError):  # another task is in it, and will come to its end
                await reading.aclose()

    def __aiter__(self) -> AsyncIterator[Message]:
        if _is_over(self._by_message):
            self._by_message = self._messages()
        return self._by_message

    def batches(self) -> AsyncIterator[Batch]:
        """Consecutive messages of one publisher together: the fastest way."""
        if _is_over(self._by_batch):
            self._by_batch = self._batches()
        return self._by_batch

    async def get(self) -> Message:
        """The next message; LocalProtocolError when it is closed."""
        async for message in self:
            return message
        raise LocalProtocolError(f"the subscription to {self.pattern!r} is closed")

    async def _messages(self) -> AsyncGenerator[Message]:
        while (batch := await self._next()) is not None:
            topic, publisher, sent_at = batch.topic, batch.publisher, batch.sent_at
            self._half_read = half_read = HalfRead(batch)
            for sequence, data in half_read.numbered:
                yield Message(topic, publisher, sequence, sent_at, data)
            await self._give_way()

    async def _batches(self) -> AsyncGenerator[Batch]:
        while (batch := await self._next()) is not None:
            yield batch
            await self._give_way()

    async def _give_way(self) -> None:
        """Let others run; while much waits it is read rather than more taken in, for a while.

        Who has read all waits for more in `_next`, which is turn enough for the others.
        """
        sub = self._sub
        if not sub.queue and sub.open:
            return
        if not sub.is_crowded or trio.current_time() >= self._turn_until:
            await trio.lowlevel.checkpoint()
            self._turn_until = trio.current_time() + LONGEST_TURN

    async def _next(self) -> Batch | None:
        if rest := self._half_read.rest():
            return rest
        while not self._sub.queue:
            if not self._sub.open:
                return None
            await self._readers.park()
        return self._take()

    def _on_batch(self) -> None:
        self._readers.unpark_all()

    def _end(self) -> None:
        super()._end()
        self._readers.unpark_all()


class TopicListener(_Subscribed):
    """Calls back with each message as soon as it is here, until it is closed (§3.3).

    The callback is a plain function, and runs within the tick that took the message in: what it
    publishes leaves in the same tick. It must not wait; an error in it stops the peer, and the
    end of the peer's block raises it.
    """

    def __init__(
        self, node: Node, pattern: str, on_message: Callable[[Message], None], **options: Any
    ) -> None:
        super().__init__(node, pattern, **options)
        self._call = on_message
        self._guarded = node.guarded(self._deliver)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _on_batch(self) -> None:
        self._node.driver.host.at_tick_end(self._guarded)

    def _deliver(self, _now: float) -> None:
        while self._sub.open and self._sub.queue:
            for message in HalfRead(self._take()).messages():
                self._call(message)


def _is_over(reading: AsyncGenerator[Any]) -> bool:
    return getattr(reading, "ag_frame", None) is None


def _nothing() -> None:
    """Nobody listens."""
