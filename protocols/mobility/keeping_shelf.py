"""What a broker keeps on disk of its boxes, in the order of writing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from overlay.protocol import Effects
from protocols.mobility.box import Box, Line
from protocols.mobility.keeping_messages import Kept, Place, Want

BOX = b"b"  # + id
FLOOR = b"n"  # + id: how far it was taken
LINE = b"i"  # + id + number
HELD = b"h"  # + id + number


class KeptBox(msgspec.Struct, frozen=True, array_like=True):
    """A box on disk, without its lines."""

    client: str
    visit: int
    revision: int
    wants: tuple[Want, ...]
    keep_for: float
    since: tuple[Place, ...]
    outlet: str
    by: int


class KeptLine(msgspec.Struct, frozen=True, array_like=True):
    """A line on disk."""

    entry: Kept
    at: float


class Found(msgspec.Struct):
    """One box of an earlier life."""

    box: KeptBox | None = None
    floor: int = 1
    taken: int = 1
    lines: list[tuple[int, KeptLine]] = msgspec.field(default_factory=list)
    held: list[tuple[int, KeptLine]] = msgspec.field(default_factory=list)


class Shelf:
    """In memory (not `durable`) it keeps nothing, and nothing waits for it."""

    def __init__(self, effects: Effects, *, durable: bool) -> None:
        self._effects = effects
        self.durable = durable
        self._written = self._kept = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._encode = msgspec.msgpack.Encoder().encode

    def after(self, callback: Callable[[], None]) -> None:
        """Call as soon as everything written until now is on disk: perhaps at once."""
        if self._kept >= self._written:
            callback()
        else:
            self._waiting.append((self._written, callback))

    def on_stored(self, token: Any) -> None:
        """That write is on disk, and so are all before it."""
        self._kept = max(self._kept, token)
        while self._waiting and self._waiting[0][0] <= self._kept:
            self._waiting.popleft()[1]()

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._written += 1
        self._effects.store(key, value, self._written)

    def put_box(self, box: Box) -> None:
        """What it is, whose, and where it goes."""
        if self.durable:
            wants = tuple(
                Want(name, want.constraint.wire(), want.model) for name, want in box.wants.items()
            )
            since = () if box.source is None else box.source.left()
            kept = KeptBox(
                box.client, box.visit, box.revision, wants, box.keep_for, since, box.outlet, box.by
            )
            self._put(BOX + _id(box), self._encode(kept))

    def put_line(self, box: Box, number: int, line: Line) -> None:
        """An entry of the log."""
        if self.durable:
            self._put(LINE + _id(box) + _number(number), self._encode(KeptLine(*line[::2])))

    def put_held(self, box: Box, line: Line) -> None:
        """An entry that waits."""
        if self.durable:
            number = _number(len(box.held) + box.held_lost)
            self._put(HELD + _id(box) + number, self._encode(KeptLine(*line[::2])))

    def drop_held(self, box: Box) -> None:
        """None waits any more."""
        if self.durable:
            for number in range(len(box.held) + box.held_lost + 1):
                self._put(HELD + _id(box) + _number(number), None)

    def drop_lines(self, box: Box, numbers: Iterable[int]) -> None:
        """They were taken, or put out."""
        if self.durable:
            for number in numbers:
                self._put(LINE + _id(box) + _number(number), None)
            self._put(FLOOR + _id(box), _number(box.oldest) + _number(box.taken))

    def drop_box(self, box: Box) -> None:
        """All of it."""
        if self.durable:
            self.drop_held(box)
            self.drop_lines(box, range(box.oldest, box.next))
            self._put(FLOOR + _id(box), None)
            self._put(BOX + _id(box), None)


def _id(box: Box) -> bytes:
    return box.id.to_bytes(8, "big")


def _number(number: int) -> bytes:
    return number.to_bytes(8, "big")


def read_kept(kept: Mapping[bytes, bytes]) -> dict[int, Found]:
    """The boxes of an earlier life, by their id; what cannot be read raises."""
    found: dict[int, Found] = {}
    for key, value in sorted(kept.items()):
        kind, one = key[:1], found.setdefault(int.from_bytes(key[1:9], "big"), Found())
        if kind == BOX:
            one.box = msgspec.msgpack.decode(value, type=KeptBox)
        elif kind == FLOOR:
            one.floor = int.from_bytes(value[:8], "big")
            one.taken = int.from_bytes(value[8:], "big")
        elif kind in (LINE, HELD):
            line = msgspec.msgpack.decode(value, type=KeptLine)
            lines = one.lines if kind == LINE else one.held
            lines.append((int.from_bytes(key[9:], "big"), line))
    return {number: one for number, one in found.items() if one.box is not None}
