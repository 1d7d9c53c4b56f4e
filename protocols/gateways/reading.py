"""The ledgers that others keep for this node, and everything in them by topic."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NodeId
from protocols.gateways.checking import check_lines, is_entitled
from protocols.gateways.core import Core
from protocols.gateways.ledger import (
    PART,
    Book,
    Stake,
    key_for,
    line_hash,
    packed,
    read_lines,
    topic_of,
)
from protocols.gateways.messages import (
    LedgerAgreed,
    LedgerChange,
    LedgerDigest,
    LedgerPage,
    LedgerRequest,
)

LINGER = "linger"  # and book and owner: what was doubted long ago goes
EXPIRE = "expire"  # and book and owner: it was silent for too long
FETCH = "fetch"  # and book and owner: a page did not come
FETCH_TRIES = 5  # for one page; the next digest begins again


class Reading:
    """One pass through the pages of a ledger."""

    __slots__ = ("after", "id", "seen", "tries")

    def __init__(self, request: int) -> None:
        self.id = request
        self.after = ""
        self.tries = 0
        self.seen: dict[str, None] = {}


class Incoming:
    """One ledger of one owner."""

    __slots__ = ("digest", "doubted", "lines", "reading", "stamp")

    def __init__(self) -> None:
        self.lines: dict[str, Stake] = {}
        self.doubted: dict[str, bool] = {}  # not told any more; True: since the last sweep
        self.digest = 0  # of the lines that are not doubted
        self.stamp = 0
        self.reading: Reading | None = None


class Reader:
    """All ledgers that are kept for this node."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._ledgers: dict[tuple[Book, NodeId], Incoming] = {}
        self._topics: dict[Book, dict[str, dict[str, Stake]]] = {book: {} for book in Book}
        self._total = 0

    def __len__(self) -> int:
        return self._total

    # -- what the other parts see ---------------------------------------------------------------

    def holders(self, book: Book, topic: str) -> Mapping[str, Stake]:
        """Everything that is told of a topic, the latest last; `owner_of` a key is who tells."""
        return self._topics[book].get(topic, {})

    def topics(self, book: Book) -> Mapping[str, Mapping[str, Stake]]:
        """All topics of a book."""
        return self._topics[book]

    def is_doubted(self, book: Book, owner: NodeId, key: str) -> bool:
        """Whether the owner does not tell that line any more, and nobody withdrew it."""
        ledger = self._ledgers.get((book, owner))
        return ledger is not None and key in ledger.doubted

    # -- messages -------------------------------------------------------------------------------

    def on_change(self, src: NodeId, change: LedgerChange, now: float) -> None:
        """Take lines, unless they were overtaken."""
        core = self._core
        book = check_lines(src, change.book, change.lines, change.parties)
        if not is_entitled(core, src, book, change.parties):
            core.counts.strangers += 1
            return
        ledger = self._ledger(book, src, now)
        if change.stamp <= ledger.stamp:
            core.counts.outdated += 1
            return
        self._check_room(ledger, len(change.lines), src)
        ledger.stamp = change.stamp
        core.counts.lines_heard += len(change.lines)
        for key, stake in read_lines(change.lines, change.parties):
            if ledger.reading is not None:
                ledger.reading.seen[key] = None
            if stake.flags:
                self._put(book, src, ledger, key, stake, now)
            else:
                self._strike(book, src, ledger, key, now)

    def on_digest(self, src: NodeId, said: LedgerDigest, now: float) -> None:
        """Agree, or read the ledger again."""
        core = self._core
        book = check_lines(src, said.book, (), ())
        if not is_entitled(core, src, book, ()):
            core.counts.strangers += 1
            return
        if said.count > core.settings.max_lines:
            raise RemoteProtocolError("gateways-too-many", f"{said.count} lines of {src}")
        ledger = self._ledger(book, src, now)
        core.timers.set((EXPIRE, book, src), now + core.settings.expire)
        if said.digest == packed(ledger.digest):
            self._close(book, src, ledger)
            core.send(src, LedgerAgreed(book, said.digest), now)
        elif ledger.reading is None:
            self._read(book, src, ledger, now)

    def on_page(self, src: NodeId, page: LedgerPage, now: float) -> None:
        """Take a page, and ask for the next; what no page had is doubted from now on."""
        core = self._core
        book = check_lines(src, page.book, page.lines, page.parties)
        ledger = self._ledgers.get((book, src))
        reading = None if ledger is None else ledger.reading
        if (
            ledger is None
            or reading is None
            or (page.id, page.after) != (reading.id, reading.after)
            or not is_entitled(core, src, book, page.parties)
        ):
            core.counts.late += 1
            return
        told = list(read_lines(page.lines, page.parties))
        keys = [page.after, *(key for key, _ in told)]
        if any(one >= following for one, following in pairwise(keys)):
            raise RemoteProtocolError("gateways-page-disordered", f"from {src}")
        if page.more and not told:
            raise RemoteProtocolError("gateways-empty-page", f"from {src}")
        self._check_room(ledger, len(told), src)
        core.counts.lines_heard += len(told)
        ledger.stamp = max(ledger.stamp, page.stamp) if page.after else page.stamp
        for key, stake in told:
            if key not in reading.seen:  # a change that came meanwhile is newer
                reading.seen[key] = None
                if stake.flags:
                    self._put(book, src, ledger, key, stake, now)
        if page.more:
            reading.after, reading.tries = keys[-1], 0
            self._ask(book, src, reading, now)
            return
        self._close(book, src, ledger)
        for key in [key for key in ledger.lines if key not in reading.seen]:
            self._doubt(book, src, ledger, key, now)

    # -- reading --------------------------------------------------------------------------------

    def _read(self, book: Book, src: NodeId, ledger: Incoming, now: float) -> None:
        core = self._core
        core.counts.read_again += 1
        ledger.reading = reading = Reading(core.next_id())
        self._ask(book, src, reading, now)

    def _ask(self, book: Book, src: NodeId, reading: Reading, now: float) -> None:
        core = self._core
        core.timers.set((FETCH, book, src), now + core.settings.confirm)
        core.send(src, LedgerRequest(book, reading.id, reading.after), now)

    def _close(self, book: Book, src: NodeId, ledger: Incoming) -> None:
        ledger.reading = None
        self._core.timers.cancel((FETCH, book, src))

    def on_fetch_alarm(self, book: Book, src: NodeId, now: float) -> None:
        """A page did not come: ask again, for a while."""
        ledger = self._ledgers.get((book, src))
        if ledger is None or ledger.reading is None:
            return
        ledger.reading.tries += 1
        if ledger.reading.tries >= FETCH_TRIES:
            self._close(book, src, ledger)
        else:
            self._ask(book, src, ledger.reading, now)

    def on_expire_alarm(self, book: Book, src: NodeId, now: float) -> None:
        """Its owner was silent: a home is forgotten; who is in the view is asked."""
        ledger = self._ledgers.get((book, src))
        if ledger is None:
            return
        if book is Book.ROSTERS:
            self._core.counts.expired += 1
            self.drop(book, src, now)
            return
        self._core.timers.set((EXPIRE, book, src), now + self._core.settings.expire)
        if ledger.reading is None and ledger.lines:
            self._read(book, src, ledger, now)

    # -- lines ----------------------------------------------------------------------------------

    def _ledger(self, book: Book, owner: NodeId, now: float) -> Incoming:
        ledger = self._ledgers.get((book, owner))
        if ledger is None:
            core = self._core
            if len(self._ledgers) >= core.settings.max_ledgers:
                raise RemoteProtocolError("gateways-too-many-ledgers", f"{owner}'s would be one")
            ledger = self._ledgers[book, owner] = Incoming()
            core.timers.set((EXPIRE, book, owner), now + core.settings.expire)
        return ledger

    def _check_room(self, ledger: Incoming, more: int, src: NodeId) -> None:
        settings = self._core.settings
        held = len(ledger.lines)
        if ledger.reading is not None:  # what it withdraws meanwhile is remembered, too
            held = max(held, len(ledger.reading.seen))
        if held + more > settings.max_lines or self._total + more > settings.max_total:
            raise RemoteProtocolError("gateways-too-many", f"{len(ledger.lines)} lines of {src}")

    def _put(
        self, book: Book, owner: NodeId, ledger: Incoming, key: str, stake: Stake, now: float
    ) -> None:
        before = ledger.lines.get(key)
        doubted = ledger.doubted.pop(key, None) is not None
        if before == stake and not doubted:
            return
        if before is None:
            self._total += 1
        elif not doubted:
            ledger.digest ^= line_hash(key, before)
        ledger.lines[key] = stake
        ledger.digest ^= line_hash(key, stake)
        holders = self._topics[book].setdefault(topic_of(key), {})
        holder = holder_of(owner, key)
        holders.pop(holder, None)
        holders[holder] = stake
        self._core.touch(book, topic_of(key), now)

    def _strike(self, book: Book, owner: NodeId, ledger: Incoming, key: str, now: float) -> None:
        stake = ledger.lines.pop(key, None)
        if stake is None:
            return
        self._total -= 1
        if ledger.doubted.pop(key, None) is None:
            ledger.digest ^= line_hash(key, stake)
        topic = topic_of(key)
        holders = self._topics[book][topic]
        del holders[holder_of(owner, key)]
        if not holders:
            del self._topics[book][topic]
        self._core.touch(book, topic, now)

    def _doubt(self, book: Book, owner: NodeId, ledger: Incoming, key: str, now: float) -> None:
        if key in ledger.doubted:
            return
        ledger.doubted[key] = True
        ledger.digest ^= line_hash(key, ledger.lines[key])
        self._core.touch(book, topic_of(key), now)
        if (LINGER, book, owner) not in self._core.timers:
            self._core.timers.set((LINGER, book, owner), now + self._core.settings.linger)

    def on_linger_alarm(self, book: Book, owner: NodeId, now: float) -> None:
        """What was doubted before the last sweep goes; the rest has until the next one."""
        ledger = self._ledgers.get((book, owner))
        if ledger is None:
            return
        for key, fresh in list(ledger.doubted.items()):
            if fresh:
                ledger.doubted[key] = False
            else:
                self._strike(book, owner, ledger, key, now)
        if ledger.doubted:
            self._core.timers.set((LINGER, book, owner), now + self._core.settings.linger)

    # -- owners ---------------------------------------------------------------------------------

    def doubt_all(self, book: Book, owner: NodeId, now: float) -> None:
        """Its owner is gone, and others may tell the same soon."""
        ledger = self._ledgers.get((book, owner))
        if ledger is not None:
            ledger.stamp = 0
            self._close(book, owner, ledger)
            for key in ledger.lines:
                self._doubt(book, owner, ledger, key, now)

    def drop(self, book: Book, owner: NodeId, now: float) -> None:
        """Its owner is gone, and so is what it told."""
        ledger = self._ledgers.get((book, owner))
        if ledger is None:
            return
        self._close(book, owner, ledger)
        for key in list(ledger.lines):
            self._strike(book, owner, ledger, key, now)
        del self._ledgers[book, owner]
        self._core.timers.cancel((LINGER, book, owner))
        self._core.timers.cancel((EXPIRE, book, owner))

    def drop_book(self, book: Book, now: float) -> None:
        """This node has no use for that book any more."""
        for kind, owner in list(self._ledgers):
            if kind is book:
                self.drop(book, owner, now)

    # -- invariants -----------------------------------------------------------------------------

    def check(self) -> None:
        """Everything is bounded, and every ledger is looked at again in time."""
        core = self._core
        if self._total > core.settings.max_total:
            raise InvariantViolation(f"{core.me}: {self._total} lines")
        for place, ledger in self._ledgers.items():
            if (EXPIRE, *place) not in core.timers:
                raise InvariantViolation(f"{core.me}: {place} never expires")
            if (ledger.reading is not None) != ((FETCH, *place) in core.timers):
                raise InvariantViolation(f"{core.me}: waits for ever for a page of {place}")
            if ledger.doubted and (LINGER, *place) not in core.timers:
                raise InvariantViolation(f"{core.me}: doubts {place} for ever")

    def audit(self) -> None:
        """Digests and the index by topic are those of the lines."""
        core = self._core
        found: dict[tuple[Book, str, str], Stake] = {}
        for (book, owner), ledger in self._ledgers.items():
            digest = 0
            for key, stake in ledger.lines.items():
                found[book, topic_of(key), holder_of(owner, key)] = stake
                if key not in ledger.doubted:
                    digest ^= line_hash(key, stake)
            if digest != ledger.digest:
                raise InvariantViolation(f"{core.me}: a wrong digest of {book}, {owner}")
        indexed = {
            (book, topic, holder): stake
            for book, topics in self._topics.items()
            for topic, holders in topics.items()
            for holder, stake in holders.items()
        }
        if indexed != found or len(found) != self._total:
            raise InvariantViolation(f"{core.me}: the index by topic is wrong")


def holder_of(owner: NodeId, key: str) -> str:
    """The key in the index: who tells, and about which gateway."""
    _, _, gateway = key.partition(PART)
    return key_for(owner, gateway)


def owner_of(holder: str) -> NodeId:
    """Who tells."""
    return holder.partition(PART)[0]
