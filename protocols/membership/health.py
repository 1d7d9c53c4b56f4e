"""Lifeguard's local health: a node that has trouble itself is slower to accuse others."""

from __future__ import annotations


class LocalHealth:
    """A score from 0 (well) to `worst`; timeouts are multiplied by 1 + score."""

    __slots__ = ("score", "worst")

    def __init__(self, worst: int) -> None:
        self.score = 0
        self.worst = worst

    @property
    def factor(self) -> float:
        """How much longer to wait for others."""
        return 1.0 + self.score

    def better(self) -> None:
        """A probe was answered in time."""
        if self.score:
            self.score -= 1

    def worse(self, by: int = 1) -> None:
        """Something that others were not to blame for went wrong."""
        self.score = min(self.worst, self.score + by)
