"""All descriptors of a node in one epoll set, so that one task can wait for all of them."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable

Ready = Callable[[float], None]  # called with the time


class Descriptors:
    """Who is to be called when which descriptor is readable."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._ready: dict[int, Ready] = {}

    @property
    def fd(self) -> int:
        """Readable while any of them is."""
        return self._epoll.fileno()

    def watch(self, fd: int, ready: Ready) -> None:
        """Call `ready` from now on."""
        self._ready[fd] = ready
        self._epoll.register(fd, select.EPOLLIN)

    def unwatch(self, fds: Iterable[int]) -> None:
        """Forget these; call it before they are closed."""
        for fd in fds:
            del self._ready[fd]
            self._epoll.unregister(fd)

    def poll(self, now: float) -> None:
        """Call everybody whose descriptor is readable now."""
        for fd, _ in self._epoll.poll(0):
            ready = self._ready.get(fd)
            if ready is not None:  # an earlier one of this round may have closed it
                ready(now)

    def close(self) -> None:
        """Give the set back."""
        self._epoll.close()
