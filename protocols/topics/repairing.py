"""Nack mode: whom to ask for what is missing, and what others get from us (§3.1.1).

A chunk that is lost in a tree is lost to all below. Whoever is near to the loss asks first, one
step up; those below ask it, and get the chunk as soon as it has it. So the source hears of one loss
once, and each request costs one chunk.
"""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.topics.core import Core
from protocols.topics.history import Chunk, History
from protocols.topics.messages import RELAY, Data, Nack, Range, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat
from protocols.topics.stream import check_ranges

MOST_ASKERS = 1024


class Repairs:
    """What this node asks of others for one stream, and does for them."""

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, source: NodeId, *, relay: bool
    ) -> None:
        self.tries = 0  # in vain, for what is missing next
        self.via = source  # who handed the last chunk on
        self.hops = 1
        self._core = core
        self._key = key
        self._topic = topic
        self._mode = mode
        self._relay = relay  # for others: only sources send to gateways as such
        self._recent = History()
        self._askers: dict[Seat, tuple[Range, ...]] = {}  # who lacks what we lack, too

    @property
    def bytes(self) -> int:
        """What was handed over since the begin."""
        return self._recent.end

    def first_pause(self) -> float:
        """How long to wait before the first request: the nearer to the source, the shorter."""
        delay = self._core.settings.nack_delay * self.hops
        return delay * self._core.rng.uniform(0.5, 1.0)

    def ask(self, gaps: tuple[Range, ...], source: NodeId) -> float:
        """Ask somebody; returns the pause before the next one is asked."""
        self.tries += 1
        self._core.counts.nacks += 1
        self._core.effects.send(self._whom(source), Nack(*self._key, gaps, self._relay))
        return self._core.settings.nack_again * min(1.5 ** (self.tries - 1), 10.0)

    def _whom(self, source: NodeId) -> NodeId:
        """Who handed chunks on to us, the source, or anybody who shares the topic: in turns."""
        if self._relay:
            return source
        turn = (self.tries - 1) % 3
        others = self._core.audience.interested(self._topic) if turn == 2 else ()
        if others:
            return self._core.rng.choice(others)
        return self.via if turn == 0 else source

    def ask_upstream(self, gaps: tuple[Range, ...], source: NodeId) -> None:
        """A relay lacks what somebody behind it asks for: its source may have it."""
        self._core.counts.nacks += 1
        self._core.effects.send(source, Nack(*self._key, gaps, self._relay))

    def remember(self, chunk: Chunk) -> None:
        """Keep a chunk for others, for a while."""
        recent = self._recent
        recent.add(chunk.first, chunk.count, chunk.sent_at, chunk.payload)
        while recent.bytes > self._core.settings.repair_bytes and len(recent):
            recent.drop_oldest()

    def on_nack(self, seat: Seat, gaps: tuple[Range, ...], expected: int) -> None:
        """Somebody lacks messages: send those that we have, and the others when they come."""
        check_ranges(seat.peer, gaps, 0)
        budget = self._core.settings.repair_bytes
        lacking: list[Range] = []
        sent = 0  # up to this one, just now: a chunk may have several of the gaps
        for first, last in gaps:
            for chunk in self._recent.overlapping(max(first, sent + 1), last):
                if budget <= 0:
                    return
                sent = chunk.last
                budget -= len(chunk.payload)
                self._send(seat, chunk)
            if last >= expected or not len(self._recent):
                lacking.append((first, last))
        if lacking and len(self._askers) < MOST_ASKERS:
            self._askers[seat] = tuple(lacking)

    def pass_on(self, chunk: Chunk) -> None:
        """Something arrived: perhaps others wait for it."""
        for seat, ranges in list(self._askers.items()):
            if any(first <= chunk.last and chunk.first <= last for first, last in ranges):
                self._send(seat, chunk)
                rest = tuple(one for one in ranges if one[1] > chunk.last)
                if rest:
                    self._askers[seat] = rest
                else:
                    del self._askers[seat]

    def _send(self, to: Seat, chunk: Chunk) -> None:
        self._core.counts.repairs += 1
        origin, stream = self._key
        self._core.effects.send(
            to.peer,
            Data(
                origin,
                stream,
                self._topic,
                self._mode,
                chunk.first,
                chunk.count,
                0,  # what the source still has we do not know
                chunk.sent_at,
                RELAY if to.relay else 0,
                chunk.payload,
            ),
        )
