"""Who a node is and where it sits: names, 128-bit virtual ids, cyclic key space, rings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import LocalProtocolError

NodeId: TypeAlias = str
"""A node's name: unique in its overlay, chosen by people, bound to its keys by a certificate."""

Vid: TypeAlias = int
"""A virtual id: the point of the key space where a name or a key hashes to."""

VID_BITS = 128
VID_BYTES = VID_BITS // 8
NAME_BYTES = 64  # a name travels in most frames and becomes a file name: it stays short
REMEMBERED_VIDS = 16_384  # names whose hash is kept: covers a simulation of 10,000 nodes

WireName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_BYTES)]
"""A node's name as a field of a message."""

WireVid: TypeAlias = Annotated[bytes, msgspec.Meta(min_length=VID_BYTES, max_length=VID_BYTES)]
"""A virtual id as a field of a message: big-endian, since MessagePack's integers end at 64 bits."""


def check_name(name: str) -> NodeId:
    """Return the name if a node may carry it; otherwise LocalProtocolError says why not."""
    if not name:
        raise LocalProtocolError("a node's name is empty: give it at least one character")
    for at, character in enumerate(name):
        # str.isprintable is false for control characters, surrogates and every space but " "
        if character.isspace() or not character.isprintable():
            kind = "whitespace" if character.isspace() else "an unprintable character"
            raise LocalProtocolError(
                f"node name {_shown(name)} has {kind} ({character!a}) at position {at}: remove it"
            )
    if "/" in name:
        raise LocalProtocolError(f"node name {_shown(name)} has a '/': use '-' or '.' instead")
    if name in (".", ".."):  # names become file names of keys and sockets
        raise LocalProtocolError(f"node name {name!r} means a folder: use letters or digits")
    size = len(name.encode())
    if size > NAME_BYTES:
        raise LocalProtocolError(
            f"node name {_shown(name)} has {size} bytes of UTF-8: at most {NAME_BYTES} are allowed"
        )
    return name


def _shown(name: str) -> str:
    """Quote a name for an error line, escaped and never longer than the line can bear."""
    return ascii(name if len(name) <= NAME_BYTES else name[:24] + "...")


def key_of(data: bytes | str) -> Vid:
    """Where data (a key of the DHT, a topic) falls: the first 16 bytes of its SHA-256."""
    try:
        raw = data.encode() if isinstance(data, str) else data
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"{data[:24]!a} is not valid Unicode: {error}") from None
    return int.from_bytes(sha256(raw).digest()[:VID_BYTES], "big")


@lru_cache(maxsize=REMEMBERED_VIDS)
def vid_of(name: NodeId) -> Vid:
    """Where a node sits: its name's hash, so every peer computes the same place unasked."""
    return key_of(name)


def vid_to_wire(vid: Vid) -> bytes:
    """Pack a virtual id for a `WireVid` field."""
    return vid.to_bytes(VID_BYTES, "big")


def vid_from_wire(packed: bytes) -> Vid:
    """Unpack a `WireVid` field."""
    return int.from_bytes(packed, "big")


@dataclass(frozen=True, slots=True)
class KeySpace:
    """Arithmetic on the cyclic space of `bits`-bit keys; clockwise is ascending."""

    bits: int = VID_BITS

    def __post_init__(self) -> None:
        if self.bits < 1:
            raise LocalProtocolError(
                f"a key space of {self.bits} bits holds nothing: use 1 or more"
            )

    def __contains__(self, key: Vid) -> bool:
        return 0 <= key < 1 << self.bits

    def add(self, key: Vid, offset: int) -> Vid:
        """The key `offset` steps clockwise (counter-clockwise when negative)."""
        return (key + offset) & ((1 << self.bits) - 1)

    def distance(self, a: Vid, b: Vid) -> int:
        """Steps clockwise from a to b: 0 only when they are equal."""
        return (b - a) & ((1 << self.bits) - 1)

    def between(self, key: Vid, after: Vid, upto: Vid) -> bool:
        """Whether key lies in (after, upto]; with after == upto that is the whole space.

        So a node alone in its ring, its own predecessor, is responsible for every key.
        """
        first = after + 1
        return self.distance(first, key) <= self.distance(first, upto)


FULL_SPACE = KeySpace()


class Ring:
    """Names sorted by their place in a key space; each holds the keys up to its own place.

    `place` maps a name to its point. Two parallel lists keep it small: a simulation holds
    thousands of rings, whose names and ids are shared objects.
    """

    __slots__ = ("_names", "_place", "_vids", "space")

    def __init__(
        self,
        names: Iterable[NodeId] = (),
        *,
        space: KeySpace = FULL_SPACE,
        place: Callable[[NodeId], Vid] = vid_of,
    ) -> None:
        self.space = space
        self._place = place
        ordered = sorted((place(name), name) for name in dict.fromkeys(names))
        self._vids = [vid for vid, _ in ordered]
        self._names = [name for _, name in ordered]
        if ordered and not (self._vids[0] in space and self._vids[-1] in space):
            raise LocalProtocolError(f"a name's place lies outside of {space.bits} bits")
        for at in range(1, len(ordered)):
            if self._vids[at] == self._vids[at - 1]:
                raise _shared_place(self._names[at - 1], self._names[at])

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[NodeId]:
        """The names clockwise from 0."""
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        at = bisect_left(self._vids, self._place(name))
        return at < len(self._names) and self._names[at] == name

    def add(self, name: NodeId) -> bool:
        """Insert a name; false when it was there already."""
        vid = self._place(name)
        if vid not in self.space:
            raise LocalProtocolError(
                f"the place of {name!r} lies outside of {self.space.bits} bits"
            )
        at = bisect_left(self._vids, vid)
        if at < len(self._vids) and self._vids[at] == vid:
            if self._names[at] != name:
                raise _shared_place(self._names[at], name)
            return False
        self._vids.insert(at, vid)
        self._names.insert(at, name)
        return True

    def remove(self, name: NodeId) -> bool:
        """Take a name out; false when it was not there."""
        if name not in self:
            return False
        at = bisect_left(self._vids, self._place(name))
        del self._vids[at], self._names[at]
        return True

    def vid(self, name: NodeId) -> Vid:
        """Where this ring places that name, member or not."""
        return self._place(name)

    def responsible_for(self, key: Vid) -> NodeId:
        """The first node at or clockwise after key."""
        if not self._names:
            raise LocalProtocolError("an empty ring has nobody responsible: join a node first")
        return self._names[self._at_or_after(key)]

    def successors(self, of: NodeId, k: int) -> list[NodeId]:
        """Up to k other names, nearest first, clockwise from the place of `of`, member or not."""
        start, others = self._from(of)
        size = len(self._names)
        first = start + 1 if others < size else start
        return [self._names[(first + step) % size] for step in range(min(k, others))]

    def predecessors(self, of: NodeId, k: int) -> list[NodeId]:
        """Up to k other names, nearest first, counter-clockwise from the place of `of`."""
        start, others = self._from(of)
        return [self._names[start - 1 - step] for step in range(min(k, others))]

    def fingers(self, of: NodeId) -> list[NodeId]:
        """The distinct nodes responsible for place + 2^i, nearest first: O(log n) of them.

        Each halves the distance that remains to some key, so greedy routing takes O(log n) hops.
        """
        origin = self._place(of)
        found: list[NodeId] = []
        exponent = 0
        while self._names and exponent < self.space.bits:
            at = self._at_or_after(self.space.add(origin, 1 << exponent))
            reached = self.space.distance(origin, self._vids[at])
            if reached < 1 << exponent:  # went once around: nobody is farther than the last one
                break
            found.append(self._names[at])
            exponent = reached.bit_length()  # every power of two up to there has the same finger
        return found

    def _at_or_after(self, key: Vid) -> int:
        at = bisect_left(self._vids, key)
        return at if at < len(self._vids) else 0

    def _from(self, of: NodeId) -> tuple[int, int]:
        """Index where `of` is or would be, and how many others there are."""
        return bisect_left(self._vids, self._place(of)), len(self._names) - (of in self)


def _shared_place(one: NodeId, other: NodeId) -> LocalProtocolError:
    return LocalProtocolError(f"{one!r} and {other!r} have the same place: rename one of them")
