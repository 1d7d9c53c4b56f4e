"""How far other nodes are: round trips that this node measures when somebody wants to know."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from protocols.echo import Echo, EchoAnswered, EchoTimedOut

if TYPE_CHECKING:
    from nodes.node import Node
    from overlay.ids import NodeId

FRESH = 30.0  # s that a measurement counts
AT_ONCE = 64  # nodes that are measured at a time
WITHIN = 2.0  # s for all of them: who is slower is not near
MOST = 10_000  # that are remembered


class Distances:
    """Asks for echoes, and remembers how long they took."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[NodeId, tuple[float, float]] = {}  # round trip, and when

    def round_trip(self, peer: NodeId) -> float | None:
        """What was measured lately; None: nothing."""
        known = self._known.get(peer)
        if known is None or time.monotonic() - known[1] > FRESH:
            return None
        return known[0]

    async def measure(self, peers: Collection[NodeId]) -> dict[NodeId, float]:
        """The round trips to those who answer."""
        others = [one for one in sorted(peers) if one != self._node.name]
        with trio.move_on_after(WITHIN):
            unknown = [one for one in others if self.round_trip(one) is None]
            for start in range(0, len(unknown), AT_ONCE):
                await self._ask(unknown[start : start + AT_ONCE])
        measured = {one: trip for one in others if (trip := self.round_trip(one)) is not None}
        if self._node.name in peers:
            measured[self._node.name] = 0.0
        return measured

    async def _ask(self, peers: list[NodeId]) -> None:
        echo = self._node.protocol(Echo)
        with self._node.events(EchoAnswered, EchoTimedOut, capacity=4 * AT_ONCE) as ends:
            # Twice: the first one may have to wait for a link to open.
            for _ in range(2):
                waiting = {self._node.call(echo.ask, peer, b""): peer for peer in peers}
                while waiting:
                    end = await anext(ends)
                    peer = waiting.pop(end.id, None)
                    if peer is not None and isinstance(end, EchoAnswered):
                        self._note(peer, end.round_trip)

    def _note(self, peer: NodeId, round_trip: float) -> None:
        self._known.pop(peer, None)
        self._known[peer] = (round_trip, time.monotonic())
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
