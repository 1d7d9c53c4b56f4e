"""Ledgers: what one node tells another, line by line, and how the copy is kept equal.

The teller counts its changes; the reader knows from the count that it missed one, and from the
digest in a greeting (the exclusive or of all lines' hashes) that the two differ for any other
reason. In both cases it asks, and is told the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import msgspec

from protocols.content.interface import EntryId
from protocols.content.messages import (
    DIGEST_BYTES,
    MAX_LINES,
    AdvertisementLine,
    Change,
    GraftLine,
    Page,
    SubscriptionLine,
)

Line: TypeAlias = AdvertisementLine | SubscriptionLine | GraftLine

ADVERTISEMENT = True
SUBSCRIPTION = False

_encoded = msgspec.msgpack.Encoder().encode
_KINDS: dict[type[Line], bytes] = {AdvertisementLine: b"a", SubscriptionLine: b"s", GraftLine: b"g"}


class Key(NamedTuple):
    """What a line is about."""

    advertisement: bool
    id: EntryId
    graft: bool = False  # where publications of that advertisement come from, besides


def key_of(line: Line) -> Key:
    """The key of a line."""
    kind = type(line)
    return Key(kind is not SubscriptionLine, line.id, kind is GraftLine)


def line_hash(line: Line) -> tuple[int, int]:
    """A hash that is the same in every process, and how long the line is."""
    data = _encoded(line)
    found = blake2b(data, digest_size=DIGEST_BYTES, key=_KINDS[type(line)]).digest()
    return int.from_bytes(found, "big"), len(data)


def packed(digest: int) -> bytes:
    """A digest as it travels."""
    return digest.to_bytes(DIGEST_BYTES, "big")


class Written(NamedTuple):
    """A line as the teller keeps it; the same for all its readers."""

    line: Line
    hash: int
    size: int


def written(line: Line) -> Written:
    """Hash a line, once for all readers."""
    return Written(line, *line_hash(line))


class Sheet:
    """The lines of one message, as they are put together."""

    def __init__(self) -> None:
        self.advertisements: list[AdvertisementLine] = []
        self.subscriptions: list[SubscriptionLine] = []
        self.grafts: list[GraftLine] = []
        self.ungrafted: list[EntryId] = []
        self.unadvertised: list[EntryId] = []
        self.unsubscribed: list[EntryId] = []
        self.size = 0
        self.count = 0

    def put(self, key: Key, written: Written | None) -> None:
        """Add a line, or that it is gone."""
        self.count += 1
        self.size += len(key.id) + 3 if written is None else written.size
        if written is None:
            gone = self.unadvertised if key.advertisement else self.unsubscribed
            (self.ungrafted if key.graft else gone).append(key.id)
        elif isinstance(written.line, AdvertisementLine):
            self.advertisements.append(written.line)
        elif isinstance(written.line, GraftLine):
            self.grafts.append(written.line)
        else:
            self.subscriptions.append(written.line)


def sheets(lines: Iterable[tuple[Key, Written | None]], most_bytes: int) -> Iterator[Sheet]:
    """Cut lines into sheets of bounded size, but of at least one line each."""
    sheet = Sheet()
    for key, written in lines:
        size = 0 if written is None else written.size
        if sheet.count and (sheet.count >= MAX_LINES or sheet.size + size > most_bytes):
            yield sheet
            sheet = Sheet()
        sheet.put(key, written)
    if sheet.count:
        yield sheet


def _hash(line: Written | None) -> int | None:
    return None if line is None else line.hash


class Outgoing:
    """The ledger that this node keeps for one reader."""

    __slots__ = ("digest", "is_read", "lines", "pending", "series", "stamp", "told_whole_at")

    def __init__(self, series: int) -> None:
        self.series = series
        self.stamp = 0
        self.digest = 0
        self.lines: dict[Key, Written] = {}
        self.pending: dict[Key, Written | None] = {}  # changed in this tick, and what was told
        self.is_read = False  # the reader asked once: from now on changes reach it
        self.told_whole_at = float("-inf")

    def put(self, new: Written) -> bool:
        """Write a line; false when it is there already."""
        key = key_of(new.line)
        before = self.lines.get(key)
        if before is not None:
            if before.hash == new.hash:
                return False
            self.digest ^= before.hash
        self.lines[key] = new
        self.digest ^= new.hash
        self.pending.setdefault(key, before)
        return True

    def strike(self, key: Key) -> bool:
        """Take a line out; false when it is not there."""
        before = self.lines.pop(key, None)
        if before is None:
            return False
        self.digest ^= before.hash
        self.pending.setdefault(key, before)
        return True

    def changes(self, most_bytes: int) -> Iterator[Change]:
        """What was changed since the last call; nothing while nobody reads it."""
        pending, self.pending = self.pending, {}
        if not self.is_read:
            return
        changed = [
            (key, self.lines.get(key))
            for key, told in pending.items()
            if _hash(self.lines.get(key))
            != _hash(told)  # what came and went in one tick is no change
        ]
        for sheet in sheets(changed, most_bytes):
            self.stamp += 1
            yield Change(
                self.series,
                self.stamp,
                tuple(sheet.advertisements),
                tuple(sheet.unadvertised),
                tuple(sheet.subscriptions),
                tuple(sheet.unsubscribed),
                tuple(sheet.grafts),
                tuple(sheet.ungrafted),
            )

    def whole(self, most_bytes: int) -> Iterator[Page]:
        """Everything, as of now."""
        self.is_read = True
        self.pending.clear()
        self.stamp += 1  # whatever was under way before is older than these pages
        parts = list(sheets(self.lines.items(), most_bytes)) or [Sheet()]
        for number, sheet in enumerate(parts):
            yield Page(
                self.series,
                self.stamp,
                number,
                number == len(parts) - 1,
                tuple(sheet.advertisements),
                tuple(sheet.subscriptions),
                tuple(sheet.grafts),
            )


class Copy:
    """What this node has of another's ledger: hashes alone, the rows are in the tables."""

    __slots__ = ("_pages", "_whole", "asked_at", "digest", "hashes", "refused", "series", "stamp")

    def __init__(self) -> None:
        self.series = 0  # of no ledger
        self.stamp = 0
        self.digest = 0
        self.hashes: dict[Key, int] = {}
        self.refused = 0  # lines that a bound left out: then digests differ, and nobody asks
        self.asked_at = float("-inf")
        self._pages: list[Line] = []
        self._whole: tuple[int, int, int] | None = None  # series, stamp and page that comes next

    def agrees(self, series: int, stamp: int, digest: bytes) -> bool:
        """Whether this is what the teller holds."""
        if (series, stamp) != (self.series, self.stamp):
            return False
        return self.refused > 0 or packed(self.digest) == digest

    def follows(self, change: Change) -> bool | None:
        """Whether it is the next change; None: it is an old one."""
        if change.series != self.series:
            return False
        if change.stamp <= self.stamp:
            return None
        return change.stamp == self.stamp + 1

    def differs(self, line: Line) -> bool:
        """Whether the line says something else than the one that is there."""
        return self.hashes.get(key_of(line)) != line_hash(line)[0]

    def take(self, line: Line) -> None:
        """Remember that a line is there."""
        key = key_of(line)
        hashed, _ = line_hash(line)
        self.digest ^= self.hashes.get(key, 0) ^ hashed
        self.hashes[key] = hashed

    def drop(self, key: Key) -> bool:
        """Forget a line; false when it is not there."""
        hashed = self.hashes.pop(key, None)
        if hashed is None:
            return False
        self.digest ^= hashed
        return True

    def page(self, page: Page) -> list[Line] | None:
        """Take a page; with the last one return all lines."""
        if page.series == self.series and page.stamp <= self.stamp:
            return None  # a late copy
        if page.page == 0:
            self._pages = []
            self._whole = (page.series, page.stamp, 0)
        if self._whole != (page.series, page.stamp, page.page):
            self._whole = None  # one was lost: the next greeting asks again
            self._pages = []
            return None
        self._pages += page.advertisements
        self._pages += page.subscriptions
        self._pages += page.grafts
        self._whole = (page.series, page.stamp, page.page + 1)
        if not page.last:
            return None
        lines, self._pages, self._whole = self._pages, [], None
        self.series, self.stamp = page.series, page.stamp
        return lines
