"""Continuous mode: when to leave a broker for another one, and when to stay."""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.discovery.config import DiscoverySettings
from protocols.discovery.events import BrokerFound, BrokerMoved, Candidate


class Staying:
    """Moves when ours is silent, or another one is clearly better several times in a row."""

    def __init__(self, config: DiscoverySettings) -> None:
        self.current: Candidate | None = None
        self._config = config
        self._rival: NodeId = ""
        self._times = 0

    def consider(self, found: BrokerFound) -> BrokerMoved | None:
        """Take one look around; the move that follows from it, if any."""
        current, winner = self.current, found.winner
        if current is None:
            return self._move("", winner, "the first one")
        now = next((one for one in found.candidates if one.name == current.name), None)
        if now is None or now.ping_least is None:
            return self._move(current.name, winner, f"{current.name} answers no pings")
        self.current = now
        best = winner.ping_least or 0.0
        gain = now.ping_least - best
        if winner.name == now.name or gain <= self._needed(now.ping_least):
            self._times = 0
            return None
        self._times = self._times + 1 if winner.name == self._rival else 1
        self._rival = winner.name
        if self._times < self._config.confirmations:
            return None
        reason = f"{winner.name} is {gain * 1000:.1f} ms nearer than {now.name}"
        return self._move(now.name, winner, reason)

    def _needed(self, least: float) -> float:
        return max(self._config.move_least, self._config.move_share * least)

    def _move(self, old: NodeId, winner: Candidate, reason: str) -> BrokerMoved:
        self.current = winner
        self._rival, self._times = "", 0
        return BrokerMoved(old, winner, reason)
