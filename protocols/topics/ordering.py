"""Puts the chunks of a stream in order: what came too early waits, within a bound."""

from __future__ import annotations

from protocols.topics.history import Chunk
from protocols.topics.messages import MOST_GAPS, Range

MESSAGE_BYTES = 16  # that each message counts as in a queue, besides its own


def weight(chunk: Chunk) -> int:
    """What a chunk counts as."""
    return len(chunk.payload) + MESSAGE_BYTES * chunk.count


class Order:
    """Which message is next, which are known of, and what waits for those before."""

    __slots__ = ("_capacity", "_early", "bytes", "expected", "newest")

    def __init__(self, capacity: int) -> None:
        self.expected = 0  # the next message to hand over; 0: where it begins is not known yet
        self.newest = 0  # of which we heard
        self.bytes = 0
        self._capacity = capacity
        self._early: dict[int, Chunk] = {}  # by first

    def keep(self, chunk: Chunk) -> bool:
        """Let a chunk wait; False when it waits already, or there is no room: it comes again."""
        if chunk.first in self._early:
            return False
        size = weight(chunk)
        if self.bytes + size > self._capacity and self._early:
            return False
        self._early[chunk.first] = chunk
        self.bytes += size
        return True

    def first(self) -> Chunk | None:
        """The earliest chunk that waits."""
        return self._early[min(self._early)] if self._early else None

    def drop(self, chunk: Chunk) -> None:
        """It waits no longer."""
        del self._early[chunk.first]
        self.bytes -= weight(chunk)

    def next_after_gap(self) -> int:
        """The first message after what is missing next."""
        return min(self._early, default=self.newest + 1)

    def lacks(self) -> bool:
        """Whether the next message did not arrive though later ones are known."""
        if self.expected > self.newest:
            return False
        first = self.first()
        return first is None or first.first > self.expected

    def gaps(self) -> tuple[Range, ...]:
        """What did not arrive, of all that we heard of; the first ranges of it."""
        found: list[Range] = []
        after = self.expected - 1
        for first in sorted(self._early):
            if first > after + 1:
                found.append((after + 1, first - 1))
                if len(found) == MOST_GAPS:
                    return tuple(found)
            after = max(after, self._early[first].last)
        if after < self.newest:
            found.append((after + 1, self.newest))
        return tuple(found)

    def check(self) -> str:
        """What is wrong with it; nothing should."""
        size = sum(map(weight, self._early.values()))
        if size != self.bytes:
            return f"{size} bytes wait, counted as {self.bytes}"
        if self.expected and self.newest < self.expected - 1:
            return f"handed over {self.expected - 1} of {self.newest}"
        return ""
