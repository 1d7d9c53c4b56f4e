"""Nack mode: whom to ask for what is missing, and what others get from us (§3.1.1).

A chunk that is lost in a tree is lost to all below. Whoever is near to the loss asks first, one
step up; those below ask it, and get the chunk as soon as it has it. So the source hears of one loss
once, and each request costs one chunk.
"""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.topics.core import Core
from protocols.topics.history import Chunk, History
from protocols.topics.messages import BARE, RELAY, Nack, Range, Repair, StreamKey
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat
from protocols.topics.stream import check_ranges

MOST_ASKERS = 1024
QUICK_TRIES = 3  # of a source that sends to us directly
QUICK = 1 / 6  # of nack_again, before each of them is repeated
LEAST_PAUSE = 0.001  # s between two requests


class Repairs:
    """What this node asks of others for one stream, and does for them."""

    __slots__ = (
        "_again_at",
        "_asked_upto",
        "_askers",
        "_core",
        "_key",
        "_mode",
        "_recent",
        "_relay",
        "_topic",
        "awaited",
        "hops",
        "tries",
        "via",
    )

    def __init__(
        self, core: Core, key: StreamKey, topic: str, mode: Mode, source: NodeId, *, relay: bool
    ) -> None:
        self.tries = 0  # in vain, for what is missing next
        self.awaited = False  # the source knows that this node is behind
        self.via = source  # who handed the last chunk on
        self.hops = 1
        self._core = core
        self._key = key
        self._topic = topic
        self._mode = mode
        self._relay = relay  # for others: only sources send to gateways as such
        self._recent: History | None = None  # what others may ask for, once something came
        self._asked_upto = 0  # for gaps up to here somebody was asked
        self._again_at = 0.0  # then everything that is missing is asked for once more
        self._askers: dict[Seat, tuple[Range, ...]] | None = None  # who lacks what we lack, too

    def moved(self, core: Core) -> None:
        """This node is elsewhere now."""
        self._core = core

    @property
    def bytes(self) -> int:
        """What was handed over since the begin."""
        return 0 if self._recent is None else self._recent.end

    def first_pause(self) -> float:
        """How long to bear with a gap; in nack mode the shorter, the nearer to the source."""
        settings = self._core.settings
        if self._mode is Mode.NACK:
            return settings.nack_delay * self.hops * self._core.rng.uniform(0.5, 1.0)
        return settings.gap_delay if self._mode is Mode.ACK else settings.order_wait

    def ask(self, gaps: tuple[Range, ...], source: NodeId, now: float) -> float:
        """Ask somebody for what nobody was asked for yet, or for all once that is overdue.

        Returns the pause before the next one is asked.
        """
        if now >= self._again_at or gaps[0][0] > self._asked_upto:
            self.tries += 1
            self._again_at = now + self._patience(source)
        else:
            gaps = tuple(gap for gap in gaps if gap[0] > self._asked_upto)
        if gaps:
            self._asked_upto = gaps[-1][1]
            self._core.counts.nacks += 1
            whom = self._whom(source)
            self.awaited = self.awaited or whom == source
            self._core.effects.send(whom, Nack(*self._key, gaps, self._relay))
        return max(self._again_at - now, LEAST_PAUSE)

    def _patience(self, source: NodeId) -> float:
        """How long to wait for an answer to a request.

        A request that is lost must be repeated before history has gone on: a source that sends to
        us directly is asked again soon, and answers no chunk twice. In a tree all below a loss
        would do so.
        """
        again, tries = self._core.settings.nack_again, self.tries
        if self.hops == 1 and self.via == source:
            if tries <= QUICK_TRIES:
                return again * QUICK
            tries -= QUICK_TRIES
        return again * min(1.5 ** (tries - 1), 10.0)

    def caught_up(self, source: NodeId) -> None:
        """Nothing is missing any more: a source that was asked may wait for us."""
        self.awaited = False
        self._core.effects.send(source, Nack(*self._key, (), self._relay))

    def _whom(self, source: NodeId) -> NodeId:
        """Who handed chunks on to us, the source, or anybody who shares the topic: in turns."""
        if self._relay:
            return source
        turn = max(self.tries - 1, 0) % 3
        if turn == 2 and self.tries <= QUICK_TRIES and self.via == source:
            return source  # nobody else is nearer
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
        if recent is None:
            recent = self._recent = History()
        recent.add(chunk.first, chunk.count, chunk.sent_at, chunk.payload, bare=chunk.bare)
        while recent.bytes > self._core.settings.repair_bytes and len(recent):
            recent.drop_oldest()

    def on_nack(self, seat: Seat, gaps: tuple[Range, ...], expected: int) -> None:
        """Somebody lacks messages: send those that we have, and the others when they come."""
        check_ranges(seat.peer, gaps, 0)
        budget = self._core.settings.repair_bytes
        lacking: list[Range] = []
        sent = 0  # up to this one, just now: a chunk may have several of the gaps
        recent = self._recent or History()
        for first, last in gaps:
            for chunk in recent.overlapping(max(first, sent + 1), last):
                if budget <= 0:
                    return
                sent = chunk.last
                budget -= chunk.cost
                self._send(seat, chunk)
            if last >= expected or not len(recent):
                lacking.append((first, last))
        if not lacking:
            return
        if self._askers is None:
            self._askers = {}
        if len(self._askers) < MOST_ASKERS:
            self._askers[seat] = tuple(lacking)

    def pass_on(self, chunk: Chunk) -> None:
        """Something arrived: perhaps others wait for it."""
        if not self._askers:
            return
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
            Repair(
                origin,
                stream,
                self._topic,
                self._mode,
                chunk.first,
                chunk.count,
                0,  # what the source still has we do not know
                chunk.sent_at,
                (RELAY if to.relay else 0) | (BARE if chunk.bare else 0),
                chunk.payload,
            ),
        )
