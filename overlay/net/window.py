"""How far the bulk of a link may run ahead of its reader.

What ZeroMQ and two kernels hold cannot be overtaken any more. So bulk is handed over only while
little of it is on its way: after some of it a `Mark` follows, and the peer sends it back when it
has read that far.
"""

from __future__ import annotations

from overlay.errors import RemoteProtocolError

MARKS = 8  # in one window: often enough that it never runs dry, rare enough to cost nothing


class BulkWindow:
    """The bytes of bulk that one connection has on its way."""

    __slots__ = ("_ahead", "_marked", "_sent", "_taken")

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead
        self.reset()

    def reset(self) -> None:
        """Begin a connection."""
        self._sent = 0  # handed to ZeroMQ
        self._marked = 0  # of that, up to the last mark
        self._taken = 0  # and up to the last one that came back

    @property
    def open(self) -> bool:
        """True while bulk may be handed over: the last frame may pass the window's end."""
        return self._sent - self._taken < self._ahead

    @property
    def awaited(self) -> bool:
        """True while a mark is on its way."""
        return self._marked > self._taken

    def sent(self, size: int) -> None:
        """One more frame was handed over."""
        self._sent += size

    @property
    def due(self) -> int | None:
        """The mark that should follow now. While the window is closed, one is on its way."""
        return self._sent if (self._sent - self._marked) * MARKS >= self._ahead else None

    @property
    def overdue(self) -> int | None:
        """The mark without which nothing more goes; asked when it took long to come back."""
        return None if self.open or not self.awaited else self._marked

    def marked(self) -> None:
        """The mark that was due left."""
        self._marked = self._sent

    def taken(self, upto: int) -> None:
        """A mark came back; one that was never sent is the peer's fault."""
        if not self._taken <= upto <= self._marked:  # one that was repeated may come twice
            raise RemoteProtocolError("stray-mark", f"{upto}, of {self._marked}")
        self._taken = upto
