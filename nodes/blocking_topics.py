"""Publishers and subscriptions for threads that do not run trio, and for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import trio

from nodes.publishing import packed
from nodes.subscribing import NO_BATCH, HalfRead, Message
from overlay.errors import LocalProtocolError
from protocols.topics.publishing import ITEM_BYTES
from protocols.topics.subscription import Batch

if TYPE_CHECKING:
    from nodes.peer import Peer
    from nodes.topic_events import PublisherEvent
    from protocols.topics.config import TopicConfig

T = TypeVar("T")

WAITING_BYTES = 4 << 20  # between the two threads, in each direction; then one waits for the other


class PeerThread(Protocol):
    """What these need of the thread that runs the peer: nodes.blocking.Peer."""

    def submit(self, function: Callable[..., Awaitable[T]], *args: Any) -> Future[T]:
        """Run an async function there."""

    def call(self, function: Callable[..., Awaitable[T]], *args: Any, timeout: float | None) -> T:
        """Run it, and wait."""

    def soon(self, function: Callable[[], object]) -> None:
        """Run a plain function there."""


class Publisher:
    """Publishes to one topic from any thread; opened when it is made."""

    def __init__(
        self,
        thread: PeerThread,
        peer: Peer,
        topic: str,
        config: TopicConfig | None,
        *,
        on_event: Callable[[PublisherEvent], None] | None,
        options: dict[str, Any],
    ) -> None:
        self.topic = topic
        self._thread = thread
        self._change = threading.Condition()
        self._items: list[Any] = []  # not taken over by the peer's thread yet
        self._bytes = 0
        self._woken = False  # the peer's thread is told to look
        self._error: BaseException | None = None
        self._closed = False
        self._work: trio.Event
        self._idle: trio.Event

        async def begin() -> None:
            self._out = peer.publisher(topic, config, on_event=on_event, **options)
            self._out.open()
            self._work, self._idle = trio.Event(), trio.Event()
            self._idle.set()

        thread.call(begin, timeout=None)
        self.config = self._out.config
        self._pump = thread.submit(self._move)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self.is_open:
                self.flush()
        finally:
            self.abandon()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self.is_open:
                await asyncio.wrap_future(self._thread.submit(self._flush))
        finally:
            self.abandon()

    # -- publishing -----------------------------------------------------------------------------

    def publish(self, data: Any, *, timeout: float | None = None) -> None:
        """Publish bytes, or anything that MessagePack can say; waits while others are behind."""
        self.publish_many((data,), timeout=timeout)

    def publish_many(self, items: Iterable[Any], *, timeout: float | None = None) -> None:
        """Publish several; TimeoutError means that not all were taken."""
        ready = [self._checked(item) for item in items]
        deadline = None if timeout is None else time.monotonic() + timeout
        done = 0
        while done < len(ready):
            with self._change:
                while not self._has_room():
                    pause = None if deadline is None else deadline - time.monotonic()
                    if pause is not None and pause <= 0:
                        raise TimeoutError(f"{self.topic!r}: subscribers are behind")
                    self._change.wait(pause)
                done = self._append(ready, done)
            self._wake()

    async def publish_async(self, data: Any) -> None:
        """The same for asyncio: waits without a thread while others are behind."""
        item = self._checked(data)
        while True:
            with self._change:
                if self._has_room():
                    self._append([item], 0)
                    break
            await asyncio.wrap_future(self._thread.submit(self._some_room))
        self._wake()

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait until all subscribers have acknowledged everything (ack mode)."""
        self._thread.call(self._flush, timeout=timeout)

    def wait_for_subscribers(self, count: int = 1, *, timeout: float | None = None) -> None:
        """Wait until so many take part."""
        self._thread.call(self._out.wait_for_subscribers, count, timeout=timeout)

    def _checked(self, data: Any) -> tuple[Any, int]:
        item, size = packed(data)
        self._out.check_size(size - ITEM_BYTES)
        return item, size

    def _has_room(self) -> bool:
        """With the lock: whether a message may be appended; raises what stopped the others."""
        if self._error is not None:
            raise LocalProtocolError(str(self._error)) from self._error
        if self._closed:
            raise LocalProtocolError(f"the publisher of {self.topic!r} is closed")
        return self._bytes < WAITING_BYTES

    def _append(self, ready: list[tuple[Any, int]], done: int) -> int:
        """With the lock: take over what the bound allows, one too many at most."""
        while done < len(ready) and self._bytes < WAITING_BYTES:
            item, size = ready[done]
            self._items.append(item)
            self._bytes += size
            done += 1
        return done

    def _wake(self) -> None:
        if not self._woken:  # a race only costs a second look
            self._woken = True
            self._thread.soon(self._look)

    # -- in the peer's thread -------------------------------------------------------------------

    def _look(self) -> None:
        self._idle = trio.Event() if self._idle.is_set() else self._idle
        self._work.set()

    async def _move(self) -> None:
        """Hand over to the topic what threads appended."""
        try:
            while True:
                await self._work.wait()
                self._work = trio.Event()
                self._woken = False
                while True:
                    with self._change:
                        items, self._items = self._items, []
                        self._bytes = 0
                        self._change.notify_all()
                    if not items:
                        break
                    await self._out.publish_many(items)
                self._idle.set()
        except LocalProtocolError as error:
            self._error = error
        finally:
            with self._change:
                self._closed = True
                self._change.notify_all()
            self._idle.set()

    async def _some_room(self) -> None:
        await self._idle.wait()

    async def _handed_over(self) -> None:
        while not self._pump.done() and (self._items or not self._idle.is_set()):
            self._look()
            await self._idle.wait()
        if self._error is not None:
            raise LocalProtocolError(str(self._error)) from self._error

    async def _flush(self) -> None:
        await self._handed_over()
        await self._out.flush()

    # -- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether it takes messages."""
        return not self._closed and self._out.is_open

    @property
    def subscribers(self) -> tuple[str, ...]:
        """Who takes part (ack mode), or is interested, in this zone."""
        return self._out.subscribers

    @property
    def gateways(self) -> tuple[str, ...]:
        """Who takes part for subscribers in other zones."""
        return self._out.gateways

    @property
    def published(self) -> int:
        """How many messages the topic took over so far."""
        return self._out.published

    @property
    def unacknowledged(self) -> int:
        """How many of them some subscriber has not acknowledged yet (ack mode)."""
        return self._out.unacknowledged

    def wait_closed(self, *, timeout: float | None = None) -> None:
        """Close, and wait until it has lingered: all have it (ack mode), or `linger` is over."""
        self.close(timeout=timeout)
        self._thread.call(self._out.wait_closed, timeout=timeout)

    def abandon(self) -> None:
        """Close without waiting: what the topic did not take over yet is dropped."""
        self._end(hand_over=False)

    def close(self, *, timeout: float | None = None) -> None:
        """Publish no more; waits until the topic took over what was published so far."""
        self._end(hand_over=True, timeout=timeout)

    def _end(self, *, hand_over: bool, timeout: float | None = None) -> None:
        with self._change:
            if self._closed:
                return
            self._closed = True
            self._change.notify_all()

        async def end() -> None:
            try:
                if hand_over:
                    await self._handed_over()
            finally:
                self._pump.cancel()
                self._out.close()

        try:
            self._thread.call(end, timeout=timeout)
        except LocalProtocolError:
            if self._out.is_open:
                raise  # else the peer stopped, and closed it


class Subscription:
    """Messages that arrive, for a `for` loop in any thread; begun when it is made."""

    def __init__(
        self,
        thread: PeerThread,
        peer: Peer,
        pattern: str,
        options: dict[str, Any],
        timeout: float | None,
    ) -> None:
        self.pattern = pattern
        self.timeout = timeout
        self._thread = thread
        self._change = threading.Condition()
        self._batches: deque[Batch] = deque()
        self._bytes = 0
        self._half_read = HalfRead(NO_BATCH)
        self._ended = False
        self._room: trio.Event | None = None  # the peer's thread waits for it
        self._waiters: list[Callable[[], object]] = []  # of asyncio loops

        async def begin() -> None:
            self._inner = peer.subscribe(pattern, **options)
            self._inner.open()

        thread.call(begin, timeout=None)
        self._pump = thread.submit(self._move)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # -- reading --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Message]:
        """Until it is closed, or the peer stops; TimeoutError when none comes for `timeout`.

        A loop that was left may be begun again, by the same thread: it goes on where it was.
        """
        while True:
            yield from self._half_read.messages()
            batch = self._next(self.timeout)
            if batch is None:
                return
            self._half_read = HalfRead(batch)

    def batches(self) -> Iterator[Batch]:
        """Consecutive messages of one publisher together: the fastest way."""
        if rest := self._half_read.rest():
            yield rest
        while (batch := self._next(self.timeout)) is not None:
            yield batch

    def get(self, *, timeout: float | None = None) -> Message:
        """The next message, for one thread; TimeoutError, or LocalProtocolError at the end."""
        for message in self._half_read.messages():
            return message
        batch = self._next(timeout)
        if batch is None:
            raise LocalProtocolError(f"the subscription to {self.pattern!r} is closed")
        self._half_read = HalfRead(batch)
        return next(self._half_read.messages())

    async def __aiter__(self) -> AsyncIterator[Message]:
        """The same for asyncio, without a thread."""
        loop = asyncio.get_running_loop()
        while True:
            for message in self._half_read.messages():
                yield message
            news: asyncio.Future[None] = loop.create_future()
            with self._change:
                batch = self._taken()
                if batch is None:
                    if self._ended:
                        return
                    wake = partial(loop.call_soon_threadsafe, _resolve, news)
                    self._waiters.append(wake)
            if batch is None:
                try:
                    async with asyncio.timeout(self.timeout):
                        await news
                finally:
                    self._forget(wake)
                continue
            self._half_read = HalfRead(batch)

    def _forget(self, wake: Callable[[], object]) -> None:
        """Nobody waits for that any more; a topic where nothing comes must not collect them."""
        with self._change:
            if wake in self._waiters:
                self._waiters.remove(wake)

    def _next(self, timeout: float | None) -> Batch | None:
        with self._change:
            ready = self._change.wait_for(lambda: self._batches or self._ended, timeout)
            if not ready:
                raise TimeoutError(f"no message to {self.pattern!r} for {timeout:g} s")
            return self._taken()

    def _taken(self) -> Batch | None:
        """With the lock: the oldest batch, if there is one."""
        if not self._batches:
            return None
        batch = self._batches.popleft()
        self._bytes -= batch.size
        if self._room is not None and self._bytes * 2 <= WAITING_BYTES and not self._ended:
            room, self._room = self._room, None
            self._thread.soon(room.set)
        return batch

    # -- in the peer's thread -------------------------------------------------------------------

    async def _move(self) -> None:
        try:
            async for batch in self._inner.batches():
                room = None
                with self._change:
                    self._batches.append(batch)
                    self._bytes += batch.size
                    if self._bytes >= WAITING_BYTES:
                        room = self._room = trio.Event()
                    self._tell()
                if room is not None:
                    await room.wait()
        finally:
            with self._change:
                self._ended = True
                self._tell()

    def _tell(self) -> None:
        self._change.notify_all()
        waiters, self._waiters = self._waiters, []
        for wake in waiters:
            try:
                wake()
            except RuntimeError:
                continue  # that loop is closed

    # -- state ----------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether messages may still arrive."""
        return not self._ended and self._inner.is_open

    @property
    def lost(self) -> int:
        """How many messages are gone: the sum of all gaps."""
        return self._inner.lost

    def close(self) -> None:
        """Take in no more; what has arrived can still be read."""
        if self._ended:
            return

        async def end() -> None:
            self._inner.close()
            room = self._room  # a reader may take it away at any moment
            if room is not None:
                room.set()

        try:
            self._thread.call(end, timeout=None)
        except LocalProtocolError:
            if self._inner.is_open:
                raise  # else the peer stopped, and closed it


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
