"""Measuring the target set: several pings of each, and when to stop waiting for the rest.

All is measured when every target answered `pings` of them. Otherwise it ends 2 × the slowest round
trip + `ping_slack` after the last first ping: who is silent for so long is farther than everybody
who answered, or dead. Where pings are seen to be lost on the way to others, silence says less, and
silent targets get up to `ping_patience`.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import msgspec

from overlay.ids import NodeId
from overlay.protocol import UdpAddress
from protocols.discovery.config import DiscoverySettings
from protocols.discovery.messages import Ping

LOSSY = 0.9  # share of pings answered below which the network loses some
MOST_PINGS = 128  # of one target, however long it is silent


class Target(msgspec.Struct):
    """One broker that is pinged."""

    name: NodeId
    address: UdpAddress
    pinged: int = 0
    round_trips: list[float] = msgspec.field(default_factory=list)


class Pinging:
    """One round of pings."""

    def __init__(
        self,
        targets: Iterable[tuple[NodeId, UdpAddress]],
        config: DiscoverySettings,
        rng: Random,
        now: float,
        deadline: float,
    ) -> None:
        self.targets = {name: Target(name, address) for name, address in targets}
        self.began = now
        self._config = config
        self._rng = rng
        self._deadline = deadline
        self._open: dict[bytes, tuple[Target, float]] = {}
        self._rounds = 0

    def next_round(self) -> list[Target]:
        """Whom to ping now: those who have not answered often enough."""
        self._rounds += 1
        others = self._rounds > self._config.pings  # what is lost of many is not asked again
        return [
            target
            for target in self.targets.values()
            if target.pinged < MOST_PINGS and not (others and target.round_trips)
        ]

    def ping(self, target: Target, at: float) -> Ping:
        """One ping that leaves at that time."""
        nonce = self._rng.randbytes(8)
        self._open[nonce] = (target, at)
        target.pinged += 1
        return Ping(nonce, at)

    def pause(self) -> float:
        """Until the next round: longer once everybody had their share."""
        return self._config.ping_gap * (1 if self._rounds < self._config.pings else 2)

    def answered(self, name: NodeId, nonce: bytes, arrived_at: float) -> bool:
        """Take one answer; False when that node was not asked with that nonce."""
        asked = self._open.get(nonce)
        if asked is None or asked[0].name != name:
            return False
        target, sent_at = self._open.pop(nonce)
        target.round_trips.append(max(0.0, arrived_at - sent_at))
        return True

    @property
    def slowest(self) -> float | None:
        """The longest of the targets' shortest round trips."""
        return max(
            (min(one.round_trips) for one in self.targets.values() if one.round_trips),
            default=None,
        )

    def ends_at(self) -> float:
        """When there is nothing more to wait for; it changes with every answer."""
        config = self._config
        wanted = config.pings
        if all(len(one.round_trips) >= wanted for one in self.targets.values()):
            return self.began
        slowest = self.slowest
        if slowest is None:
            return min(self._deadline, self.began + config.ping_patience)
        end = self.began + 2 * slowest + config.ping_slack
        if self._is_lossy() and any(not one.round_trips for one in self.targets.values()):
            end = max(end, self.began + config.ping_patience)
        return min(end, self._deadline)

    def _is_lossy(self) -> bool:
        """Whether targets that do answer left pings unanswered; the last ones may be under way."""
        answering = [one for one in self.targets.values() if one.round_trips]
        sent = sum(min(one.pinged, self._config.pings) for one in answering)
        back = sum(min(len(one.round_trips), self._config.pings) for one in answering)
        return self._rounds >= self._config.pings and back < LOSSY * sent
