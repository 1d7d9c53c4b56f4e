"""Topics and the table for programs without trio: a peer in its own thread, used from any thread.

with blocking.Peer(name="ada", zone="lab", seeds=["10.0.0.7:7400"]) as peer:
    with peer.publisher("sensors/7/temperature") as out:
        out.publish({"celsius": 21.5})
    for message in peer.subscribe("sensors/**", timeout=10):
        print(message.topic, message.data)
    peer.dht.put("colour", "blue")

Everything may be called from any thread, and raises in the thread that calls. What takes long has
a `timeout` in seconds, and then raises TimeoutError. In an asyncio program `async with` works on
peers, publishers and subscriptions, `async for` on subscriptions, and `out.publish_async` waits
for subscribers that are behind; the rest goes through `asyncio.to_thread`.

Messages cross between the threads in batches: the caller's side appends to a list, and the peer's
thread is woken once for all that is in it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import trio

from nodes.blocking_table import Table
from nodes.blocking_topics import Publisher, Subscription
from nodes.node import only_error
from nodes.peer import Peer as TrioPeer
from overlay.errors import LocalProtocolError
from protocols.topics.subscription import Admit, Replay, anybody

if TYPE_CHECKING:
    from nodes.resources import Description, Findings, Model, Query
    from nodes.topic_events import PublisherEvent, SubscriptionEvent
    from overlay.predicates import Value as ResourceValue
    from protocols.membership.attributes import Value
    from protocols.topics.config import TopicConfig

__all__ = ["Peer", "Publisher", "Replay", "Subscription", "Table"]

T = TypeVar("T")


class Peer:
    """A member of a zone that runs in its own thread while its `with` block runs.

    The arguments are those of `nodes.peer.Peer.join`; a peer lives once.
    """

    def __init__(
        self,
        *,
        name: str | None = None,
        zone: str = "",
        seeds: Iterable[str] = (),
        attributes: Mapping[str, Value] | None = None,
        **options: Any,
    ) -> None:
        self._join = partial(
            TrioPeer.join, name=name, zone=zone, seeds=seeds, attributes=attributes, **options
        )
        self._peer: TrioPeer
        self._token: trio.lowlevel.TrioToken
        self._nursery: trio.Nursery
        self._started: Future[None] = Future()
        self._ended: Future[None] = Future()
        self._closing: trio.Event
        self._leaving = False
        self._thread: threading.Thread | None = None

    # -- life -----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        started = self._start()
        try:
            started.result()
        except BaseException:
            self._begin_to_close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        started = self._start()
        try:
            await asyncio.shield(asyncio.wrap_future(started))
        except BaseException:
            self._begin_to_close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._begin_to_close()
        await asyncio.shield(asyncio.wrap_future(self._ended))

    def close(self) -> None:
        """Leave the zone and end the thread; raises what went wrong in it."""
        if self._thread is None:
            return
        self._begin_to_close()
        self._ended.result()
        self._thread.join()

    def _start(self) -> Future[None]:
        if self._thread is not None:
            raise LocalProtocolError("a Peer lives once: make another one to start again")
        self._thread = threading.Thread(target=self._run_thread, name="overlay-peer", daemon=True)
        self._thread.start()
        return self._started

    def _begin_to_close(self) -> None:
        self._leaving = True
        if hasattr(self, "_token"):
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._closing.set)

    def _run_thread(self) -> None:
        error: BaseException | None = None
        try:
            trio.run(self._live)
        except BaseExceptionGroup as group:
            error = only_error(group)
        except BaseException as one:  # noqa: BLE001 - it is raised where the caller waits
            error = one
        if not self._started.done():
            self._started.set_exception(error or LocalProtocolError("it did not start"))
            error = None
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    async def _live(self) -> None:
        self._closing = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        if self._leaving:
            self._closing.set()
        async with self._join() as self._peer, trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._stop_with_node)
            self._started.set_result(None)
            await self._closing.wait()
            self._nursery.cancel_scope.cancel()

    async def _stop_with_node(self) -> None:
        await self._peer.node.run()
        self._closing.set()

    # -- calls ----------------------------------------------------------------------------------

    def submit(self, function: Callable[..., Awaitable[T]], *args: Any) -> Future[T]:
        """Run an async function in the peer's thread; cancelling the future cancels it there."""
        future: Future[T] = Future()
        scope = trio.CancelScope()

        async def run() -> None:
            try:
                with scope:
                    _settle(future.set_result, await function(*args))
            except Exception as error:  # noqa: BLE001 - it is raised where the caller waits
                _settle(future.set_exception, error)
            finally:
                _settle(future.set_exception, self._gone())  # if it was cancelled

        def start() -> None:
            if self._closing.is_set() or not self._peer.node.is_running:
                _settle(future.set_exception, self._gone())
            else:
                self._nursery.start_soon(run)

        def follow_cancel(done: Future[T]) -> None:
            if done.cancelled():
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(scope.cancel)

        future.add_done_callback(follow_cancel)
        self.soon(start)
        return future

    def call(self, function: Callable[..., Awaitable[T]], *args: Any, timeout: float | None) -> T:
        """Run an async function in the peer's thread, and wait; TimeoutError cancels it."""
        future = self.submit(function, *args)
        try:
            return future.result(timeout)
        except CancelledError:
            raise self._gone() from None
        finally:
            future.cancel()

    def soon(self, function: Callable[[], object]) -> None:
        """Run a plain function in the peer's thread; LocalProtocolError when it ended."""
        if self._thread is None or not self._started.done():
            raise LocalProtocolError("this peer did not start: use it in `with`")
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            raise self._gone() from None

    def _gone(self) -> LocalProtocolError:
        return LocalProtocolError(f"{self._peer.name} stopped")

    # -- use ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What this peer is called."""
        return self._peer.name

    @property
    def endpoints(self) -> list[str]:
        """Where others reach it: their seeds."""
        return list(self._peer.node.endpoints)

    def joined(self, *, count: int | None = None, timeout: float | None = None) -> None:
        """Wait until this peer is in its zone, or until `count` members are present.

        Without seeds it is so at once, though alone.
        """

        async def join() -> None:
            await self._peer.joined(count=count)

        self.call(join, timeout=timeout)

    def now(self, *, timeout: float | None = None) -> float:
        """Overlay time in Unix seconds, once this peer knows it: a second or two later."""

        async def look() -> float:
            await self._peer.time.known()
            return self._peer.time.now()

        return self.call(look, timeout=timeout)

    def members(self) -> dict[str, dict[str, Any]]:
        """Everybody in the zone, this peer included, each with its attributes."""

        async def look() -> dict[str, dict[str, Any]]:
            return {name: dict(one.attributes) for name, one in self._peer.members.items()}

        return self.call(look, timeout=None)

    @property
    def dht(self) -> Table:
        """The hash table."""
        return Table(self, self._peer)

    # -- resources --------------------------------------------------------------------------------

    def register(
        self,
        name: str,
        description: Description | None = None,
        *,
        values: Mapping[str, ResourceValue] | None = None,
        lease: float = 0.0,
    ) -> str:
        """Let others find a resource, as `peer.resources.register` does; returns its id."""

        async def do() -> str:
            return self._peer.resources.register(name, description, values=values, lease=lease)

        return self.call(do, timeout=None)

    def update(self, name: str, **values: ResourceValue) -> None:
        """Change some values of a dynamic resource."""

        async def do() -> None:
            self._peer.resources.update(name, values)

        self.call(do, timeout=None)

    def unregister(self, name: str) -> None:
        """Let nobody find it any more."""

        async def do() -> None:
            self._peer.resources.unregister(name)

        self.call(do, timeout=None)

    def find(
        self,
        query: Query,
        *,
        limit: int = 0,
        model: Model = "any",
        nearest: bool = False,
        fresh: bool = False,
        timeout: float | None = None,
    ) -> Findings:
        """Resources of all peers that match: what came within `timeout` seconds, see `complete`."""

        async def do() -> Findings:
            return await self._peer.find(
                query, limit=limit, model=model, nearest=nearest, fresh=fresh, timeout=timeout
            )

        return self.call(do, timeout=None)

    # -- topics -----------------------------------------------------------------------------------

    def publisher(
        self,
        topic: str,
        config: TopicConfig | None = None,
        *,
        on_event: Callable[[PublisherEvent], None] | None = None,
        **options: Any,
    ) -> Publisher:
        """A publisher, which is open until `close` or the end of its `with` block.

        `on_event` is called in the peer's thread, and must not wait.
        """
        return Publisher(self, self._peer, topic, config, on_event=on_event, options=options)

    def publish(self, topic: str, data: Any, *, timeout: float | None = None) -> None:
        """Publish one message and wait until all who subscribe now have it.

        For more than one use `publisher`: this opens and closes one.
        """
        with self.publisher(topic) as out:
            out.publish(data, timeout=timeout)
            out.flush(timeout=timeout)

    def subscribe(
        self,
        pattern: str,
        *,
        replay: Replay | None = None,
        accept: Admit = anybody,
        on_event: Callable[[SubscriptionEvent], None] | None = None,
        timeout: float | None = None,
    ) -> Subscription:
        """Messages from now on, to iterate over; TimeoutError when none comes for `timeout`.

        `accept` and `on_event` are called in the peer's thread, and must not wait.
        """
        options = {"replay": replay, "accept": accept, "on_event": on_event}
        return Subscription(self, self._peer, pattern, options, timeout)


def _settle(how: Callable[[Any], None], value: object) -> None:
    with suppress(InvalidStateError):  # its caller did not want to wait any longer
        how(value)
