"""A forwarding hop between two nodes that drops messages: `python -m bench.topics_hop JSON`.

Each way in stands for one node: whoever connects there gets a DEALER of its own to that node. The
first message of a connection (Hello) and what comes back on it (Welcome) always pass, so that links
open; after that whole ZeroMQ messages, which are frames of up to some hundred messages, are lost.
"""

from __future__ import annotations

import json
import signal
import sys
from random import Random
from typing import TypeAlias

import zmq

from bench.raw_ends import ALONE, emit

HELD = 4  # messages that wait in a socket: a hop with more would be slow, not only lossy
AT_ONCE = 64  # messages of one socket before others get their turn

Socket: TypeAlias = zmq.Socket[bytes]


class WayIn:
    """Where the hop stands for one node."""

    def __init__(self, hop: Hop, to: str) -> None:
        self._hop = hop
        self._to = to
        self.front: Socket = hop.context.socket(zmq.ROUTER)
        self.front.set(zmq.ROUTER_HANDOVER, 1)
        self.front.set(zmq.RCVHWM, HELD)
        self.port = self.front.bind_to_random_port("tcp://127.0.0.1")
        self._backs: dict[bytes, Socket] = {}

    def forward(self) -> None:
        """Pass on what waits, or lose it."""
        for _ in range(AT_ONCE):
            try:
                who, *parts = self.front.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            back = self._backs.get(who.bytes)
            if back is None:
                self._backs[who.bytes] = back = self._hop.connect(self, who.bytes, self._to)
            elif self._hop.loses():
                continue
            back.send_multipart(parts, copy=False)


class Hop:
    """Forwards between ways in and their nodes until it is killed."""

    def __init__(self, loss: float, seed: int) -> None:
        self.context: zmq.Context[Socket] = zmq.Context()
        self._loss = loss
        self._draw = Random(seed).random
        self._poller = zmq.Poller()
        self._ways: dict[Socket, WayIn] = {}
        self._callers: dict[Socket, tuple[Socket, bytes]] = {}

    def loses(self) -> bool:
        """Decide about one message."""
        return self._draw() < self._loss

    def open(self, to: str) -> int:
        """Stand for a node; the port to tell its peers."""
        way = WayIn(self, to)
        self._ways[way.front] = way
        self._poller.register(way.front, zmq.POLLIN)
        return way.port

    def connect(self, way: WayIn, who: bytes, to: str) -> Socket:
        """The way on for somebody who called."""
        back = self.context.socket(zmq.DEALER)
        back.set(zmq.SNDHWM, HELD)
        back.connect(to)
        self._callers[back] = (way.front, who)
        self._poller.register(back, zmq.POLLIN)
        return back

    def run(self) -> None:
        """Serve for ever."""
        while True:
            for ready, _ in self._poller.poll():
                way = self._ways.get(ready)
                if way is not None:
                    way.forward()
                else:
                    front, who = self._callers[ready]
                    front.send_multipart([who, *ready.recv_multipart()])


def main() -> None:
    """Open a way in to each node, print the ports, and forward."""
    options = json.loads(sys.argv[1])
    signal.alarm(ALONE)  # a benchmark that was killed leaves nobody behind for long
    hop = Hop(options["loss"], options["seed"])
    emit(ports=[hop.open(f"tcp://127.0.0.1:{port}") for port in options["to"]])
    hop.run()


if __name__ == "__main__":
    main()
