"""The broker that a client leaves: what it keeps, whom it tells, and when all has passed."""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.content.interface import Advertised, EntryId, MobileContent
from protocols.mobility.config import MobilitySettings
from protocols.mobility.counts import MobilityCounts
from protocols.mobility.events import ClientMovedOut
from protocols.mobility.messages import (
    GRAFTING,
    KEEPING,
    MAX_ENTRIES,
    Entry,
    HandedOver,
    Handover,
    MoveOut,
    StandIn,
)
from protocols.mobility.sounding import Sounding
from protocols.mobility.standing import Standing

LEAVE = "leave"  # and a client: it moved in elsewhere, and its last word may be under way


def entries_of(
    content: MobileContent, offers: list[Advertised], *, graft: bool
) -> tuple[Entry, ...]:
    """Advertisements as another broker is told of them; with `graft`, for the trees they have."""
    found = []
    for one in offers[:MAX_ENTRIES]:
        known = content.advertisement(one.id)
        root = known.epoch if graft and known is not None else 0
        found.append(Entry(one.id, one.constraint.wire(), one.model, one.whole, one.note, root))
    return tuple(found)


class Leaver:
    """A client that left, until nothing of it is under way."""

    __slots__ = ("asked", "entries", "flushing", "is_flushed", "told")

    def __init__(self) -> None:
        self.entries: list[EntryId] = []
        self.flushing = 0
        self.is_flushed = False
        self.asked: dict[NodeId, Handover] = {}  # by whom
        self.told: tuple[NodeId, StandIn] | None = None  # who is told after the flush


class Leaving:
    """All clients that left this broker lately."""

    def __init__(
        self,
        effects: Effects,
        config: MobilitySettings,
        content: MobileContent,
        counts: MobilityCounts,
        standing: Standing,
        sounding: Sounding,
    ) -> None:
        self._effects = effects
        self._config = config
        self._content = content
        self._counts = counts
        self._standing = standing
        self._sounding = sounding
        self._leavers: dict[NodeId, Leaver] = {}
        self.came_by: Callable[[NodeId], int] = lambda client: 0
        self.passes: Callable[[NodeId, float], bool] = lambda client, now: False

    def is_flushed(self, client: NodeId) -> bool:
        """Whether nothing that it published here is under way."""
        return client not in self._leavers

    def moved_out(self, client: NodeId, msg: MoveOut, now: float) -> None:
        """A client says that it leaves."""
        if client not in self._content.clients():
            self._counts.strays += 1
            return
        self._effects.emit(ClientMovedOut(client))
        if client in self._leavers and self._leavers[client].flushing:
            return  # it came back and left again, and was not let in meanwhile
        offers = self._content.moving.offers_of(client)
        before = self._leavers.pop(client, None)
        leaver = Leaver()
        leaver.asked = {} if before is None else before.asked
        leaver.entries = [one.id for one in offers]
        if msg.predicted and offers:
            graft = msg.algorithm == "prefetching+delayed"
            lease = self._config.expected
            entries = entries_of(self._content, offers, graft=graft)
            stand_in = StandIn(client, msg.epoch, lease, entries)
            leaver.told = (msg.predicted, stand_in)
        if self.passes(client, now):  # nothing was published here, but elsewhere before
            self._leavers[client] = leaver
            leaver.flushing = 1
            return
        seconds = self._config.teardown if msg.algorithm in KEEPING else 0.0
        is_lossless = msg.handing == "lossless" and bool(offers)
        if is_lossless:  # whatever the algorithm: publications are under way on these trees
            self._standing.keep(client, "kept", 2 * self._config.patience, now)
        elif msg.algorithm in GRAFTING:
            self._standing.keep(client, "kept", seconds, now)
        if not is_lossless:
            self._end(client, leaver, now)
            return
        self._leavers[client] = leaver
        leaver.flushing = len(offers)

        def flushed(complete: bool, when: float) -> None:
            leaver.flushing -= 1
            self._counts.incomplete += not complete
            if not leaver.flushing:
                self._standing.limit(leaver.entries, max(now + seconds, when), when)
                self._end(client, leaver, when)

        for one in offers:
            self._sounding.begin(one.id, flushed, now, flush=True)

    def passed(self, client: NodeId, now: float) -> None:
        """A client that left before it was handed over has been so by now."""
        leaver = self._leavers.get(client)
        if leaver is not None:
            self._end(client, leaver, now)

    def _end(self, client: NodeId, leaver: Leaver, now: float) -> None:
        """All has passed: others may begin."""
        if self._leavers.get(client) is leaver:
            del self._leavers[client]
        if leaver.told is not None:
            self._effects.send(*leaver.told)
        for broker, handover in leaver.asked.items():
            self._hand_over(broker, handover)

    def handover(self, src: NodeId, msg: Handover, now: float) -> None:
        """Another broker has a client that was here."""
        leaver = self._leavers.get(msg.client)
        if leaver is not None:
            leaver.asked[src] = msg
        elif msg.client not in self._content.clients() or self.came_by(msg.client) > msg.number:
            self._hand_over(src, msg)  # it is gone; or it was there, and has come back since
        elif msg.handing == "lossless":  # its last word may be under way
            leaver = self._leavers[msg.client] = Leaver()
            leaver.asked[src] = msg
            self._effects.set_timer((LEAVE, msg.client), now + self._config.retry)
        else:
            self._let_go(src, msg, now)

    def on_timer(self, client: NodeId, now: float) -> None:
        """A client did not say that it leaves."""
        leaver = self._leavers.get(client)
        if leaver is None or leaver.flushing:
            return
        newest = max(leaver.asked.items(), key=lambda one: one[1].number)
        if client in self._content.clients() and newest[1].number > self.came_by(client):
            self._let_go(*newest, now)
        else:
            self._end(client, leaver, now)

    def gone(self, client: NodeId, now: float) -> None:
        """It left, with or without a word."""
        leaver = self._leavers.get(client)
        if leaver is not None and not leaver.flushing:
            self._end(client, leaver, now)

    def _let_go(self, src: NodeId, msg: Handover, now: float) -> None:
        """It moved without a word."""
        self._counts.expelled += 1
        self.moved_out(msg.client, MoveOut(msg.algorithm, msg.handing), now)
        self._content.expel(msg.client, now)
        leaver = self._leavers.get(msg.client)
        if leaver is not None:
            leaver.asked[src] = msg
        else:
            self._hand_over(src, msg)

    def _hand_over(self, src: NodeId, msg: Handover) -> None:
        self._counts.handed_over += 1
        if msg.handing == "lossless":
            self._effects.send(src, HandedOver(msg.client, msg.number))
