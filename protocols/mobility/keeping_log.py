"""Keeping within bounds: what enters a box, in which order, and what is put out of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.errors import InvariantViolation
from overlay.predicates import item_from_wire
from protocols.mobility.box import AGE, BYTES, COUNT, Box, Line
from protocols.mobility.keeping_config import KeepingSettings
from protocols.mobility.keeping_counts import KeepingCounts
from protocols.mobility.keeping_messages import Kept
from protocols.mobility.keeping_shelf import Found, Shelf

_encode = msgspec.msgpack.Encoder().encode


class Log:
    """The lines of all boxes of a broker."""

    def __init__(self, config: KeepingSettings, counts: KeepingCounts, shelf: Shelf) -> None:
        self._config = config
        self._counts = counts
        self._shelf = shelf
        self._total = 0  # bytes

    def keep(self, box: Box, entry: Kept, now: float) -> None:
        """What this broker got itself: it waits while older ones are being fetched."""
        line = Line(entry, len(_encode(entry)), now)
        if box.source is None:
            self._append(box, line)
            return
        self._shelf.put_held(box, line)
        box.held.append(line)
        self._total += line.size
        box.bytes += line.size
        self._bound(box)

    def keep_older(self, box: Box, entry: Kept, now: float) -> None:
        """What another broker kept: it comes before all that waits here."""
        if entry.advertisement:
            entry = msgspec.structs.replace(entry, item=item_from_wire(entry.item))
        self._append(box, Line(entry, len(_encode(entry)), now))

    def _append(self, box: Box, line: Line) -> None:
        if line.entry.advertisement and not self._passes(box, line.entry):
            return
        self._shelf.put_line(box, box.append(line), line)
        self._total += line.size
        self._counts.kept += 1
        self._bound(box)

    def _passes(self, box: Box, entry: Kept) -> bool:
        forgotten = box.marks.forgotten
        passes = box.marks.passes(entry)
        self._counts.repeats += not passes
        self._counts.marks_forgotten += box.marks.forgotten - forgotten
        return passes

    def _bound(self, box: Box) -> None:
        """Put out the oldest until all bounds hold."""
        config = self._config
        while True:
            if len(box.lines) + len(box.held) > config.max_kept:
                self._counts.over_count += 1
                self._put_out(box, COUNT)
            elif box.bytes > config.max_bytes or self._total > config.max_total:
                if not box.lines and not box.held:
                    return
                self._counts.over_bytes += 1
                self._put_out(box, BYTES)
            else:
                return

    def _put_out(self, box: Box, reason: str) -> None:
        if box.lines:
            self._total -= box.lines[0].size
            self._shelf.drop_lines(box, (box.put_out(reason),))
        else:
            line = box.held.popleft()
            self._total -= line.size
            box.bytes -= line.size
            box.held_lost += 1
            box.reason = reason

    def expire(self, box: Box, now: float) -> None:
        """Put out what is too old."""
        since = now - self._config.max_age
        while box.lines and box.lines[0].at < since:
            self._counts.over_age += 1
            self._put_out(box, AGE)

    def drop_taken(self, box: Box, upto: int) -> None:
        """All before that number are with who takes them."""
        before = box.bytes
        dropped = box.take(upto)
        self._total -= before - box.bytes
        self._shelf.drop_lines(box, dropped)

    def release(self, box: Box, now: float) -> None:
        """What waited follows what was fetched."""
        self._shelf.drop_held(box)
        held, box.held = box.held, type(box.held)()
        size = sum(line.size for line in held)
        self._total -= size
        box.bytes -= size
        if box.held_lost:
            gap = Kept("", lost=box.held_lost, reason=box.reason)
            box.held_lost = 0
            self._append(box, Line(gap, len(_encode(gap)), now))
        for line in held:
            self._append(box, line)

    def adopt(self, box: Box, old: Box) -> None:
        """Let an older box's marks and what waits in it go on in another."""
        for stand in reversed(old.marks.stands()):
            box.marks.passes(stand)
        self._shelf.drop_held(box)
        own, box.held = box.held, type(box.held)()
        box.held_lost += old.held_lost
        for line in (*old.held, *own):
            self._shelf.put_held(box, line)
            box.held.append(line)
        size = sum(line.size for line in old.held)
        box.bytes += size
        self._total += size
        self._bound(box)

    def forget(self, box: Box) -> None:
        """All of a box goes."""
        self._total -= box.bytes

    def restore(self, box: Box, found: Found) -> None:
        """Put the lines of an earlier life back."""
        box.oldest = box.next = box.sent = found.floor
        box.taken = min(found.taken, found.floor)
        for number, kept in found.lines:
            if number < found.floor:
                continue
            if not box.lines:
                box.oldest = box.next = number
            if number == box.next:
                line = Line(kept.entry, len(_encode(kept.entry)), kept.at)
                box.append(line)
                self._total += line.size
                if kept.entry.advertisement:
                    box.marks.passes(kept.entry)
        box.sent = box.taken
        box.lost = box.oldest - box.taken
        for _, kept in found.held:
            line = Line(kept.entry, len(_encode(kept.entry)), kept.at)
            box.held.append(line)
            box.bytes += line.size
            self._total += line.size

    def check(self, boxes: Iterable[Box]) -> None:
        """Bounds hold, and the sums are right."""
        total = 0
        for box in boxes:
            size = sum(line.size for line in box.lines) + sum(line.size for line in box.held)
            if size != box.bytes or box.next - box.oldest != len(box.lines):
                raise InvariantViolation(f"{box.client}'s box has {size} bytes, not {box.bytes}")
            if len(box.lines) + len(box.held) > self._config.max_kept:
                raise InvariantViolation(f"{len(box.lines)} lines are kept for {box.client}")
            total += size
        if total != self._total or total > self._config.max_total:
            raise InvariantViolation(f"{total} bytes are kept, not {self._total}")
