"""The routing itself: from the tables to what each neighbour must be told, and back.

Every ledger is kept as a function of the two tables. An input changes a row; what depends on that
row is decided again, and only that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.predicates import intersects
from overlay.protocol import Event
from protocols.content.counts import ContentCounts
from protocols.content.covering import AdvertisementCovers, SubscriptionCovers, Wish
from protocols.content.events import (
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
)
from protocols.content.grafts import Graft, Grafts
from protocols.content.interface import Advertised, EntryId, Subscribed
from protocols.content.ledger import ADVERTISEMENT, SUBSCRIPTION, Key, Outgoing, Written, written
from protocols.content.messages import MAX_PATH, AdvertisementLine, SubscriptionLine
from protocols.content.prt import Prt
from protocols.content.srt import Srt

Emit: TypeAlias = Callable[[Event], None]


class Reader:
    """A node that is told of entries: a neighbour, or a client's broker."""

    __slots__ = ("ledger", "wishes")

    def __init__(self, series: int) -> None:
        self.ledger = Outgoing(series)
        self.wishes = SubscriptionCovers()


class Router:
    """The tables of one node, and the ledgers that follow from them."""

    def __init__(self, me: NodeId, *, is_broker: bool, counts: ContentCounts, emit: Emit) -> None:
        self._me = me
        self.is_broker = is_broker
        self._counts = counts
        self._emit = emit
        self.srt = Srt(me, stands_in=is_broker)
        self.prt = Prt(me)
        self.readers: dict[NodeId, Reader] = {}
        self.grafts = Grafts(me, self.srt)
        self._covers = AdvertisementCovers(self.srt)
        self._turns: dict[EntryId, dict[NodeId, int]] = {}  # how often a neighbour's part changed
        self._turned: dict[EntryId, tuple[NodeId, ...]] = {}  # where not the last hop alone counts

    # -- readers --------------------------------------------------------------------------------

    def add_reader(self, peer: NodeId, series: int) -> None:
        """Keep a ledger for that node."""
        reader = self.readers[peer] = Reader(series)
        for one in self.srt:
            if self._is_told(peer, one):
                reader.ledger.put(written(self._line(one)))
        for entry in self.prt.ids():
            self._reconsider(entry)

    def remove_reader(self, peer: NodeId) -> None:
        """It is told nothing more; what it told is taken back by `retract` and `unwant`."""
        self.readers.pop(peer, None)

    # -- advertisements -------------------------------------------------------------------------

    def offer(self, offer: Advertised) -> None:
        """A hop offers an advertisement (figure 2, with the path in place of the sender)."""
        before = self.srt.offers(offer.id).get(offer.hop)
        self.srt.put(offer)
        is_other = before is None or before.epoch != offer.epoch
        self._choose_again(offer.id, offer.hop, other_way=is_other)

    def retract(self, entry: EntryId, hop: NodeId) -> None:
        """A hop does not offer it any more."""
        if self.srt.remove(entry, hop) is not None:
            self._choose_again(entry, hop, other_way=True)

    def _choose_again(self, entry: EntryId, hop: NodeId, *, other_way: bool) -> None:
        before, after = self.srt.get(entry), self.srt.best(entry)
        if after is not None and after.graft and self.is_broker:
            after = after._replace(graft=0)  # no tree to use: this broker is the anchor
            self.srt.put(after)
        if before == after:
            if after is not None:
                self._regraft(after)
                if other_way:
                    self._turn(entry, hop)
                    self._ways_changed(after, hop)
            return
        retold: dict[EntryId, None] = {entry: None}
        if before is not None and after is not None and _says_the_same(before, after):
            self.srt.reroute(after)
            retold.update(dict.fromkeys(self._covers.covered_by(entry)))
        else:
            if before is not None:
                self.srt.unchoose(entry)
                retold.update(self._covers.removed(before))
            if after is not None:
                self.srt.choose(after)
                retold.update(self._covers.added(after))
        was_turned = entry in self._turned
        for other in retold:
            self._tell(other)
        touched, self._covers.touched = self._covers.touched, {}
        for other in (entry, *touched):
            self.regraft(other)
        if after is None:
            self._ungraft_all(entry)
        self._redirect(before, after, hop, turned=was_turned or entry in self._turned)
        if before is None:
            assert after is not None
            self._emit(AdvertisementAdded(after))
        elif after is None:
            self._emit(AdvertisementRemoved(before))
        else:
            self._emit(AdvertisementChanged(after, before))

    def _tell(self, entry: EntryId) -> None:
        """Tell whoever must be told, and take it back from all others."""
        one = self.srt.get(entry)
        line: Written | None = None
        for peer, reader in self.readers.items():
            if one is None or not self._is_told(peer, one):
                reader.ledger.strike(Key(ADVERTISEMENT, entry))
                continue
            if line is None:
                line = written(self._line(one))
            reader.ledger.put(line)

    def _line(self, one: Advertised) -> AdvertisementLine:
        wire = one.constraint.wire()
        path = (self._me, *one.path) if self.is_broker else ()
        graft = 0 if self.is_broker else one.graft
        return AdvertisementLine(
            one.id, one.epoch, wire, one.model, one.whole, one.note, path, graft
        )

    def _is_told(self, peer: NodeId, one: Advertised) -> bool:
        if not self.is_broker:
            return True
        if not self._leads_elsewhere(peer, one):
            return False
        cover = self._covers.cover_of(one.id)
        return cover is None or not self._leads_elsewhere(peer, cover)

    def _leads_elsewhere(self, peer: NodeId, one: Advertised) -> bool:
        """Whether that node is not on the way to the publisher."""
        if len(one.path) >= MAX_PATH:
            self._counts.too_far += 1
            return False
        return peer != one.hop and peer not in one.path

    def tree_to(self, peer: NodeId, one: Advertised) -> Advertised | None:
        """The tree by which a neighbour gets what is published under an advertisement from here.

        Its own, or its cover's if the neighbour was told of that instead; None: the neighbour has
        another way to the publisher, and gets it there.
        """
        if peer == one.hop and peer in self.readers:  # to the anchor, from a source behind here
            told = self.readers[peer].ledger.lines
            return one if Key(ADVERTISEMENT, one.id, graft=True) in told else None
        if not self._leads_elsewhere(peer, one):
            return None
        cover = self._covers.cover_of(one.id)
        if cover is not None and self._leads_elsewhere(peer, cover):
            one = cover
        return None if self.srt.has_way(one, peer) else one

    # -- grafts ---------------------------------------------------------------------------------

    def graft(self, row: Graft) -> None:
        """A hop has sources of an advertisement on its side, or says that it has none."""
        self.grafts.put(row)
        self.regraft(row.id)

    def ungraft(self, entry: EntryId, hop: NodeId) -> None:
        """A hop says nothing of them any more."""
        if self.grafts.remove(entry, hop):
            self.regraft(entry)

    def regraft(self, entry: EntryId) -> None:
        """What is known of an advertisement's sources changed."""
        one = self.srt.get(entry)
        if one is not None:
            self._regraft(one)

    def _regraft(self, one: Advertised) -> None:
        """Tell of sources whoever must know, and turn subscriptions to them."""
        entry = one.id
        if not self.is_broker:
            return
        is_used = bool(self.grafts.rows(entry)) or (bool(one.path) and self.grafts.is_source(one))
        if not is_used and entry not in self._turned:
            return
        covers = bool(self._covers.covered_by(entry))
        for peer, reader in self.readers.items():
            line = self.grafts.line(peer, one, covers=covers)
            if line is None:
                reader.ledger.strike(Key(ADVERTISEMENT, entry, graft=True))
            elif reader.ledger.put(written(line)):
                self._turn(entry, peer)
        before = self._turned.pop(entry, None)
        after = self.grafts.towards(one)
        if is_used:
            self._turned[entry] = after
        if after != ((one.hop,) if before is None else before):
            for other in self.prt.intersected_by(one.constraint, one.model):
                self._reconsider(other)

    def _ungraft_all(self, entry: EntryId) -> None:
        """An advertisement is not known any more."""
        self._turns.pop(entry, None)
        if self._turned.pop(entry, None) is not None:
            for reader in self.readers.values():
                reader.ledger.strike(Key(ADVERTISEMENT, entry, graft=True))

    def _turn(self, entry: EntryId, peer: NodeId) -> None:
        turns = self._turns.setdefault(entry, {})
        turns[peer] = turns.get(peer, 0) + 1

    def turns(self, entry: EntryId, peer: NodeId) -> int:
        """How often a neighbour began or ceased to have its part of that tree."""
        return self._turns.get(entry, {}).get(peer, 0)

    def towards(self, one: Advertised) -> tuple[NodeId, ...]:
        """The hops to which subscriptions go that want it: the last one, unless it was grafted."""
        return self._turned.get(one.id, (one.hop,))

    # -- subscriptions --------------------------------------------------------------------------

    def want(self, row: Subscribed) -> None:
        """A hop wants what matches a subscription (figure 3)."""
        if self.prt.rows(row.id).get(row.hop) != row:
            self.prt.put(row)
            self._reconsider(row.id)

    def unwant(self, entry: EntryId, hop: NodeId) -> None:
        """A hop does not want it any more."""
        if self.prt.remove(entry, hop) is not None:
            self._reconsider(entry)

    def _redirect(
        self, before: Advertised | None, after: Advertised | None, hop: NodeId, *, turned: bool
    ) -> None:
        """Send subscriptions to an advertisement's new last hop, and no more to the old one."""
        if before is None and not turned:
            assert after is not None
            reader = self.readers.get(after.hop)
            if reader is not None:
                for entry in self.prt.intersected_by(after.constraint, after.model):
                    best = self.prt.best(entry)
                    if (
                        best is not None
                        and entry not in reader.wishes
                        and best.model == after.model
                        and intersects(after.constraint, best.constraint)  # other rows may be older
                        and self._comes_that_way(entry, after, after.hop)
                    ):
                        self._wish(reader, best)
            return
        affected: dict[EntryId, None] = {}
        if before is not None:
            if after is not None and _says_the_same(before, after) and before.hop == after.hop:
                self._ways_changed(after, hop)
                return
            affected.update(self.prt.intersected_by(before.constraint, before.model))
        if after is not None:
            affected.update(self.prt.intersected_by(after.constraint, after.model))
        for entry in affected:
            self._reconsider(entry)

    def _ways_changed(self, one: Advertised, hop: NodeId) -> None:
        """A hop has a way of its own to that publisher, or has it no more."""
        if hop in self.readers and (one.hop in self.readers or one.id in self._turned):
            for entry in self.prt.intersected_by(one.constraint, one.model):
                if hop in self.prt.rows(entry):
                    self._reconsider(entry)

    def _comes_that_way(self, entry: EntryId, one: Advertised, to: NodeId) -> bool:
        """Whether the subscription came from behind this broker, as that source sees it."""
        return any(
            hop != to
            and (hop not in self.readers or hop == one.hop or not self.srt.has_way(one, hop))
            for hop in self.prt.rows(entry)
        )

    def _wanted_at(self, best: Subscribed) -> dict[NodeId, None]:
        """The neighbours that must get a subscription."""
        if not self.is_broker:
            return dict.fromkeys(self.readers)
        found: dict[NodeId, None] = {}
        if len(best.path) >= MAX_PATH:
            self._counts.too_far += 1
            return found
        for one in self.srt.intersecting(best.constraint, best.model):
            for hop in self.towards(one):
                if hop not in self.readers or hop in found:
                    continue
                if self._comes_that_way(best.id, one, hop):
                    found[hop] = None
            if len(found) == len(self.readers):
                break
        return found

    def _reconsider(self, entry: EntryId) -> None:
        """Decide again who must get a subscription."""
        best = self.prt.best(entry)
        wanted = {} if best is None else self._wanted_at(best)
        for peer, reader in self.readers.items():
            if peer in wanted:
                assert best is not None
                self._wish(reader, best)
            elif entry in reader.wishes:
                self._unwish(reader, entry)

    def _wish(self, reader: Reader, best: Subscribed) -> None:
        wish = Wish(best.constraint, best.model)
        before = reader.wishes.wish(best.id)
        if before is not None and before != wish:
            self._unwish(reader, best.id)
            before = None
        if before is None:
            reader.wishes.want(best.id, wish)
        if reader.wishes.is_told(best.id):
            self._write(reader, best)

    def _unwish(self, reader: Reader, entry: EntryId) -> None:
        reader.ledger.strike(Key(SUBSCRIPTION, entry))
        for other in reader.wishes.unwant(entry):
            best = self.prt.best(other)
            if best is not None:  # else it goes as well, in this same step
                self._write(reader, best)

    def _write(self, reader: Reader, best: Subscribed) -> None:
        path = (self._me, *best.path) if self.is_broker else ()
        line = SubscriptionLine(best.id, best.constraint.wire(), best.model, path)
        reader.ledger.put(written(line))

    # -- invariants -----------------------------------------------------------------------------

    def audit(self) -> None:
        """Every ledger is what the tables say; slow, for tests."""
        self.srt.check()
        self._covers.check()
        for peer, reader in self.readers.items():
            told = {one.id for one in self.srt if self._is_told(peer, one)}
            lines = {key.id for key in reader.ledger.lines if key.advertisement and not key.graft}
            if told != lines:
                raise InvariantViolation(f"{self._me} tells {peer} {lines}, not {told}")
            self._audit_grafts(peer, reader)
            reader.wishes.check()
            wanted = set()
            for entry in self.prt.ids():
                best = self.prt.best(entry)
                if best is not None and peer in self._wanted_at(best):
                    wanted.add(entry)
            if wanted != set(reader.wishes.ids()):
                raise InvariantViolation(
                    f"{self._me} wishes {reader.wishes.ids()} of {peer}, not {wanted}"
                )
            for entry in wanted:
                if reader.wishes.is_told(entry) != (
                    Key(SUBSCRIPTION, entry) in reader.ledger.lines
                ):
                    raise InvariantViolation(f"{self._me} did not tell {peer} {entry}")

    def _audit_grafts(self, peer: NodeId, reader: Reader) -> None:
        told = {key.id for key in reader.ledger.lines if key.graft}
        for one in self.srt if self.is_broker else ():
            line = self.grafts.line(peer, one, covers=bool(self._covers.covered_by(one.id)))
            there = reader.ledger.lines.get(Key(ADVERTISEMENT, one.id, graft=True))
            if line != (None if there is None else there.line):
                raise InvariantViolation(f"{self._me} tells {peer} {there}, not {line}")
            told.discard(one.id)
        if told:
            raise InvariantViolation(f"{self._me} tells {peer} of sources of {told}")


def _says_the_same(one: Advertised, other: Advertised) -> bool:
    """Whether only the way to it differs."""
    return (one.epoch, one.model, one.constraint, one.whole) == (
        other.epoch,
        other.model,
        other.constraint,
        other.whole,
    )
