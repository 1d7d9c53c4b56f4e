"""A publisher of one topic, as applications hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import msgspec
import trio

from nodes.topic_events import PUBLISHER_EVENTS, PublisherEvent
from overlay.config import load_settings
from overlay.errors import LocalProtocolError, OverlayError
from overlay.ids import NodeId
from overlay.toml_source import Source
from protocols.membership.events import AttributesChanged, MemberJoined
from protocols.topics.config import TopicConfig
from protocols.topics.events import StreamEnded, SubscriberJoined, SubscriberLeft
from protocols.topics.machine import Topics
from protocols.topics.publishing import ITEM_BYTES, Publisher

if TYPE_CHECKING:
    from types import TracebackType

    from nodes.node import Node

_encode = msgspec.msgpack.Encoder().encode
_READY = {bytes, msgspec.Raw}


class WouldWait(OverlayError):
    """A subscriber has to catch up before more can be published: await `publish` instead."""


class TopicPublisher:
    """Publishes to one topic while its `async with` block runs; then it is closed and lingers."""

    def __init__(
        self,
        node: Node,
        topic: str,
        config: TopicConfig,
        *,
        on_event: Callable[[PublisherEvent], None] | None = None,
    ) -> None:
        self.topic = topic
        self.config = config
        self._node = node
        self._on_event = on_event
        self._unlisten: Callable[[], None] = _nothing
        self._out = cast("Publisher", _Unopened(topic))
        self._waiting = trio.lowlevel.ParkingLot()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        self.open()
        return self

    def open(self) -> None:
        """Begin, without `async with`; `close` ends it."""
        if self._on_event is not None:
            self._unlisten = self._node.listen(PUBLISHER_EVENTS, self._hear)
        try:
            self._out = self._node.call(self._topics.publish, self.topic, self.config)
        except BaseException:
            self._unlisten()
            raise
        self._out.on_room(self._on_room)
        self._node.at_stop(self._on_room)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and self.is_open:
                await self.flush()
        finally:
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
            self._node.driver.at_tick_end(out.flush)

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
                self._node.driver.at_tick_end(out.flush)
            return
        while not self._node.call(out.put, data, size):
            await self._wait()
        await trio.lowlevel.checkpoint()

    async def publish_many(self, items: Iterable[Any]) -> None:
        """Publish several at once: the fastest way.

        When one of them cannot be published those before it are: LocalProtocolError says why.
        """
        rest = items if isinstance(items, list) else list(items)
        if set(map(type, rest)) <= _READY:
            size = sum(map(len, rest)) + ITEM_BYTES * len(rest)
            step = max(1, len(rest) * self._out.chunk_bytes // max(1, size))
            if step >= len(rest):
                await self._publish_chunk(rest, size)
            elif step == 1:  # long ones, each a chunk of its own: together they leave as one frame
                await self._publish_each(rest, map(ITEM_BYTES.__add__, map(len, rest)))
            else:
                for at in range(0, len(rest), step):
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
        """Until there may be more room: there may be some already, but not enough."""
        self._out.waiting = True
        await self._woken()

    async def flush(self) -> None:
        """Wait until all subscribers have acknowledged everything (ack mode)."""
        out = self._out
        self._node.call(out.ask_all)
        while not out.all_settled and self._node.is_running:
            out.waiting = True
            await self._woken()
        await trio.lowlevel.checkpoint()

    async def wait_for_subscribers(self, count: int = 1) -> None:
        """Wait until so many take part; a gateway is one, whoever is behind it in other zones."""
        node = self._node
        kinds = (SubscriberJoined, SubscriberLeft, MemberJoined, AttributesChanged)
        with node.events(*kinds) as changes:
            while len({*self.subscribers, *self.gateways}) < count:
                if not self.is_open:
                    raise LocalProtocolError(f"the publisher of {self.topic!r} is closed")
                async for _ in changes:
                    break
        await trio.lowlevel.checkpoint()

    async def _woken(self) -> None:
        if not self._node.is_running:
            raise LocalProtocolError(f"{self._node.name} stopped")
        await self._waiting.park()

    def _on_room(self) -> None:
        self._waiting.unpark_all()

    @property
    def _topics(self) -> Topics:
        return self._node.protocol(Topics)  # another one after a move

    # -- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether it takes messages."""
        return not self._out.closed and self._node.is_running

    @property
    def subscribers(self) -> tuple[NodeId, ...]:
        """Who takes part (ack mode), or is interested, in this zone."""
        return self._out.receivers

    @property
    def gateways(self) -> tuple[NodeId, ...]:
        """Who takes part for subscribers in other zones."""
        return tuple(self._out.gateways())

    @property
    def published(self) -> int:
        """How many messages were published: the number of the last one."""
        return self._out.next_number - 1

    @property
    def unacknowledged(self) -> int:
        """How many of them some subscriber has not acknowledged yet (ack mode)."""
        return self.published - self._out.settled_upto

    def check_size(self, size: int) -> None:
        """LocalProtocolError when a message of so many encoded bytes cannot be published."""
        self._out.check_size(size + ITEM_BYTES)

    def close(self) -> None:
        """Publish no more; it goes on to serve who lacks something, for `config.linger` at most."""
        self._node.forget_at_stop(self._on_room)
        if self.is_open:
            self._node.call(self._topics.close_publisher, self._out)
        self._waiting.unpark_all()

    async def wait_closed(self) -> None:
        """Close, and wait until it has lingered: all have it (ack mode), or `linger` is over."""
        with self._node.events(StreamEnded) as ends:
            self.close()
            while not self._out.finished and self._node.is_running:
                async for _ in ends:
                    break
        await trio.lowlevel.checkpoint()

    def _hear(self, event: PublisherEvent) -> None:
        if event.stream != self._out.key[1]:
            return
        assert self._on_event is not None
        self._on_event(event)
        if isinstance(event, StreamEnded):
            self._unlisten()


class _Unopened:
    """In the place of a stream that did not begin yet: all that it is asked for is refused."""

    left = -1  # no message ever takes the fast path
    closed = finished = True
    key = ("", -1)
    receivers: tuple[NodeId, ...] = ()
    next_number = 1
    settled_upto = 0
    chunk_bytes = 1

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def _refuse(self, *_: object) -> NoReturn:
        raise LocalProtocolError(
            f"the publisher of {self._topic!r} is not open: use it in `async with`"
        )

    def gateways(self) -> tuple[NodeId, ...]:
        """Nobody."""
        return ()

    put = put_all = put_many = ask_all = check_size = _refuse


def topic_config(config: TopicConfig | None, options: Mapping[str, Any]) -> TopicConfig:
    """The config with these fields replaced; ConfigError names the one that cannot be."""
    loaded = load_settings({"topic": TopicConfig}, Source("publisher", {"topic": dict(options)}))
    if config is None:
        config = TopicConfig()
    told = loaded["topic"]
    return msgspec.structs.replace(config, **{key: getattr(told, key) for key in options})


def packed(data: Any) -> tuple[Any, int]:
    """A value, ready for a chunk, and what it counts as there."""
    if data.__class__ in _READY:
        return data, len(data) + ITEM_BYTES
    try:
        encoded = _encode(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalProtocolError(f"MessagePack cannot say this: {error}") from None
    return msgspec.Raw(encoded), len(encoded) + ITEM_BYTES


def _nothing() -> None:
    """Nobody listens."""
