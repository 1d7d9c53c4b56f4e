"""Whom to try: some at once, others when these did not become members; all of it bounded."""

from __future__ import annotations

from typing import NamedTuple

from overlay.ids import NodeId


class Candidate(NamedTuple):
    """A node of this node's own zone that it does not know as a member."""

    name: NodeId
    endpoints: tuple[str, ...]
    source: str  # the host that told of it
    how: str


class Candidates:
    """Half of the places, and half of the queue, are the most that one host gets.

    So whoever makes up names leaves room for others.
    """

    def __init__(self, parallel: int, waiting: int, patience: float) -> None:
        self._parallel = parallel
        self._room = waiting
        self._patience = patience
        self._tried: dict[NodeId, tuple[str, float]] = {}  # source, and until when; oldest first
        self._waiting: dict[NodeId, Candidate] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._tried) + len(self._waiting)

    @property
    def in_trial(self) -> int:
        """How many are being tried."""
        return len(self._tried)

    @property
    def queued(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def offer(self, candidate: Candidate, now: float) -> bool:
        """Whether to try it now; otherwise it waits, or is known already, or is dropped."""
        self._expire(now)
        if candidate.name in self._tried:
            return False
        if self._has_place(candidate.source):
            self._waiting.pop(candidate.name, None)
            self._try(candidate, now)
            return True
        if candidate.name not in self._waiting:
            mates = sum(1 for one in self._waiting.values() if one.source == candidate.source)
            if len(self._waiting) >= self._room or mates >= self._room // 2:
                self.dropped += 1
                return False
        self._waiting[candidate.name] = candidate  # what it says now replaces what it said
        return False

    def due(self, now: float) -> list[Candidate]:
        """Those whose turn has come."""
        self._expire(now)
        turns = []
        for candidate in list(self._waiting.values()):
            if self._has_place(candidate.source):
                del self._waiting[candidate.name]
                self._try(candidate, now)
                turns.append(candidate)
        return turns

    def forget(self, name: NodeId) -> None:
        """It is a member, or gone."""
        self._tried.pop(name, None)
        self._waiting.pop(name, None)

    def clear(self) -> None:
        """There is company: nobody needs to wait any more."""
        self._waiting.clear()

    def _try(self, candidate: Candidate, now: float) -> None:
        self._tried[candidate.name] = (candidate.source, now + self._patience)

    def _has_place(self, source: str) -> bool:
        mates = sum(1 for other, _ in self._tried.values() if other == source)
        return len(self._tried) < self._parallel and mates < max(1, self._parallel // 2)

    def _expire(self, now: float) -> None:
        for name, (_, until) in list(self._tried.items()):
            # Also when the clock was set back: nobody stays for longer than `patience`.
            if until <= now or until > now + self._patience:
                del self._tried[name]
