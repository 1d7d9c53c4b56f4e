"""A broker that keeps for subscribers: a box for each, and whoever takes from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from random import Random
from typing import ClassVar

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import (
    ContactLearned,
    Effects,
    Event,
    EventHandler,
    Handler,
    Message,
    OverlayProtocol,
)
from protocols.content.events import Delivered
from protocols.content.interface import ContentRouter, MayBe, anybody
from protocols.mobility.box import RESTARTED, Box, Source
from protocols.mobility.boxes import Boxes
from protocols.mobility.fetching import SUPERSEDED, UNKNOWN, Broker, Fetching
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_counts import KeepingCounts
from protocols.mobility.keeping_events import (
    KEEPER_EVENTS,
    BoxExpired,
    BoxHandedOver,
    SubscriberAway,
    SubscriberBack,
)
from protocols.mobility.keeping_log import Log
from protocols.mobility.keeping_messages import (
    MAX_ENDPOINTS,
    MESSAGES,
    Away,
    Batch,
    Drained,
    Fetch,
    Here,
    Hosted,
    Kept,
    Taken,
)
from protocols.mobility.keeping_shelf import Found, Shelf, read_kept

TICK = "tick"


class Keeper(OverlayProtocol):
    """The boxes of one broker."""

    name: ClassVar[str] = "keeping"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = (*KEEPER_EVENTS, ContactLearned)

    config: KeepingSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: KeepingSettings,
        *,
        content: ContentRouter,
        may_be: MayBe = anybody,
        here: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = KeepingCounts()
        self._may_be = may_be
        self._here = here
        self._shelf = Shelf(effects, durable=config.storage == "sqlite")
        self._log = Log(config, self.counts, self._shelf)
        self._boxes = Boxes(me, content, config, self._log, self._shelf)
        self._fetching = Fetching(
            Broker(
                me,
                effects,
                config,
                content,
                self._boxes,
                self._log,
                self._shelf,
                self.counts,
                self._grew,
            )
        )
        self._due: dict[Box, None] = {}  # to be sent at the end of this tick
        self._ticks = False

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring, but Hosted."""
        return {
            Here: self._on_here,
            Batch: self._fetching.on_batch,
            Taken: self._on_taken,
            Away: self._on_away,
            Fetch: self._on_fetch,
            Drained: self._fetching.on_drained,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """What matches."""
        return {Delivered: self._on_delivered}

    def boxes(self) -> Iterator[Box]:
        """All, for people to look at."""
        return iter(self._boxes)

    # -- a subscriber is here -------------------------------------------------------------------

    def _on_here(self, src: NodeId, msg: Here, now: float) -> None:
        wants = {want.name: want for want in msg.wants}
        if len(wants) < len(msg.wants):
            raise RemoteProtocolError("mobility-bad-wants", f"a name twice from {src}")
        box = self._boxes.get(src, msg.visit)
        is_new = box is None
        if (self._boxes.newest(src) > msg.visit) if box is None else box.by:
            self.counts.strays += 1  # it is elsewhere by now
            return
        if is_new and not self._boxes.has_room(src):
            self._refuse(src, msg, "no room for another subscriber: see mobility.max_subscribers")
            return
        if len(wants) > self.config.max_wants:
            self._refuse(src, msg, f"too many subscriptions: at most {self.config.max_wants}")
            return
        if box is None:
            box = self._open(src, msg.visit, now)
        box.keep_for = msg.keep_for or self.config.keep_for
        if msg.revision > box.revision:
            box.revision = msg.revision
            try:
                self._boxes.want(box, wants, now)
            except LocalProtocolError as error:  # a bound of content-based routing
                self._refuse(src, msg, str(error))
                if is_new:
                    self._boxes.close(box, now)
                return
        if is_new:
            self._fetching.begin(box, msg.since, now)
            self._shelf.put_box(box)
        self._heard(box, now)
        self._grew(box)
        self._greet(box)

    def _refuse(self, src: NodeId, msg: Here, reason: str) -> None:
        self.counts.refused += 1
        self.effects.send(src, Hosted(msg.visit, 0, reason=reason))

    def _greet(self, box: Box) -> None:
        box.told_complete = box.source is None
        here = tuple(self._here())[:MAX_ENDPOINTS]
        hosted = Hosted(box.visit, box.revision, box.taken, box.told_complete, endpoints=here)
        self.effects.send(box.client, hosted)

    def _open(self, client: NodeId, visit: int, now: float) -> Box:
        if not self._ticks:
            self._ticks = True
            self.effects.set_timer(TICK, now + self.config.resend)
        return self._boxes.open(client, visit, now)

    # -- who takes ------------------------------------------------------------------------------

    def _on_fetch(self, src: NodeId, msg: Fetch, now: float) -> None:
        if not self._may_be(src, "broker"):
            raise RemoteProtocolError("mobility-no-right", f"{src} may not be a broker")
        box = self._boxes.get(msg.client, msg.visit)
        reason = self._objection(msg, box)
        self._boxes.heard_of(msg.client, msg.by)
        if box is None or reason:
            self.effects.send(src, Drained(msg.client, msg.visit, msg.by, 0, reason=reason))
            return
        if box.by < msg.by:
            box.by, box.outlet, box.is_away = msg.by, src, False
            box.overlaps_until = now + self.config.overlap
            self._log.drop_taken(box, msg.next)
            box.sent = box.taken
            self._shelf.put_box(box)
        self._heard(box, now)
        self._grew(box)

    def _objection(self, msg: Fetch, box: Box | None) -> str:
        """Why a box does not go there: a later visit has it, or nobody knows it."""
        if msg.by <= msg.visit:
            raise RemoteProtocolError("mobility-bad-visit", f"{msg.by} fetches {msg.visit}")
        if box is not None:
            return SUPERSEDED if box.by > msg.by else ""
        later = self._boxes.of(msg.client)
        return SUPERSEDED if any(msg.visit in one.absorbed for one in later) else UNKNOWN

    def _on_taken(self, src: NodeId, msg: Taken, now: float) -> None:
        box = self._boxes.get(msg.client, msg.visit)
        if box is None or src != box.outlet:
            self.counts.strays += 1
            if src == msg.client and box is None:
                self.effects.send(src, Hosted(msg.visit, 0, reason=UNKNOWN))
            return
        self._heard(box, now)
        if msg.next > box.taken:
            box.moved_at = now
            self._log.drop_taken(box, msg.next)
        if msg.done and box.is_drained:
            self._handed_over(box, now)
        else:
            self._grew(box)

    def _handed_over(self, box: Box, now: float) -> None:
        self.counts.handed_over += 1
        self.effects.emit(BoxHandedOver(box.client, box.outlet))
        self._boxes.close(box, now)

    def _on_away(self, src: NodeId, msg: Away, now: float) -> None:
        box = self._boxes.get(src, msg.visit)
        if box is None or box.by:
            self.counts.strays += 1
            return
        if not msg.keep_for:
            self._boxes.close(box, now)
            return
        box.heard_at = now
        box.keep_for = msg.keep_for
        self._log.drop_taken(box, msg.next)
        self._went(box, silent=False)
        self._shelf.put_box(box)

    def _heard(self, box: Box, now: float) -> None:
        box.heard_at = now
        if box.is_away:
            box.is_away = False
            box.sent = box.taken
            self.counts.back += 1
            self.effects.emit(SubscriberBack(box.client))

    def _went(self, box: Box, *, silent: bool) -> None:
        if not box.is_away:
            box.is_away = True
            self.counts.away += 1
            self.effects.emit(SubscriberAway(box.client, silent))

    # -- what is kept, and sent -----------------------------------------------------------------

    def _on_delivered(self, event: Delivered, now: float) -> None:
        found = self._boxes.owner(event.subscription)
        if found is not None:
            box, name = found
            item = dict(event.item)
            kept = Kept(name, event.advertisement, event.epoch, event.sequence, item)
            self._log.keep(box, kept, now)
            self._grew(box)

    def _grew(self, box: Box) -> None:
        self._due[box] = None
        self.effects.at_tick_end(self._send_due)

    def _send_due(self, now: float) -> None:
        due, self._due = self._due, {}
        for box in due:
            if self._boxes.get(box.client, box.visit) is box:
                self._send(box, now)

    def _send(self, box: Box, now: float) -> None:
        """All that the window has room for; to nobody who is silent."""
        if box.is_drained:
            stands = box.marks.stands()
            all_of_it = Drained(box.client, box.visit, box.by, box.next, stands)
            self.effects.send(box.outlet, all_of_it)
            return
        if box.is_away or now - box.heard_at > self.config.lease:
            return
        if not box.by and box.source is None and not box.told_complete:
            self._greet(box)
        if box.sent == box.taken:
            box.moved_at = now
        upto = min(box.next, box.taken + self.config.window)
        while box.sent < max(upto, box.oldest):
            start = max(box.sent, box.oldest)
            msg = box.batch(start, max(start, upto), self.config.batch_bytes)
            self.counts.sent += len(msg.entries)
            self.effects.send(box.outlet, msg)
            box.sent = start + len(msg.entries)

    # -- time -----------------------------------------------------------------------------------

    def on_timer(self, key: Hashable, now: float) -> None:
        """Look after each box."""
        for box in list(self._boxes):
            if self._boxes.get(box.client, box.visit) is box:
                self._look_after(box, now)
        self._ticks = len(self._boxes) > 0
        if self._ticks:
            self.effects.set_timer(TICK, now + self.config.resend)

    def _look_after(self, box: Box, now: float) -> None:
        silence = now - box.heard_at
        if silence > max(box.keep_for, self.config.lease):
            self.counts.expired += 1
            self.effects.emit(BoxExpired(box.client, len(box.lines)))
            self._boxes.close(box, now)
            return
        if box.is_drained and silence > self.config.fetch_within:
            self._handed_over(box, now)  # all of it was taken; only the last word is missing
            return
        if silence > self.config.lease and not box.by:
            self._went(box, silent=True)
        self._log.expire(box, now)
        if box.by and box.wants and now >= box.overlaps_until:
            self._boxes.want_nothing(box, now)
        self._fetching.look_after(box, now)
        if box.taken < box.sent and now - box.moved_at >= self.config.resend:
            box.sent = box.taken
            self.counts.resent += 1
        self._send(box, now)

    # -- life -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Go on with the boxes of an earlier life."""
        found = read_kept(kept)
        self._boxes.start(max(found, default=0))
        for number, one in found.items():
            self._restore(number, one, now)

    def _restore(self, number: int, found: Found, now: float) -> None:
        kept = found.box
        assert kept is not None
        box = self._open(kept.client, kept.visit, now)
        box.id = number
        box.keep_for, box.revision = kept.keep_for, kept.revision
        box.outlet, box.by = kept.outlet, kept.by
        box.is_away = not kept.by
        box.overlaps_until = now + self.config.overlap
        self._log.restore(box, found)
        if kept.since:
            box.source = Source(kept.since)
        self._boxes.want(box, {want.name: want for want in kept.wants}, now)
        if kept.wants:  # what was published meanwhile did not come here
            self._log.keep(box, Kept("", reason=RESTARTED), now)
        if box.source is not None:
            self._fetching.turn(box, now)

    def on_stored(self, token: Hashable, now: float) -> None:
        """Go on with what waited for the disk."""
        self._shelf.on_stored(token)

    def check_invariants(self) -> None:
        """Bounds hold; each stand-in has its box."""
        self._boxes.check()
