"""What colonies leave in the traces: leaders, requests, who handled them, and who was found."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Effects
from overlay.tracing import Level, Trace
from overlay.tracing.kinds import (
    COLONY_ASKED,
    COLONY_DONE,
    COLONY_FOUND,
    COLONY_HANDLED,
    COLONY_LEADER,
)


class Tracer:
    """Makes rows only while somebody records them."""

    def __init__(self, me: NodeId, effects: Effects) -> None:
        self._me = me
        self._effects = effects

    def leader(self, leader: NodeId, detail: str, hops: int) -> None:
        """A leader was found, or lost."""
        if self._effects.tracing:
            self._effects.trace(Trace(COLONY_LEADER, leader, detail=detail, hops=hops))

    def asked(self, request: int, wants: int, mode: str) -> None:
        """A request of this node began."""
        if self._effects.tracing:
            self._effects.trace(
                Trace(COLONY_ASKED, origin=self._me, stream=request, count=wants, detail=mode)
            )

    def handled(self, client: NodeId, request: int, sender: NodeId, wants: int, hops: int) -> None:
        """This broker got one: the paper's load."""
        if self._effects.tracing >= Level.MESSAGES:
            row = Trace(
                COLONY_HANDLED, sender, origin=client, stream=request, count=wants, hops=hops
            )
            self._effects.trace(row)

    def found(self, request: int, index: int, servant: NodeId, hops: int, after: float) -> None:
        """Somebody serves a want of this node."""
        if self._effects.tracing:
            row = Trace(
                COLONY_FOUND,
                servant,
                origin=self._me,
                stream=request,
                first=index,
                hops=hops,
                duration=after,
            )
            self._effects.trace(row)

    def done(self, request: int, served: int, wants: int, after: float, complete: bool) -> None:
        """A request of this node ended."""
        if self._effects.tracing:
            self._effects.trace(
                Trace(
                    COLONY_DONE,
                    origin=self._me,
                    stream=request,
                    count=served,
                    value=float(wants),
                    duration=after,
                    detail="complete" if complete else "timed out",
                )
            )
