"""Fetching what other brokers kept: the older part of a box, before what came here itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from overlay.ids import NodeId
from overlay.protocol import ContactLearned, Effects
from protocols.content.interface import ContentView
from protocols.mobility.box import FORGOTTEN, SILENT, Box, Inlet, Source
from protocols.mobility.boxes import Boxes
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_counts import KeepingCounts
from protocols.mobility.keeping_log import Log
from protocols.mobility.keeping_messages import Batch, Drained, Fetch, Kept, Place, Taken
from protocols.mobility.keeping_shelf import Shelf

UNKNOWN, SUPERSEDED = "unknown", "superseded"


class Broker(NamedTuple):
    """The parts of a broker that fetching needs."""

    me: NodeId
    effects: Effects
    config: KeepingSettings
    content: ContentView
    boxes: Boxes
    log: Log
    shelf: Shelf
    counts: KeepingCounts
    grew: Callable[[Box], None]  # there is more to send, perhaps all of it is here


class Fetching:
    """Asks the places where a subscriber was, one after the other, until one has its box."""

    def __init__(self, broker: Broker) -> None:
        self._at = broker

    def begin(self, box: Box, since: tuple[Place, ...], now: float) -> None:
        """A box is new: what was kept at earlier visits comes first."""
        if since:
            box.source = Source(since)
            self.turn(box, now)
            return
        earlier = [one for one in self._at.boxes.of(box.client) if one is not box]
        if earlier:  # the subscriber remembers nothing, but this broker does
            self._absorb(box, max(earlier, key=lambda one: one.visit), now)

    def look_after(self, box: Box, now: float) -> None:
        """Ask again, or give a silent broker up."""
        if box.source is None:
            return
        if now >= box.source.deadline:
            self._not_there(box, SILENT, now)
        elif now - box.asked_at >= self._at.config.resend:
            self._ask(box, now)

    def turn(self, box: Box, now: float) -> None:
        """Ask the next place; with none left begin with a gap, if something was kept anywhere."""
        source = box.source
        assert source is not None
        place = source.turn(now + self._at.config.fetch_within)
        if place is None:
            box.source = None
            if source.missed:
                self._at.counts.not_fetched += 1
                self._at.log.keep(box, Kept("", reason=source.missed), now)
            self._all_here(box, now)
        elif place.broker == self._at.me:
            old = self._at.boxes.get(box.client, place.visit)
            if old is None:
                self._not_there(box, FORGOTTEN, now)
            else:
                self._at.log.drop_taken(old, place.next)
                self._absorb(box, old, now)
        else:
            if place.endpoints and place.broker not in self._at.content.neighbours():
                self._at.effects.emit(ContactLearned(place.broker, place.endpoints))
            self._ask(box, now)

    def _ask(self, box: Box, now: float) -> None:
        source = box.source
        assert source is not None
        assert source.place is not None
        box.asked_at = now
        asked = Fetch(box.client, source.place.visit, source.inlet.next, box.visit)
        self._at.effects.send(source.place.broker, asked)

    def _not_there(self, box: Box, reason: str, now: float) -> None:
        source = box.source
        assert source is not None
        assert source.place is not None
        if source.place.sure:
            source.missed = source.missed or reason
        self.turn(box, now)

    def _absorb(self, box: Box, old: Box, now: float) -> None:
        """A box of this same broker goes on as another."""
        for entry in Inlet(old.taken).take(old.batch(old.oldest, old.next, old.bytes)):
            self._at.log.keep_older(box, entry, now)
        self._at.log.adopt(box, old)
        box.source = old.source
        box.absorbed += (*old.absorbed, old.visit)
        self._at.boxes.close(old, now)
        if box.source is None:
            self._all_here(box, now)

    def _all_here(self, box: Box, now: float) -> None:
        """What came meanwhile follows what was fetched."""
        box.source = None
        self._at.log.release(box, now)
        self._at.shelf.put_box(box)
        self._at.grew(box)

    # -- what the old broker says ---------------------------------------------------------------

    def on_batch(self, src: NodeId, msg: Batch, now: float) -> None:
        """A part of it."""
        box = self._fetched_from(src, msg.client, msg.visit)
        if box is None:
            self._at.counts.strays += 1
            return
        assert box.source is not None
        box.source.deadline = now + self._at.config.fetch_within
        for entry in box.source.inlet.take(msg):
            self._at.log.keep_older(box, entry, now)
        taken = Taken(msg.client, msg.visit, box.source.inlet.next)
        self._at.shelf.after(lambda: self._at.effects.send(src, taken))
        self._at.grew(box)

    def on_drained(self, src: NodeId, msg: Drained, now: float) -> None:
        """The end of it; or it is not there."""
        box = self._fetched_from(src, msg.client, msg.visit)
        if box is None:
            self._at.counts.strays += 1
            if not msg.reason:  # the last word was lost
                self._at.effects.send(src, Taken(msg.client, msg.visit, 0, done=True))
            return
        assert box.source is not None
        if msg.by != box.visit:  # an answer to an earlier visit, whose box went on as this one
            self._at.counts.strays += 1
        elif msg.reason == SUPERSEDED:
            self._at.counts.superseded += 1
            self._at.boxes.close(box, now)
        elif msg.reason:
            self._not_there(box, FORGOTTEN, now)
        elif box.source.inlet.next >= msg.end:
            for stand in msg.stands:
                box.marks.passes(stand)
            self._at.counts.fetched += 1
            self._all_here(box, now)
            done = Taken(msg.client, msg.visit, msg.end, done=True)
            self._at.shelf.after(lambda: self._at.effects.send(src, done))

    def _fetched_from(self, src: NodeId, client: NodeId, visit: int) -> Box | None:
        for box in self._at.boxes.of(client):
            place = box.source.place if box.source is not None else None
            if place is not None and (place.broker, place.visit) == (src, visit):
                return box
        return None
