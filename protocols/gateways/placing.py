"""Lines whose reader is whoever is responsible for their topic on a ring."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from overlay.ids import NodeId, Vid
from protocols.gateways.core import Circle
from protocols.gateways.ledger import Book, Stake, topic_of
from protocols.gateways.writing import Writer


class Placement:
    """One book of ledgers, spread over a ring; lines move when the ring changes."""

    def __init__(
        self, writer: Writer, circle: Circle, book: Book, place: Callable[[str], Vid]
    ) -> None:
        self._writer = writer
        self._circle = circle
        self._book = book
        self._place = place

    def peer(self, topic: str) -> NodeId | None:
        """Who is told of that topic."""
        return self._circle.responsible_for(self._place(topic))

    def put(self, key: str, stake: Stake, now: float) -> None:
        """Write a line."""
        peer = self.peer(topic_of(key))
        if peer is not None:
            self._writer.put(self._book, peer, key, stake, now)

    def withdraw(self, key: str, now: float) -> None:
        """Tell that a line holds no more."""
        peer = self.peer(topic_of(key))
        if peer is not None:
            self._writer.withdraw(self._book, peer, key, now)

    def follow(self, new: Sequence[NodeId], gone: Sequence[NodeId], now: float) -> list[str]:
        """The ring changed: tell those who are responsible now, and return the keys that moved.

        Only who is gone, and who follows on a newcomer, can have lost something.
        """
        losers = dict.fromkeys(gone)
        for name in new:
            losers.update(dict.fromkeys(self._circle.ring.successors(name, 1)))
        moved = []
        for peer in losers:
            for key, stake in list(self._writer.lines(self._book, peer).items()):
                if self.peer(topic_of(key)) != peer:
                    self._writer.forget(self._book, peer, key, now)
                    self.put(key, stake, now)
                    moved.append(key)
        for peer in gone:
            self._writer.drop(self._book, peer)
        return moved
