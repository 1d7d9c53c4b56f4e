"""The order of publications: each advertisement's are handed on in growing order, once.

Publications of one stream come by one way, its *home*, in their order. When the tree changed, or
a graph has cycles, some come by another way: they wait until the home has caught up, is gone, or
`settle` has passed; then their way is the home. Who comes behind what was handed on is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.config import ContentSettings
from protocols.content.counts import ContentCounts
from protocols.content.interface import EntryId
from protocols.content.messages import Publication

SETTLE = "settle"  # and the advertisement: what waits is handed on

Place: TypeAlias = tuple[int, int]  # epoch and sequence


class Stream:
    """How far one advertisement's publications have come."""

    __slots__ = ("held", "home", "last")

    def __init__(self, home: NodeId) -> None:
        self.home: NodeId | None = home
        self.last: Place = (0, 0)
        self.held: dict[Place, tuple[NodeId, Publication]] = {}


class Streams:
    """All streams that passed here, the one heard of longest ago first."""

    def __init__(self, effects: Effects, config: ContentSettings, counts: ContentCounts) -> None:
        self._effects = effects
        self._config = config
        self._counts = counts
        self._streams: OrderedDict[EntryId, Stream] = OrderedDict()
        self._held = 0

    def __len__(self) -> int:
        return len(self._streams)

    def take(self, src: NodeId, msg: Publication, now: float) -> list[tuple[NodeId, Publication]]:
        """Say what may be handed on now, in order, and where each came from."""
        stream = self._streams.get(msg.advertisement)
        if stream is None:
            stream = self._begin(src, msg.advertisement)
        else:
            self._streams.move_to_end(msg.advertisement)
        place = (msg.epoch, msg.sequence)
        if place <= stream.last or (src != stream.home and place in stream.held):
            self._counts.behind += 1
            return []
        if stream.home is None:
            stream.home = src
        elif src != stream.home and self._waits(stream, src, msg, now):
            return []
        if not stream.held:
            stream.last = place
            return [(src, msg)]
        self._held += place not in stream.held
        stream.held[place] = (src, msg)
        return self._release(msg.advertisement, stream, place)

    def holds(self, entry: EntryId) -> bool:
        """Whether publications of it wait here."""
        stream = self._streams.get(entry)
        return stream is not None and bool(stream.held)

    def due(self, entry: EntryId) -> list[tuple[NodeId, Publication]]:
        """The old way had its time."""
        stream = self._streams.get(entry)
        if stream is None or not stream.held:
            return []
        last = max(stream.held)
        stream.home = stream.held[last][0]
        return self._release(entry, stream, last)

    def gone(self, hop: NodeId) -> list[tuple[NodeId, Publication]]:
        """Nothing comes from there any more: what waited for it goes on."""
        released: list[tuple[NodeId, Publication]] = []
        for entry, stream in self._streams.items():
            if stream.home == hop:
                stream.home = None
                released += self.due(entry)
        return released

    def _begin(self, src: NodeId, entry: EntryId) -> Stream:
        stream = self._streams[entry] = Stream(src)
        if len(self._streams) > self._config.max_streams:
            oldest, forgotten = self._streams.popitem(last=False)
            if forgotten.held:
                self._effects.cancel_timer((SETTLE, oldest))
                self._held -= len(forgotten.held)
            self._counts.streams_forgotten += 1
        return stream

    def _waits(self, stream: Stream, src: NodeId, msg: Publication, now: float) -> bool:
        if not self._config.settle:
            stream.home = src
            return False
        if self._held >= self._config.max_held:
            self._counts.not_held += 1
            stream.home = src
            return False
        if not stream.held:
            self._effects.set_timer((SETTLE, msg.advertisement), now + self._config.settle)
        stream.held[msg.epoch, msg.sequence] = (src, msg)
        self._held += 1
        self._counts.held += 1
        return True

    def _release(
        self, entry: EntryId, stream: Stream, upto: Place
    ) -> list[tuple[NodeId, Publication]]:
        ready = sorted(place for place in stream.held if place <= upto)
        stream.last = upto
        self._held -= len(ready)
        released = [stream.held.pop(place) for place in ready]
        if not stream.held:
            self._effects.cancel_timer((SETTLE, entry))
        return released

    def check(self) -> None:
        """Bounds hold, and nothing waits that was handed on."""
        if len(self._streams) > self._config.max_streams:
            raise InvariantViolation(f"{len(self._streams)} streams are remembered")
        held = sum(len(stream.held) for stream in self._streams.values())
        if held != self._held:
            raise InvariantViolation(f"{held} publications wait, not {self._held}")
        for entry, stream in self._streams.items():
            if stream.held and min(stream.held) <= stream.last:
                raise InvariantViolation(f"a publication of {entry} waits for its successors")
