"""What a sender keeps of a stream: chunks of consecutive messages, encoded once.

A chunk is at once what waits, what travels and what is sent again. Chunks are trimmed from the
old end as a whole, so the bounds hold at every moment and nobody counts single messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

import msgspec

CHUNK_BYTES = 256  # that a chunk takes on its way besides its payload, with its names
COMPACT_AT = 256  # trimmed places at the front of the list


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """Messages `first` to `last`: one MessagePack array, or a single message itself (`bare`)."""

    first: int
    count: int
    sent_at: float
    payload: bytes
    end: int = 0  # bytes of the stream up to the end of this chunk: differences count what waits
    kept_at: float = 0.0  # by the clock of the node that keeps it; `sent_at` is overlay time
    bare: bool = False  # nothing is around its one message: large ones are never copied

    @property
    def last(self) -> int:
        """The number of its last message."""
        return self.first + self.count - 1

    @property
    def cost(self) -> int:
        """Bytes that it counts as when it is sent again: one request must not bring thousands."""
        return len(self.payload) + CHUNK_BYTES


_FIRST = attrgetter("first")


class History:
    """The chunks of one stream, oldest first; there may be holes, but no overlap."""

    __slots__ = ("_chunks", "_from", "bytes", "end", "messages", "newest", "oldest")

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest  # the number of the last message
        self.oldest = newest + 1  # of the first one that is held, or of the next one
        self.messages = 0
        self.bytes = 0
        self.end = 0  # bytes of everything that was ever added
        self._chunks: list[Chunk] = []
        self._from = 0  # those before are trimmed

    def __len__(self) -> int:
        return len(self._chunks) - self._from

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._chunks[self._from :])

    def add(
        self,
        first: int,
        count: int,
        sent_at: float,
        payload: bytes,
        kept_at: float = 0.0,
        *,
        bare: bool = False,
    ) -> Chunk:
        """Append what was published next."""
        self.end += len(payload)
        chunk = Chunk(first, count, sent_at, payload, self.end, kept_at, bare)
        if not len(self):
            self.oldest = first
        self._chunks.append(chunk)
        self.bytes += len(payload)
        self.messages += count
        self.newest = chunk.last
        return chunk

    def put_before(self, chunks: list[Chunk]) -> None:
        """Put what was published earlier in front of what is here."""
        first = self.first
        before = self.newest + 1 if first is None else first.first
        end = self.end if first is None else first.end - len(first.payload)
        placed: list[Chunk] = []
        for chunk in reversed(chunks):
            if chunk.last < before:
                placed.insert(0, msgspec.structs.replace(chunk, end=end))
                end -= len(chunk.payload)
                self.bytes += len(chunk.payload)
                self.messages += chunk.count
                self.oldest = chunk.first
        self._chunks[: self._from] = placed
        self._from = 0

    def skip_to(self, number: int) -> None:
        """The next message has that number: those before it are lost to this sender, too."""
        if number > self.newest + 1:
            self.newest = number - 1
            if not len(self):
                self.oldest = number

    def drop_oldest(self) -> Chunk:
        """Forget the oldest chunk, and return it."""
        chunk = self._chunks[self._from]
        self._from += 1
        self.bytes -= len(chunk.payload)
        self.messages -= chunk.count
        if self._from >= COMPACT_AT and self._from * 2 >= len(self._chunks):
            del self._chunks[: self._from]
            self._from = 0
        elif self._from == len(self._chunks):
            self._chunks.clear()
            self._from = 0
        else:
            self._chunks[self._from - 1] = _NOTHING
        self.oldest = self._chunks[self._from].first if len(self) else self.newest + 1
        return chunk

    @property
    def first(self) -> Chunk | None:
        """The oldest chunk."""
        return self._chunks[self._from] if len(self) else None

    def at(self, number: int) -> Chunk | None:
        """The chunk with that message, or the next one after it; None when there is none."""
        index = self._index(number)
        return self._chunks[index] if index < len(self._chunks) else None

    def overlapping(self, first: int, last: int) -> Iterator[Chunk]:
        """Chunks with any of these messages, the oldest first."""
        for index in range(self._index(first), len(self._chunks)):
            chunk = self._chunks[index]
            if chunk.first > last:
                return
            yield chunk

    def offset(self, number: int) -> int:
        """Bytes of the stream up to and with that message, in whole chunks."""
        chunk = self.at(number + 1)
        return self.end if chunk is None else chunk.end - len(chunk.payload)

    def _index(self, number: int) -> int:
        index = bisect_right(self._chunks, number, lo=self._from, key=_FIRST) - 1
        if index >= self._from and self._chunks[index].last >= number:
            return index
        return index + 1 if index >= self._from else self._from


_NOTHING = Chunk(0, 0, 0.0, b"")  # in the place of a trimmed chunk, so that its bytes are freed
