"""What ZeroMQ tells about connections: a socket's monitor, read without blocking."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import zmq

FAILED_HANDSHAKES: dict[int, str] = {
    zmq.EVENT_HANDSHAKE_FAILED_AUTH: "not admitted",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "another security mechanism, or no ZeroMQ",
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "closed in the handshake",
}

WATCHED = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)

_EVENT = struct.Struct("=HI")


POLLIN = int(zmq.POLLIN)  # arithmetic with zmq's own flags is slow, and every tick asks


class Happening(NamedTuple):
    """One event, and the descriptor that it is about (for a failed handshake: a code)."""

    event: int
    value: int


class Monitor:
    """Watches one socket."""

    __slots__ = ("_pair", "_watched")

    def __init__(self, watched: zmq.Socket[bytes]) -> None:
        self._watched = watched
        self._pair = watched.get_monitor_socket(WATCHED)
        self._pair.linger = 0

    @property
    def fd(self) -> int:
        """The descriptor that wakes up with an event."""
        return int(self._pair.FD)

    def happenings(self) -> Iterator[Happening]:
        """Yield what happened since the last call."""
        while int(self._pair.get(zmq.EVENTS)) & POLLIN:
            frame = self._pair.recv_multipart()[0]
            yield Happening(*_EVENT.unpack(frame))

    def close(self) -> None:
        """Stop watching; call it before the watched socket is closed."""
        self._watched.disable_monitor()
        self._pair.close()
