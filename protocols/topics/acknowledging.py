"""What a receiver tells the sender of a stream in ack mode: how far it is, and what it lacks.

Not for each message: a part of a window was received, or some time passed (§3.1.2).
"""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.topics.core import Core
from protocols.topics.messages import Ack, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.readers import Readers

SOONEST = 0.8  # of ack_every


class Acknowledging(Readers):
    """A stream that arrives, and what its sender was told of it."""

    __slots__ = (
        "_ack_armed",
        "_ack_bytes",
        "_acked",
        "_acked_bytes",
        "_since_ack",
        "receiver",
    )

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, source: NodeId, *, relay: bool
    ) -> None:
        super().__init__(core, key, topic, mode, source, relay=relay)
        self.receiver = core.rng.getrandbits(48)  # tells this life of a receiver from others
        self._ack_bytes = 1 << 18  # received since the last ack: the next is due
        self._since_ack = 0  # bytes
        self._acked_bytes = 0
        self._acked = 0
        self._ack_armed = False

    def _progressed(self, size: int, now: float) -> None:
        self._since_ack += size
        if self._since_ack >= self._ack_bytes:
            self.core.effects.at_tick_end(self._ack)
        elif not self._ack_armed:
            self._ack_soon(now)

    def _ack_soon(self, now: float) -> None:
        if not self._ack_armed:
            self._ack_armed = True
            # Not in step: with messages at a steady rate one would arrive just when each ack is
            # due, and wait for it; and all receivers of a chunk would acknowledge it together.
            pause = self.core.settings.ack_every * self.core.rng.uniform(SOONEST, 1.0)
            self.core.effects.set_timer(("ack", self.id), now + pause)

    def on_ack_timer(self, now: float) -> None:
        """What was received since the last ack waits for its acknowledgement."""
        self._ack_armed = False
        self._ack(now)

    def _ack(self, now: float) -> None:
        if not self.begun or self.mode is not Mode.ACK:
            return
        self._acked_bytes += self._since_ack
        self._since_ack = 0
        self._acked = self.settled
        self.core.counts.acks += 1
        ack = Ack(*self.key, self.receiver, self._acked, self.order.gaps(), self.id[2])
        self.core.effects.send(self.source, ack)
