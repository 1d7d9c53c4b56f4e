"""The hash table for programs without trio: `peer.dht` of `nodes.blocking`, from any thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from nodes.blocking_topics import PeerThread
    from nodes.dht import Key
    from nodes.dht_watch import KeyWatch
    from nodes.peer import Peer
    from protocols.dht.interface import Whereabouts

_END = object()


class Table:
    """What `nodes.dht.PeerTable` offers, each call until it is done.

    With a `timeout` in seconds it raises TimeoutError, and may still take effect; without one the
    table itself answers within `dht.operation_timeout`.
    """

    def __init__(self, thread: PeerThread, peer: Peer) -> None:
        self._thread = thread
        self._table = peer.dht

    def get(self, key: Key, *, stale_ok: bool = False, timeout: float | None = None) -> Any:
        """The value, or None."""
        return self._call("get", key, timeout=timeout, stale_ok=stale_ok)

    def contains(self, key: Key, *, stale_ok: bool = False, timeout: float | None = None) -> bool:
        """Whether the key has a value."""
        return bool(self._call("contains", key, timeout=timeout, stale_ok=stale_ok))

    def put(self, key: Key, value: Any, *, ttl: float = 0.0, timeout: float | None = None) -> bool:
        """Insert or replace; True."""
        return bool(self._call("put", key, value, timeout=timeout, ttl=ttl))

    def put_and_retrieve(
        self, key: Key, value: Any, *, ttl: float = 0.0, timeout: float | None = None
    ) -> Any:
        """Insert or replace; the value before, or None."""
        return self._call("put_and_retrieve", key, value, timeout=timeout, ttl=ttl)

    def put_if_absent(
        self, key: Key, value: Any, *, ttl: float = 0.0, timeout: float | None = None
    ) -> bool:
        """Insert, unless the key has a value; whether it was inserted."""
        return bool(self._call("put_if_absent", key, value, timeout=timeout, ttl=ttl))

    def replace(
        self, key: Key, *values: Any, ttl: float = 0.0, timeout: float | None = None
    ) -> Any:
        """With one value: the one before, or None. With an old and a new one: whether it was."""
        return self._call("replace", key, *values, timeout=timeout, ttl=ttl)

    def remove(self, key: Key, *value: Any, timeout: float | None = None) -> bool:
        """Remove the key, or only if it has that value; whether it was removed."""
        return bool(self._call("remove", key, *value, timeout=timeout))

    def get_many(
        self, keys: Iterable[Key], *, stale_ok: bool = False, timeout: float | None = None
    ) -> list[Any]:
        """Their values in order: the fastest way."""
        found: list[Any] = self._call("get_many", list(keys), timeout=timeout, stale_ok=stale_ok)
        return found

    def put_many(
        self, values: Mapping[Any, Any], *, ttl: float = 0.0, timeout: float | None = None
    ) -> None:
        """As if by `put` for each."""
        self._call("put_many", dict(values), timeout=timeout, ttl=ttl)

    def ready(self, *, timeout: float | None = None) -> None:
        """Wait until the table answers this node."""
        self._call("ready", timeout=timeout)

    def where(self, key: Key) -> Whereabouts:
        """Where the key lives, as far as this node knows."""

        async def look() -> Whereabouts:
            return self._table.where(key)

        return self._thread.call(look, timeout=None)

    def watch(self, key: Key, *, timeout: float | None = None) -> Watch:
        """The value now and whenever it is another, to iterate over; close it, or use `with`."""

        async def begin() -> KeyWatch:
            return self._table.watch(key)

        return Watch(self._thread, self._thread.call(begin, timeout=None), timeout)

    def _call(self, name: str, *args: Any, timeout: float | None, **options: Any) -> Any:
        operation = partial(getattr(self._table, name), *args, **options)
        return self._thread.call(operation, timeout=timeout)


class Watch:
    """Values of one key; TimeoutError when no other one comes for `timeout` seconds."""

    def __init__(self, thread: PeerThread, values: KeyWatch, timeout: float | None) -> None:
        self._thread = thread
        self._values = values
        self._timeout = timeout

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        value = self._thread.call(self._next, timeout=self._timeout)
        if value is _END:
            raise StopIteration
        return value

    async def _next(self) -> Any:
        return await anext(self._values, _END)

    def close(self) -> None:
        """Watch no more."""
        self._thread.soon(self._values.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
