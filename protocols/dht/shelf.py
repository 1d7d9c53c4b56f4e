"""The records of one shard, and a tree of digests by which two copies find where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from zlib import crc32

import msgspec

from protocols.dht.messages import LEAVES, Row

MASK = (1 << 63) - 1
OVERHEAD = 200  # bytes that a record takes besides its key and value


class Record(msgspec.Struct, frozen=True, gc=False):
    """One version of a key's value; None: it was removed, and others must not bring it back."""

    value: bytes | None
    ballot: int
    sequence: int
    expires: float = 0.0  # on this node's clock; 0: never
    mark: int = 0  # of key and version, for the digests

    @property
    def stamp(self) -> tuple[int, int]:
        """Orders the versions of a key."""
        return (self.ballot, self.sequence)


def leaf_of(key: bytes) -> int:
    """The leaf of the digest tree that a key belongs to."""
    return crc32(key) % LEAVES


def mark_of(key: bytes, ballot: int, sequence: int) -> int:
    """63 bits that every process computes alike."""
    packed = ballot.to_bytes(8, "big") + sequence.to_bytes(8, "big") + key
    return int.from_bytes(blake2b(packed, digest_size=8).digest(), "big") & MASK


class Shelf:
    """Keys and their records. The digest of a leaf is the XOR of its marks; so is the whole's."""

    __slots__ = ("bytes", "digest", "expiring", "leaves", "records", "removed")

    def __init__(self) -> None:
        self.records: dict[bytes, Record] = {}
        self.leaves: dict[int, int] = {}
        self.expiring: dict[bytes, float] = {}  # keys whose value ends, and when
        self.removed: dict[bytes, None] = {}  # keys without a value
        self.digest = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.records)

    def put(
        self, key: bytes, value: bytes | None, ballot: int, sequence: int, expires: float
    ) -> Record:
        """Take a version, whatever was there."""
        mark = mark_of(key, ballot, sequence)
        record = Record(value, ballot, sequence, expires, mark)
        old = self.records.get(key)
        if old is not None:
            self._turn(key, old.mark)
            self.bytes -= _size(key, old.value)
        self._turn(key, mark)
        self.bytes += _size(key, value)
        self.records[key] = record
        if expires:
            self.expiring[key] = expires
        else:
            self.expiring.pop(key, None)
        if value is None:
            self.removed[key] = None
        else:
            self.removed.pop(key, None)
        return record

    def drop(self, key: bytes) -> None:
        """Forget a key, if it is there."""
        old = self.records.pop(key, None)
        if old is not None:
            self._turn(key, old.mark)
            self.bytes -= _size(key, old.value)
            self.expiring.pop(key, None)
            self.removed.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self.records.clear()
        self.leaves.clear()
        self.expiring.clear()
        self.removed.clear()
        self.digest = self.bytes = 0

    def _turn(self, key: bytes, mark: int) -> None:
        leaf = leaf_of(key)
        self.digest ^= mark
        left = self.leaves.get(leaf, 0) ^ mark
        if left:
            self.leaves[leaf] = left
        else:
            self.leaves.pop(leaf, None)

    def tree(self) -> tuple[tuple[int, int], ...]:
        """The leaves that are not empty."""
        return tuple(sorted(self.leaves.items()))

    def differing(self, theirs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
        """The leaves in which this shelf and another one differ."""
        other = dict(theirs)
        both = sorted({*self.leaves, *other})
        return tuple(leaf for leaf in both if self.leaves.get(leaf, 0) != other.get(leaf, 0))

    def keys_in(self, leaves: Iterable[int]) -> list[bytes]:
        """All keys of some leaves."""
        wanted = frozenset(leaves)
        return [key for key in self.records if leaf_of(key) in wanted]

    def row(self, key: bytes, now: float) -> Row:
        """A record as it travels: with the time that is left to it, not with a time of day."""
        record = self.records[key]
        return Row(key, record.ballot, record.sequence, record.value, ttl_left(record.expires, now))


def millis(seconds: float) -> int:
    """A time to live as it travels: at least one millisecond; 0: for ever."""
    return max(1, int(seconds * 1000.0)) if seconds else 0


def ttl_left(expires: float, now: float) -> int:
    """Milliseconds until then, at least one; 0: it never expires."""
    return max(1, int((expires - now) * 1000.0)) if expires else 0


def expiry(ttl: int, now: float) -> float:
    """When a time that is left ends, on this node's clock; 0: never."""
    return now + ttl / 1000.0 if ttl else 0.0


def _size(key: bytes, value: bytes | None) -> int:
    return OVERHEAD + len(key) + (0 if value is None else len(value))


def parts_of(rows: list[Row], most_bytes: int, most_rows: int) -> list[tuple[Row, ...]]:
    """Rows in portions that each fit into a message; at least one portion."""
    portions: list[tuple[Row, ...]] = []
    portion: list[Row] = []
    size = 0
    for row in rows:
        more = 32 + len(row.key) + len(row.value or b"")
        if portion and (size + more > most_bytes or len(portion) >= most_rows):
            portions.append(tuple(portion))
            portion, size = [], 0
        portion.append(row)
        size += more
    portions.append(tuple(portion))
    return portions
