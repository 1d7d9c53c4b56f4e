"""One ZeroMQ context for all nodes of a thread, and the ZAP desk that answers for them.

A context each would cost two threads and a megabyte per node. ZeroMQ has one ZAP endpoint per
context, so the nodes share it and are told apart by their domain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import zmq

MAX_SOCKETS = 65_000  # ZeroMQ's own default of 1,023 is too few for 200 nodes with 10 links each

Admit = Callable[[bytes], bool]  # is a peer with this CURVE key let in to say Hello?


class ZapDesk:
    """Answers ZeroMQ's question whether a CURVE key may connect; identity is proven by Hello."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._socket = context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind("inproc://zeromq.zap.01")
        self._admit: dict[bytes, Admit] = {}

    @property
    def fd(self) -> int:
        """The descriptor that wakes up with a question; every node of the thread waits on it."""
        return int(self._socket.FD)

    def register(self, domain: bytes, admit: Admit) -> None:
        """Answer for a node from now on."""
        self._admit[domain] = admit

    def unregister(self, domain: bytes) -> None:
        """Deny everybody who asks for that node."""
        self._admit.pop(domain, None)

    def answer(self) -> None:
        """Answer all questions that wait."""
        while int(self._socket.get(zmq.EVENTS)) & zmq.POLLIN:
            question = self._socket.recv_multipart()
            self._socket.send_multipart(self._reply(question))

    def _reply(self, question: list[bytes]) -> list[bytes]:
        if len(question) < 7 or question[0] != b"1.0":
            return [
                b"1.0",
                question[1] if len(question) > 1 else b"",
                b"500",
                b"malformed",
                b"",
                b"",
            ]
        request, domain, mechanism, key = question[1], question[2], question[5], question[6]
        admit = self._admit.get(domain)
        if mechanism == b"CURVE" and len(key) == 32 and admit is not None and admit(key):
            return [b"1.0", request, b"200", b"OK", key.hex().encode(), b""]
        return [b"1.0", request, b"400", b"not admitted", b"", b""]

    def close(self) -> None:
        """Close the endpoint."""
        self._socket.close()


class SharedContext:
    """A context with its desk, used by several nodes and ended with the last of them."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, MAX_SOCKETS)
        self.desk = ZapDesk(self.context)
        self._users = 0

    @classmethod
    def acquire(cls) -> SharedContext:
        """Join the context of this thread."""
        shared: SharedContext | None = getattr(_of_thread, "shared", None)
        if shared is None:
            shared = _of_thread.shared = cls()
        shared._users += 1
        return shared

    def release(self) -> bool:
        """Leave; True for the last one, which must `end` it."""
        self._users -= 1
        if self._users:
            return False
        _of_thread.shared = None
        self.desk.close()
        return True

    def end(self) -> None:
        """End the context; waits for what still lingers, so call it from a worker thread."""
        self.context.term()


_of_thread = threading.local()
