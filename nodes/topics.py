"""Publishers and subscriptions as applications hold them.

async with peer.subscribe("sensors/*/temperature") as messages:
    async for message in messages:
        print(message.topic, message.data)

async with peer.publisher("sensors/7/temperature", reliability="ack") as out:
    await out.publish({"celsius": 21.5})
    await out.flush()
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

import msgspec
import trio

from overlay.errors import LocalProtocolError, OverlayError
from overlay.ids import NodeId
from protocols.topics.config import TopicConfig
from protocols.topics.machine import Topics
from protocols.topics.publishing import ITEM_BYTES, Publisher
from protocols.topics.subscription import Admit, Batch, Replay, Subscription, anybody

if TYPE_CHECKING:
    from types import TracebackType

    from nodes.node import Node

CAPACITY = 8 << 20  # bytes that a subscription holds for its reader

LONGEST_TURN = 0.005  # s that a reader who has much to read goes on before others run

_READY = frozenset({bytes})  # types that need no encoding
_encode = msgspec.msgpack.Encoder().encode


class WouldWait(OverlayError):
    """A subscriber has to catch up before more can be published: await `publish` instead."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """What a subscription yields."""

    topic: str
    publisher: NodeId
    sequence: int  # counts the messages of its publisher, from 1
    sent_at: float  # Unix seconds, by the publisher's clock
    data: Any


class TopicPublisher:
    """Publishes to one topic while its `async with` block runs; then it is closed and lingers."""

    def __init__(self, node: Node, topic: str, config: TopicConfig) -> None:
        self.topic = topic
        self.config = config
        self._node = node
        self._topics = node.protocol(Topics)
        self._out: Publisher
        self._room = trio.Event()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self.open()
        return self

    def open(self) -> None:
        """Begin, without `async with`; `close` ends it."""
        self._out = self._node.call(self._topics.publish, self.topic, self.config)
        self._out.on_room(self._on_room)
        self._node.at_stop(self._on_room)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self.is_open:
            await self.flush()
        self.close()

    # -- publishing -----------------------------------------------------------------------------

    def publish_nowait(self, data: Any) -> None:
        """Publish now; WouldWait when that would be too much for a subscriber."""
        if data.__class__ is bytes:
            size = len(data) + ITEM_BYTES
        else:
            data, size = packed(data)
        out = self._out
        left = out.left - size
        if left < 0:
            if not self._node.call(out.put, data, size):
                raise WouldWait(f"{self.topic!r}: subscribers are behind; await publish()")
            return
        out.left = left
        out.push(data)
        if len(out.items) == 1:  # the first of its chunk: the others leave with it
            self._node.call(out.wake)

    async def publish(self, data: Any) -> None:
        """Publish bytes, or anything that MessagePack can say; waits while subscribers are behind.

        Many calls share one checkpoint: a tight loop gives way once for each chunk.
        """
        if data.__class__ is bytes:
            size = len(data) + ITEM_BYTES
        else:
            data, size = packed(data)
        out = self._out
        left = out.left - size
        if left >= 0:
            out.left = left
            out.push(data)
            if len(out.items) == 1:
                self._node.call(out.wake)
            return
        while not self._node.call(out.put, data, size):
            await self._wait()
        await trio.lowlevel.checkpoint()

    async def publish_many(self, items: Iterable[Any]) -> None:
        """Publish several at once: the fastest way."""
        rest = items if isinstance(items, list) else list(items)
        if set(map(type, rest)) <= _READY:
            size = sum(map(len, rest)) + ITEM_BYTES * len(rest)
            step = max(1, len(rest) * self._out.chunk_bytes // max(1, size))
            if step >= len(rest):
                await self._publish_chunk(rest, size)
            for at in range(0, len(rest), step) if step < len(rest) else ():
                part = rest[at : at + step]
                await self._publish_chunk(part, sum(map(len, part)) + ITEM_BYTES * len(part))
        else:
            pairs = [packed(item) for item in rest]
            await self._publish_each([item for item, _ in pairs], [size for _, size in pairs])
        await trio.lowlevel.checkpoint()

    async def _publish_chunk(self, items: list[bytes], size: int) -> None:
        """Publish some that most probably fit into one chunk: their sum is all that is asked."""
        if not self._node.call(self._out.put_all, items, size):
            await self._publish_each(items, map(ITEM_BYTES.__add__, map(len, items)))

    async def _publish_each(self, items: list[Any], sizes: Iterable[int]) -> None:
        ends = list(accumulate(sizes))
        put_many, done = self._out.put_many, 0
        while True:
            done = self._node.call(put_many, items, ends, done)
            if done == len(items):
                break
            await self._wait()

    async def _wait(self) -> None:
        out = self._out
        while not out.has_room and not out.closed:
            out.waiting = True
            await self._woken()

    async def flush(self) -> None:
        """Wait until all subscribers have acknowledged everything (ack mode)."""
        out = self._out
        self._node.call(out.ask_all)
        while not out.all_settled and self._node.is_running:
            out.waiting = True
            await self._woken()
        await trio.lowlevel.checkpoint()

    async def _woken(self) -> None:
        self._room = trio.Event()
        if self._node.is_running:
            await self._room.wait()
        else:
            raise LocalProtocolError(f"{self._node.name} stopped")

    def _on_room(self) -> None:
        self._room.set()

    # -- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether it takes messages."""
        return hasattr(self, "_out") and not self._out.closed and self._node.is_running

    @property
    def subscribers(self) -> tuple[NodeId, ...]:
        """Who takes part (ack mode), or is interested."""
        return self._out.receivers

    def close(self) -> None:
        """Publish no more; it goes on to serve who lacks something, for `config.linger` at most."""
        self._node.forget_at_stop(self._on_room)
        if self.is_open:
            self._node.call(self._topics.close_publisher, self._out)


class TopicSubscription:
    """Yields the messages of all topics that a pattern covers; ends when it is closed."""

    def __init__(
        self,
        node: Node,
        pattern: str,
        *,
        replay: Replay | None = None,
        accept: Admit = anybody,
        capacity: int = CAPACITY,
    ) -> None:
        self.pattern = pattern
        self._node = node
        self._topics = node.protocol(Topics)
        self._options: dict[str, Any] = {"replay": replay, "admit": accept, "capacity": capacity}
        self._sub: Subscription
        self._readers = trio.lowlevel.ParkingLot()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self.open()
        return self

    def open(self) -> None:
        """Begin, without `async with`; `close` ends it."""
        self._sub = self._node.call(self._subscribe)
        self._sub.on_batch(self._on_batch)
        self._sub.on_crowd(self._node.driver.yield_soon)
        self._node.at_stop(self._end)

    def _subscribe(self, now: float) -> Subscription:
        return self._topics.subscribe(self.pattern, now, **self._options)

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def batches(self) -> AsyncIterator[Batch]:
        """Yield consecutive messages of one publisher together: the fastest way."""
        sub = self._sub
        queue = sub.queue
        pass_by = trio.current_time() + LONGEST_TURN
        while True:
            while queue:
                batch = sub.take()
                if sub.held and sub.bytes * 2 <= sub.capacity:
                    self._node.call(self._topics.resume, sub)
                yield batch
                # While much waits it is read rather than more taken in, but not for long.
                if not sub.is_crowded or trio.current_time() >= pass_by:
                    await trio.lowlevel.checkpoint()
                    pass_by = trio.current_time() + LONGEST_TURN
            if not sub.open:
                return
            await self._readers.park()

    async def __aiter__(self) -> AsyncIterator[Message]:
        async for batch in self.batches():
            topic, publisher, sent_at = batch.topic, batch.publisher, batch.sent_at
            sequence = batch.first
            for data in batch.items:
                yield Message(topic, publisher, sequence, sent_at, data)
                sequence += 1

    @property
    def is_open(self) -> bool:
        """Whether messages may still arrive."""
        return hasattr(self, "_sub") and self._sub.open

    def close(self) -> None:
        """Take in no more; what has arrived can still be read."""
        if self.is_open and self._node.is_running:
            self._node.call(self._topics.unsubscribe, self._sub)
        self._end()

    def _on_batch(self) -> None:
        self._readers.unpark_all()

    def _end(self) -> None:
        self._node.forget_at_stop(self._end)
        self._sub.open = False
        self._readers.unpark_all()


def packed(data: Any) -> tuple[Any, int]:
    """A value, ready for a chunk, and what it counts as there."""
    if data.__class__ is bytes:
        return data, len(data) + ITEM_BYTES
    try:
        encoded = _encode(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(f"MessagePack cannot say this: {error}") from None
    return msgspec.Raw(encoded), len(encoded) + ITEM_BYTES
