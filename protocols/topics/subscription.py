"""One subscription of this node's application: what arrived and is not read yet, bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from overlay.ids import NodeId
from overlay.patterns import ANY, ONE
from protocols.topics.events import Gap
from protocols.topics.messages import NO_REPLAY, REPLAY_ALL, REPLAY_LAST, REPLAY_SINCE

NOTHING_WAITS: deque[Any] = deque(maxlen=0)  # in the place of an empty queue, for all of them
CROWD = 16  # parts of its capacity: one of them unread, and it is better to read than to take in


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Consecutive messages of one stream, in order."""

    topic: str
    publisher: NodeId
    first: int  # the number of the first one
    sent_at: float
    items: list[Any]
    size: int  # bytes that they count as


class Replay(NamedTuple):
    """What a subscription wants of the time before it began."""

    kind: int = NO_REPLAY
    amount: float = 0.0

    @classmethod
    def last(cls, messages: int) -> Replay:
        """The last so many of each publisher."""
        return cls(REPLAY_LAST, float(messages))

    @classmethod
    def since(cls, sent_at: float) -> Replay:
        """What was sent at that overlay time (Unix seconds) or later."""
        return cls(REPLAY_SINCE, sent_at)

    @classmethod
    def all(cls) -> Replay:
        """Whatever publishers still have."""
        return cls(REPLAY_ALL)


Admit: TypeAlias = Callable[[NodeId, str], bool]
"""Whether a subscription wants that publisher on that topic."""


def anybody(_publisher: NodeId, _topic: str) -> bool:
    """Accept every publisher."""
    return True


class Subscription:
    """A queue that the machine fills and the application empties.

    `wake` is called when the queue was empty. When `held` the machine waits for room: whoever
    empties the queue then calls `Topics.resume`. A gap that is this subscription's alone, in what
    is replayed to it, is told by `tell_gap`; those of a whole stream are events.
    """

    __slots__ = (
        "_crowded",
        "_wake",
        "admit",
        "bytes",
        "capacity",
        "held",
        "open",
        "pattern",
        "queue",
        "replay",
        "tell_gap",
    )

    def __init__(self, pattern: str, replay: Replay, admit: Admit, capacity: int) -> None:
        self.pattern = pattern
        self.replay = replay
        self.admit = admit
        self.capacity = capacity  # bytes
        self.queue: deque[Batch] = NOTHING_WAITS
        self.bytes = 0
        self.held = False
        self.open = True
        self.tell_gap: Callable[[Gap], None] = _nobody_hears
        self._wake: Callable[[], None] = _nobody
        self._crowded: Callable[[], None] = _nobody

    @property
    def is_exact(self) -> bool:
        """Whether it names one topic."""
        return not any(level in (ONE, ANY) for level in self.pattern.split("/"))

    def on_batch(self, wake: Callable[[], None]) -> None:
        """Have this called whenever something arrives in an empty queue."""
        self._wake = wake
        if self.queue:
            wake()

    def on_crowd(self, crowded: Callable[[], None]) -> None:
        """Have this called with each batch while a sixteenth of the capacity waits to be read."""
        self._crowded = crowded

    @property
    def has_room(self) -> bool:
        """Whether it takes another batch, of any size: the bound may be passed by one."""
        return self.bytes < self.capacity

    @property
    def is_crowded(self) -> bool:
        """Whether so much waits to be read that taking in more should wait."""
        return self.bytes * CROWD >= self.capacity

    def put(self, batch: Batch) -> None:
        """Queue one."""
        self.bytes += batch.size
        if not self.queue:
            self.queue = deque((batch,))  # 0.7 kB, so it lives only while something waits
            self._wake()
            return
        self.queue.append(batch)
        if self.is_crowded:
            self._crowded()

    def take(self) -> Batch:
        """The oldest batch; IndexError when there is none."""
        queue = self.queue
        batch = queue.popleft()
        self.bytes -= batch.size
        if not queue:
            self.queue = NOTHING_WAITS
        return batch


def replay_for_all(subscriptions: Iterable[Subscription]) -> Replay:
    """What all of them want; nothing when they differ: then each gets its own."""
    wanted = {one.replay for one in subscriptions}
    return wanted.pop() if len(wanted) == 1 else Replay()


def _nobody() -> None:
    """Nobody waits."""


def _nobody_hears(_gap: Gap) -> None:
    """Until an application does."""
