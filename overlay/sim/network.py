"""How the simulated network behaves when nothing is broken: latency, bandwidth, detection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import log
from random import Random
from typing import Any, TypeAlias

from overlay.ids import NodeId

Sampler: TypeAlias = Callable[[], float]
Bandwidth: TypeAlias = float | Callable[[NodeId, NodeId], float]
"""Bytes per second of every link and direction, or of the one from the first node to the second."""
Weighing: TypeAlias = Callable[[NodeId, NodeId, list[Any]], int]
"""Bytes of a frame from the first node to the second: scopes and batches in turn."""


class Latency(ABC):
    """A distribution of delays in seconds."""

    @abstractmethod
    def sampler(self, rng: Random) -> Sampler:
        """Return the cheapest function that draws one delay after the other from `rng`."""


@dataclass(frozen=True, slots=True)
class Constant(Latency):
    """Always the same delay."""

    seconds: float

    def sampler(self, rng: Random) -> Sampler:
        """Draw nothing: the answer is known."""
        seconds = self.seconds
        return lambda: seconds


@dataclass(frozen=True, slots=True)
class Uniform(Latency):
    """Between `low` and `high`, all equally likely."""

    low: float
    high: float

    def sampler(self, rng: Random) -> Sampler:
        """Draw evenly."""
        low, span, draw = self.low, self.high - self.low, rng.random
        return lambda: low + span * draw()


@dataclass(frozen=True, slots=True)
class Exponential(Latency):
    """At least `floor`, plus an exponential tail of that mean: a queue somewhere on the way."""

    mean: float
    floor: float = 0.0

    def sampler(self, rng: Random) -> Sampler:
        """Draw by inversion."""
        floor, mean, draw = self.floor, self.mean, rng.random
        return lambda: floor - mean * log(1.0 - draw())


@dataclass(frozen=True, slots=True)
class LogNormal(Latency):
    """Half below `median`, with a heavy tail; what wide-area round trips look like."""

    median: float
    sigma: float = 0.5  # of the logarithm: 0.5 puts 1 in 40 above 2.7 times the median

    def sampler(self, rng: Random) -> Sampler:
        """Draw from the tailed distribution."""
        mu, sigma, draw = log(self.median), self.sigma, rng.lognormvariate
        return lambda: draw(mu, sigma)


@dataclass(frozen=True, slots=True)
class NetworkModel:
    """The undisturbed network. All times are seconds of the simulated world."""

    latency: Latency = Uniform(0.0005, 0.0015)  # a LAN, one way, with the peer's wake-up
    between_lans: Latency | None = None  # None: as inside a LAN
    bandwidth: Bandwidth | None = None  # None: no limit
    weigh: Weighing | None = None  # on a link with a bandwidth; None: a frame as it is encoded
    queue_bytes: int = 16 * 1024 * 1024  # waiting for a link with a bandwidth; more is dropped
    datagram_loss: float = 0.0
    disconnect_notice: float = 0.003  # from a process's death to its peers' LinkLost (measured: ms)
    heartbeat_timeout: float = 5.0  # from a cut that closes no connection to LinkLost
    storage_delay: float = 0.002  # from `store` to `on_stored`
    strict_contacts: bool = False  # deliver only to peers that were learned, or who came first
