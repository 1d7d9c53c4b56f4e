"""The ledgers that this node keeps for others: changes at once, digests now and then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from protocols.gateways.checking import book_of
from protocols.gateways.core import FLUSH, Core
from protocols.gateways.ledger import Book, Stake, line_hash, packed, sheets
from protocols.gateways.messages import (
    LedgerAgreed,
    LedgerChange,
    LedgerDigest,
    LedgerPage,
    LedgerRequest,
)

COMPARE = "compare"  # and book and peer: send a digest
GIVE_UP = 4  # digests of an empty ledger without an answer; the peer asks if it still cares
IMPATIENT = 3  # digests without an answer that are repeated soon


class Outgoing:
    """One ledger for one peer."""

    __slots__ = ("_sorted", "digest", "lines", "pending", "unanswered")

    def __init__(self) -> None:
        self.lines: dict[str, Stake] = {}
        self.digest = 0
        self.pending: dict[str, Stake] = {}  # changed and not told yet
        self.unanswered = 0
        self._sorted: list[str] | None = None

    def put(self, key: str, stake: Stake) -> bool:
        """Write a line; false when it is there already."""
        before = self.lines.get(key)
        if before == stake:
            return False
        if before is None:
            self._sorted = None
        else:
            self.digest ^= line_hash(key, before)
        self.lines[key] = stake
        self.digest ^= line_hash(key, stake)
        return True

    def strike(self, key: str) -> Stake | None:
        """Take a line out."""
        stake = self.lines.pop(key, None)
        if stake is not None:
            self._sorted = None
            self.digest ^= line_hash(key, stake)
        return stake

    def after(self, cursor: str, count: int) -> Iterator[tuple[str, Stake]]:
        """Lines in the order of their keys."""
        if self._sorted is None:
            self._sorted = sorted(self.lines)
        start = bisect_right(self._sorted, cursor)
        return ((key, self.lines[key]) for key in islice(self._sorted, start, start + count))


class Writer:
    """All ledgers that this node keeps for others."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ledgers: dict[tuple[Book, NodeId], Outgoing] = {}
        self._changed: dict[tuple[Book, NodeId], None] = {}

    def __len__(self) -> int:
        return len(self._ledgers)

    def lines(self, book: Book, peer: NodeId) -> dict[str, Stake]:
        """What is written for that peer."""
        ledger = self._ledgers.get((book, peer))
        return {} if ledger is None else ledger.lines

    def peers(self, book: Book) -> list[NodeId]:
        """For whom there is a ledger."""
        return [peer for kind, peer in self._ledgers if kind is book]

    def unanswered(self, book: Book, peer: NodeId) -> int:
        """How many digests in a row that peer left unanswered."""
        ledger = self._ledgers.get((book, peer))
        return 0 if ledger is None else ledger.unanswered

    # -- writing --------------------------------------------------------------------------------

    def put(self, book: Book, peer: NodeId, key: str, stake: Stake, now: float) -> None:
        """Write a line, and tell it with the next batch."""
        ledger = self._ledgers.get((book, peer))
        if ledger is None:
            ledger = self._ledgers[book, peer] = Outgoing()
        if ledger.put(key, stake):
            ledger.pending[key] = stake
            self._soon(book, peer, now)

    def withdraw(self, book: Book, peer: NodeId, key: str, now: float) -> None:
        """Take a line out, and tell that it holds no more."""
        ledger = self._ledgers.get((book, peer))
        stake = None if ledger is None else ledger.strike(key)
        if ledger is not None and stake is not None:
            ledger.pending[key] = Stake(0, stake.party)
            self._soon(book, peer, now)

    def forget(self, book: Book, peer: NodeId, key: str, now: float) -> None:
        """Take a line out because somebody else tells it now: for the peer it holds for a while."""
        ledger = self._ledgers.get((book, peer))
        if ledger is not None and ledger.strike(key) is not None:
            ledger.pending.pop(key, None)
            self._core.timers.hasten((COMPARE, book, peer), now + self._core.settings.confirm)

    def forget_all(self, book: Book, peer: NodeId, now: float) -> None:
        """Forget each line."""
        for key in list(self.lines(book, peer)):
            self.forget(book, peer, key, now)

    def drop(self, book: Book, peer: NodeId) -> None:
        """Nobody is there to be told."""
        self._ledgers.pop((book, peer), None)
        self._changed.pop((book, peer), None)
        self._core.timers.cancel((COMPARE, book, peer))

    def drop_book(self, book: Book) -> None:
        """Keep no ledger of that book any more."""
        for peer in self.peers(book):
            self.drop(book, peer)

    def greet(self, peer: NodeId, now: float) -> None:
        """That peer begins a life and knows nothing: compare at once."""
        core = self._core
        for book in Book:
            ledger = self._ledgers.get((book, peer))
            if ledger is not None:
                ledger.unanswered = 0
                core.timers.hasten((COMPARE, book, peer), now + core.settings.batch_delay)

    def _soon(self, book: Book, peer: NodeId, now: float) -> None:
        self._changed[book, peer] = None
        self._core.flush_soon(now)

    # -- telling --------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Tell what changed; then compare, since a change may get lost."""
        core = self._core
        changed, self._changed = self._changed, {}
        for book, peer in changed:
            ledger = self._ledgers.get((book, peer))
            if ledger is None or not ledger.pending:
                continue
            pending, ledger.pending = ledger.pending, {}
            core.timers.hasten((COMPARE, book, peer), now + self._pause(core.settings.confirm))
            settings = core.settings
            for sheet in sheets(
                pending.items(), most=settings.page_lines, most_bytes=settings.page_bytes
            ):
                core.counts.lines_sent += len(sheet.lines)
                change = LedgerChange(book, core.next_stamp(), sheet.lines, sheet.parties)
                core.send(peer, change, now)

    def _pause(self, period: float) -> float:
        return period * (0.75 + self._core.rng.random() / 2)

    def on_compare_alarm(self, book: Book, peer: NodeId, now: float) -> None:
        """Send the digest."""
        core = self._core
        ledger = self._ledgers.get((book, peer))
        if ledger is None:
            return
        if not ledger.lines and not ledger.pending and ledger.unanswered >= GIVE_UP:
            self.drop(book, peer)
            return
        ledger.unanswered += 1
        soon = ledger.unanswered <= IMPATIENT
        period = core.settings.confirm if soon else core.settings.refresh
        core.timers.set((COMPARE, book, peer), now + self._pause(period))
        core.counts.digests_sent += 1
        core.send(peer, LedgerDigest(book, len(ledger.lines), packed(ledger.digest)), now)

    def on_agreed(self, src: NodeId, agreed: LedgerAgreed, now: float) -> None:
        """The peer has the same: nothing to do for a while, or for good."""
        core = self._core
        book = book_of(src, agreed.book)
        ledger = self._ledgers.get((book, src))
        if ledger is None or agreed.digest != packed(ledger.digest):
            core.counts.late += 1
            return
        core.counts.agreed += 1
        ledger.unanswered = 0
        if ledger.pending:
            return
        if not ledger.lines:
            self.drop(book, src)
        else:
            core.timers.set((COMPARE, book, src), now + self._pause(core.settings.refresh))

    def on_request(self, src: NodeId, request: LedgerRequest, now: float) -> None:
        """Tell a page; of a ledger that does not exist, an empty one."""
        core = self._core
        book = book_of(src, request.book)
        ledger = self._ledgers.get((book, src))
        most = core.settings.page_lines
        stamp = core.next_stamp()
        empty = LedgerPage(book, request.id, request.after, stamp, ())
        if ledger is None:
            core.send(src, empty, now)
            return
        ledger.unanswered = 0
        if ledger.lines:
            core.timers.hasten((COMPARE, book, src), now + core.settings.refresh)
        found = list(ledger.after(request.after, most + 1))
        cut = sheets(found[:most], most=most, most_bytes=core.settings.page_bytes)
        sheet = next(cut, None)
        if sheet is None:
            core.send(src, empty, now)
            return
        core.counts.lines_sent += len(sheet.lines)
        more = len(found) > len(sheet.lines)
        core.send(
            src,
            LedgerPage(book, request.id, request.after, stamp, sheet.lines, sheet.parties, more),
            now,
        )

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Every ledger is compared in time, and what changed is about to be told."""
        core = self._core
        for place in self._ledgers:
            if (COMPARE, *place) not in core.timers and place not in self._changed:
                raise InvariantViolation(f"{core.me}: never compares {place}")
        if self._changed and FLUSH not in core.timers:
            raise InvariantViolation(f"{core.me}: keeps changes to itself")

    def audit(self) -> None:
        """Every digest is that of its lines."""
        for place, ledger in self._ledgers.items():
            digest = 0
            for key, stake in ledger.lines.items():
                digest ^= line_hash(key, stake)
            if digest != ledger.digest:
                raise InvariantViolation(f"{self._core.me}: a wrong digest of {place}")
