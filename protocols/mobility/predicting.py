"""Predictors: which broker a client that moves out will appear at (the paper's prefetching)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overlay.ids import NodeId
from protocols.mobility.interface import Nearby, Predictor


class NoPredictor:
    """Knows nothing: prefetching is then the standard algorithm."""

    def next(self, visited: Sequence[NodeId]) -> NodeId:
        """Nobody."""
        return ""


class Perfect:
    """Is told the client's plans, as section 4.1 assumes."""

    def __init__(self, plan: Callable[[], NodeId]) -> None:
        self._plan = plan

    def next(self, visited: Sequence[NodeId]) -> NodeId:
        """What the plan says."""
        return self._plan()


class LastDirection:
    """Believes that a client goes on as it went.

    Of the surroundings of a broker, in the order of a turn around it, the one opposite of where the
    client came from; where nobody gave them, the broker to which it went from here the last time.
    """

    def __init__(self, nearby: Nearby | None = None) -> None:
        self._nearby = nearby

    def next(self, visited: Sequence[NodeId]) -> NodeId:
        """The next one in that direction."""
        if len(visited) < 2:
            return ""
        before, here = visited[-2], visited[-1]
        if self._nearby is None:
            for at in range(len(visited) - 2, -1, -1):
                if visited[at] == here:
                    return visited[at + 1]
            return ""
        around = list(self._nearby(here))
        if before not in around:
            return ""
        ahead = around[(around.index(before) + len(around) // 2) % len(around)]
        return "" if ahead == before else ahead


def predictor(kind: str, plan: Callable[[], NodeId], nearby: Nearby | None) -> Predictor:
    """The one that the settings name."""
    if kind == "perfect":
        return Perfect(plan)
    return LastDirection(nearby) if kind == "last-direction" else NoPredictor()
