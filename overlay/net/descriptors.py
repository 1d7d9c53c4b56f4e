"""All descriptors of a node in one epoll set, so that one task can wait for all of them."""

from __future__ import annotations

import contextlib
import resource
import select
from collections.abc import Callable, Iterable

MANY = 65_536  # descriptors: a link takes four or five, so some 13,000 links

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


def allow_many() -> None:
    """Let this process have as many descriptors as it may, up to `MANY`.

    The usual limit of 1,024 is that of select(), which nobody here calls; past it ZeroMQ aborts
    the whole process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY if hard == resource.RLIM_INFINITY else min(MANY, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
