"""What siblings and applications may know of moving clients, and what predicts their ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from overlay.ids import NodeId

Nearby: TypeAlias = Callable[[NodeId], Sequence[NodeId]]
"""The brokers that a client at that broker can move to next, in the order of its surroundings."""


class Predictor(Protocol):
    """Names the broker at which a client will appear next."""

    def next(self, visited: Sequence[NodeId]) -> NodeId:
        """The next one after those visited, the present one last; empty: nobody knows."""
