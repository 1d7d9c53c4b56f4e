"""The publisher's and the subscriber's process of a carrier: what `topics_ends` runs for them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from bench.peers.carrier import STAMP, Load, until_received
from bench.peers.carriers import CARRIERS
from bench.raw_ends import WARM_UP, emit

WITHIN = 45  # s for a run; whoever lost a message waits for it for ever


def carrier_end(options: dict[str, Any]) -> None:
    """Play one end."""
    signal.alarm(WITHIN)
    carrier, port = CARRIERS[options["carrier"]](), options["server"]
    if options["role"] == "receiver":
        taken = Taken(options["count"])
        take = taken.stamped if options["rate"] else taken.counted()
        carrier.receive(port, lambda: emit(port=port, key=""), take)
        emit(seconds=taken.seconds(), delays=taken.delays[WARM_UP:])
    else:
        carrier.send(port, Load(options["size"], options["count"], options["rate"]))
    until_received()


class Taken:
    """Counts as the raw ends do: the clock runs from the first message to the last."""

    def __init__(self, count: int) -> None:
        self.delays: list[int] = []
        self._count = count
        self._began = self._ended = 0

    def stamped(self, data: bytes) -> bool:
        """Note how long one was on its way; False when all are here."""
        now = time.monotonic_ns()
        self.delays.append(now - int.from_bytes(data[:STAMP], "big"))
        self._began, self._ended = self._began or now, now
        return len(self.delays) < self._count

    def counted(self) -> Callable[[bytes], bool]:
        """A function that only counts, as cheaply as Python can."""
        left = self._count

        def take(data: bytes) -> bool:
            nonlocal left
            left -= 1
            if not self._began:
                self._began = time.monotonic_ns()
            if not left:
                self._ended = time.monotonic_ns()
            return left > 0

        return take

    def seconds(self) -> float:
        """How long it took."""
        return (self._ended - self._began) / 1e9
