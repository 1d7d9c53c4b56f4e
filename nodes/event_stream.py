"""What an application hears: events of its node, in a buffer that never grows without end."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import trio

from overlay.protocol import Event

E = TypeVar("E", bound=Event)


class EventStream(Generic[E]):
    """An async iterator over events; a reader that is too slow loses the oldest, counted.

    It listens from the moment it is made until it is closed or the node stops.
    """

    def __init__(
        self,
        capacity: int,
        on_close: "Callable[[EventStream[E]], None]",
        where: Callable[[E], bool] | None = None,
    ) -> None:
        self.dropped = 0
        self._where = where  # None: every event is for this reader
        self._buffer: deque[E] = deque(maxlen=capacity)
        self._readers = trio.lowlevel.ParkingLot()
        self._on_close = on_close
        self._closed = False

    def put(self, event: E) -> None:
        """Take an event from the host."""
        if self._where is not None and not self._where(event):
            return
        if len(self._buffer) == self._buffer.maxlen:
            self.dropped += 1  # the deque drops its oldest
        self._buffer.append(event)
        self._readers.unpark()

    def close(self) -> None:
        """Hear no more; what is in the buffer can still be read."""
        if not self._closed:
            self._closed = True
            self._on_close(self)
            self._readers.unpark_all()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        await trio.lowlevel.checkpoint()
        while not self._buffer:
            if self._closed:
                raise StopAsyncIteration
            await self._readers.park()
        return self._buffer.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
