"""The load of the transport benchmarks: a protocol that sends typed messages one by one.

A window of unacknowledged bytes keeps the sender from running ahead of the receiver, as any
protocol that must not lose messages has to.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from overlay.ids import NodeId
from overlay.protocol import Effects, Event, Handler, Message, OverlayProtocol

WINDOW_BYTES = 8 << 20
ACKS_PER_WINDOW = 8


class LoadData(Message, frozen=True, tag=10_001):
    """One message of the load."""

    sequence: int
    sent_ns: int
    payload: bytes


class LoadBulk(Message, frozen=True, tag=10_003):
    """The same by the bulk lane."""

    bulk: ClassVar[bool] = True
    sequence: int
    sent_ns: int
    payload: bytes


class LoadAck(Message, frozen=True, tag=10_002):
    """Everything below `upto` arrived."""

    upto: int


class LoadDone(Event, frozen=True):
    """The receiver has all messages, or the sender all acknowledgements."""

    count: int
    seconds: float


class Load(OverlayProtocol):
    """Sends `count` messages to a peer, or counts what comes in."""

    name: ClassVar[str] = "load"
    messages: ClassVar[tuple[type[Message], ...]] = (LoadData, LoadBulk, LoadAck)
    emits: ClassVar[tuple[type[Event], ...]] = (LoadDone,)

    def __init__(self, me: NodeId, effects: Effects, rng: Random, config: Any) -> None:
        super().__init__(me, effects, rng, config)
        self.delays_ns: list[int] = []
        self._expected: int = config["count"]
        self._kind = LoadBulk if config.get("bulk", False) else LoadData
        self._keep_delays: bool = config.get("latency", False)
        each = max(config["size"], 100)
        self._window = max(8, config.get("window", WINDOW_BYTES) // each)
        self._ack_every = max(1, self._window // ACKS_PER_WINDOW)
        self._payload = bytes(config["size"])
        self._peer: NodeId = ""
        self._sent = self._acked = self._received = 0
        self._mark = 1  # the message that is next to be acknowledged, or to be timed
        self._began_ns = 0

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """Data at the receiver, acknowledgements at the sender."""
        return {LoadData: self._on_data, LoadBulk: self._on_data, LoadAck: self._on_ack}

    def begin(self, peer: NodeId, now: float) -> None:
        """Send all, as fast as the window allows."""
        self._peer = peer
        self._pump()

    def send_one(self, peer: NodeId, now: float) -> None:
        """Send a single message, for latency."""
        self._sent += 1
        self.effects.send(peer, self._kind(self._sent, time.monotonic_ns(), self._payload))

    def _pump(self) -> None:
        send, kind, peer, payload = self.effects.send, self._kind, self._peer, self._payload
        upto = min(self._acked + self._window, self._expected)
        for sequence in range(self._sent, upto):
            send(peer, kind(sequence, 0, payload))
        self._sent = max(self._sent, upto)

    def _on_ack(self, src: NodeId, msg: LoadAck, now: float) -> None:
        self._acked = msg.upto
        if msg.upto >= self._expected:
            self.effects.emit(LoadDone(msg.upto, 0.0))
        else:
            self._pump()

    def _on_data(self, src: NodeId, msg: LoadData | LoadBulk, now: float) -> None:
        received = self._received = self._received + 1
        if self._keep_delays:
            self.delays_ns.append(time.monotonic_ns() - msg.sent_ns)
        if received == self._mark:
            self._on_mark(src, received)

    def _on_mark(self, src: NodeId, received: int) -> None:
        if received == 1:
            self._began_ns = time.monotonic_ns()
        if not self._keep_delays:
            self.effects.send(src, LoadAck(received))
        if received == self._expected:
            seconds = (time.monotonic_ns() - self._began_ns) / 1e9
            self.effects.emit(LoadDone(received, seconds))
        self._mark = min(received + self._ack_every, self._expected)
