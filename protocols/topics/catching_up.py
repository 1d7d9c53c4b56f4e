"""What came before a subscription, or a relay, began: recalled, and put in front of the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from overlay.tracing.kinds import REPLAYED
from protocols.topics.events import Gap
from protocols.topics.history import Chunk
from protocols.topics.ordering import weight
from protocols.topics.recalling import Recaller, Recalling
from protocols.topics.relaying import Relay
from protocols.topics.subscription import Batch, Replay, Subscription

Done: TypeAlias = Callable[[Recalling, float], None]


class CatchUp(Recalling):
    """Stands in a stream in the place of a subscription that began later than others.

    What arrives for all waits here, within the capacity of the subscription, until the replay is
    through; then the subscription takes its own place.
    """

    def __init__(self, stream: Recaller, one: Subscription, upto: int, done: Done) -> None:
        super().__init__(stream, one.replay, upto)
        self.one = one
        self.held = False  # the stream waits for room here
        self.replay = one.replay
        self._later: deque[Batch] = deque()
        self._bytes = 0
        self._when_done = done

    @property
    def has_room(self) -> bool:
        """Whether another batch may wait until the replay is through."""
        return self._bytes < self.one.capacity

    def put(self, batch: Batch) -> None:
        """What arrives for all."""
        self._later.append(batch)
        self._bytes += batch.size

    def _has_room(self) -> bool:
        if not self.one.has_room:
            self.one.held = True
            return False
        return True

    def _take(self, chunk: Chunk, items: list[Any]) -> None:
        stream = self._stream
        batch = Batch(stream.topic, stream.key[0], chunk.first, chunk.sent_at, items, weight(chunk))
        self.one.put(batch)
        self._core.counts.delivered += chunk.count
        self._core.counts.replayed += chunk.count
        if self._core.effects.tracing:
            stream.trace(chunk, stream.source, 1, REPLAYED)

    def _missed(self, first: int, last: int, reason: str) -> None:
        self._core.counts.gaps += last - first + 1
        self.one.tell_gap(Gap(self._stream.topic, *self._stream.key, first, last, reason))

    def _done(self, now: float) -> None:
        while self._later:
            self.one.put(self._later.popleft())
        self._when_done(self, now)


class Backfill(Recalling):
    """Gets for an ordered relay what the publisher keeps: those behind it may ask for it.

    In ack and nack mode a relay begins with all that there is, so it needs none.
    """

    def __init__(self, stream: Recaller, relay: Relay, upto: int, done: Done) -> None:
        super().__init__(stream, Replay.last(relay.config.keep), upto)
        self._relay = relay
        self._when_done = done
        self._chunks: list[Chunk] = []
        relay.backfilled = False

    def _has_room(self) -> bool:
        return True

    def _take(self, chunk: Chunk, items: list[Any]) -> None:
        self._chunks.append(chunk)

    def _missed(self, first: int, last: int, reason: str) -> None:
        """Ordered streams may lose."""
        self._core.counts.skipped += last - first + 1

    def _done(self, now: float) -> None:
        self._relay.history.put_before(self._chunks)
        self._relay.backfilled = True
        self._relay.trim(now)
        self._when_done(self, now)


Taker: TypeAlias = Subscription | CatchUp
"""Who gets what a stream hands over: a subscription, or one that catches up in its place."""
