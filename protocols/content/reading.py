"""Reading the ledgers of others: changes in their order, the whole when one is missing."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Effects
from overlay.rates import RateLimit
from protocols.content.config import ContentSettings
from protocols.content.counts import ContentCounts
from protocols.content.events import ClientTold
from protocols.content.grafts import Graft
from protocols.content.hops import CLIENT, Hop, Row, read_line
from protocols.content.interface import Advertised
from protocols.content.ledger import ADVERTISEMENT, SUBSCRIPTION, Key, Line, key_of
from protocols.content.messages import Again, Change, Greeting, Page, Refused
from protocols.content.router import Router

REFUSALS_TOLD = 8  # of one message; the rest is only counted
ASKED_ONCE_IN = 0.5  # s: a whole ledger on its way, also where beats are rare
PATIENT_BEATS = 5  # before a ledger that did not fit is asked for again


class LedgerReader:
    """Turns lines of others into rows of the tables, within bounds."""

    def __init__(
        self, router: Router, effects: Effects, config: ContentSettings, counts: ContentCounts
    ) -> None:
        self._router = router
        self._effects = effects
        self._config = config
        self._counts = counts
        self._rates = RateLimit(config.client_changes, config.client_burst, float("inf"))

    def compare(self, src: NodeId, hop: Hop, msg: Greeting, now: float) -> None:
        """Ask for the ledger if the copy is not what the teller says."""
        copy = hop.copy
        if not msg.series:
            return
        if not copy.agrees(msg.series, msg.stamp, msg.digest):
            self._ask(src, hop, now)
        elif copy.refused and now - copy.asked_at >= PATIENT_BEATS * self._config.beat:
            self._ask(src, hop, now)  # perhaps it fits by now

    def change(self, src: NodeId, hop: Hop, msg: Change, now: float) -> None:
        """Take the next change; any other shows that one was lost."""
        follows = hop.copy.follows(msg)
        if follows is None:
            return
        if not follows:
            self._ask(src, hop, now)
            return
        rows = self._rows(src, hop, (*msg.advertisements, *msg.subscriptions, *msg.grafts))
        hop.copy.stamp = msg.stamp
        for entry in msg.unadvertised:
            self._drop(src, hop, Key(ADVERTISEMENT, entry))
        for entry in msg.unsubscribed:
            self._drop(src, hop, Key(SUBSCRIPTION, entry))
        for entry in msg.ungrafted:
            self._drop(src, hop, Key(ADVERTISEMENT, entry, graft=True))
        self._take(src, hop, rows, now)

    def page(self, src: NodeId, hop: Hop, msg: Page, now: float) -> None:
        """Take a page; the last one replaces the copy."""
        lines = hop.copy.page(msg)
        if lines is None:
            return
        rows = self._rows(src, hop, lines)
        hop.copy.refused = 0
        there = {key_of(line) for line in lines}
        for key in [key for key in hop.copy.hashes if key not in there]:
            self._drop(src, hop, key)
        self._take(src, hop, rows, now)
        if hop.role == CLIENT:
            self._effects.emit(ClientTold(src))

    def forget(self, src: NodeId, hop: Hop) -> None:
        """Take back everything that it told."""
        for key in list(hop.copy.hashes):
            self._drop(src, hop, key)

    def _ask(self, src: NodeId, hop: Hop, now: float) -> None:
        if now - hop.copy.asked_at < min(self._config.beat / 2, ASKED_ONCE_IN):
            return  # the answer is under way
        hop.copy.asked_at = now
        self._counts.asked_again += 1
        self._effects.send(src, Again(hop.copy.series))

    def _rows(
        self, src: NodeId, hop: Hop, lines: tuple[Line, ...] | list[Line]
    ) -> list[tuple[Line, Row]]:
        """All lines of a message, checked before any of them changes anything."""
        return [(line, read_line(src, hop.role, line)) for line in lines]

    def _take(
        self,
        src: NodeId,
        hop: Hop,
        rows: list[tuple[Line, Row]],
        now: float,
    ) -> None:
        refused = 0
        for line, row in rows:
            key = key_of(line)
            is_new = key not in hop.copy.hashes
            if not is_new and not hop.copy.differs(line):
                continue
            reason = self._objection(src, hop, key, is_new=is_new, now=now)
            if reason:
                refused += 1
                hop.copy.refused += 1
                self._counts.refused_lines += 1
                if hop.role == CLIENT and refused <= REFUSALS_TOLD:
                    self._effects.send(src, Refused(reason, line.id))
                continue
            hop.copy.take(line)
            hop.count(is_new, advertisement=key.advertisement)
            if isinstance(row, Advertised):
                self._router.offer(row)
            elif isinstance(row, Graft):
                self._router.graft(row)
            else:
                self._router.want(row)

    def _objection(self, src: NodeId, hop: Hop, key: Key, *, is_new: bool, now: float) -> str:
        if is_new and not hop.has_room(advertisement=key.advertisement):
            kind = "advertisements" if key.advertisement else "subscriptions"
            return f"too many {kind}: at most {getattr(hop.room, kind)}"
        if hop.role == CLIENT and not self._rates.admits(src, now):
            return f"too many changes: at most {self._config.client_changes:g} a second"
        return ""

    def _drop(self, src: NodeId, hop: Hop, key: Key) -> None:
        if hop.copy.drop(key):
            hop.count(-1, advertisement=key.advertisement)
            if key.graft:
                self._router.ungraft(key.id, src)
            elif key.advertisement:
                self._router.retract(key.id, src)
            else:
                self._router.unwant(key.id, src)
