"""One key of the hash table, watched: its value now, and each other one that is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import trio

from protocols.dht.machine import Dht

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from nodes.node import Node

_NOTHING = object()


class KeyWatch:
    """An async iterator over values; of several that were not read the last one stays.

    It watches from the moment it is made until it is closed, or the node stops.
    """

    def __init__(self, node: Node, key: bytes, read: Callable[[bytes | None], Any]) -> None:
        self.key = key
        self.overwritten = 0  # values that a slow reader did not see
        self._node = node
        self._machine = node.protocol(Dht)
        self._read = read
        self._unread: Any = _NOTHING
        self._readers = trio.lowlevel.ParkingLot()
        self._closed = False
        self._number = node.call(self._machine.watch, key, self._hear)
        node.at_stop(self.close)

    def _hear(self, value: bytes | None) -> None:
        self.overwritten += self._unread is not _NOTHING
        self._unread = value
        self._readers.unpark()

    def close(self) -> None:
        """Watch no more."""
        if not self._closed:
            self._closed = True
            self._node.forget_at_stop(self.close)
            if self._node.is_running:
                self._node.call(self._machine.unwatch, self._number)
            self._readers.unpark_all()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """The value; None: the key has none."""
        await trio.lowlevel.checkpoint()
        while self._unread is _NOTHING:
            if self._closed:
                raise StopAsyncIteration
            await self._readers.park()
        value, self._unread = self._unread, _NOTHING
        return self._read(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
