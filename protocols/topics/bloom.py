"""Bloom filters over topics: a summary of bounded size that may say yes wrongly, never no.

A filter is cut into slices, each a filter of its own under a key of its own: a slice holds the
topics whose hash begins with its number. So a filter may be larger than one attribute, and a new
subscription changes only one slice of it. A slice as text: its number, how many there are, and
its bits in base64: `2/4:AAgC…`.
"""

from __future__ import annotations

import re
from array import array
from base64 import b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import NamedTuple

from protocols.topics.names import HASH_BITS

PROBES = 3  # 8 bits for each topic give 3 % of wrong yes; 2.4 bits 35 %, where more probes lose
BITS_PER_TOPIC = 8  # what a filter aims at; with less room it says yes more often
SMALLEST = 6  # bytes of a slice; others are this doubled, up to what fits into an attribute
MAX_SLICES = 16
_SLICE_BITS = MAX_SLICES.bit_length() - 1
_COUNTS = (1, 2, 4, 8, 16)  # of slices: powers of two, so that a hash begins with its slice
_HALF = (1 << HASH_BITS // 2) - 1
_TEXT = re.compile(r"([0-9]{1,2})/([0-9]{1,2}):([A-Za-z0-9_-]+)")
REMEMBERED_SLICES = 4096  # nodes of one simulation share what they read


class Shape(NamedTuple):
    """How large a filter is: so many slices of so many bytes."""

    slices: int
    size: int

    @property
    def bytes(self) -> int:
        """All slices together."""
        return self.slices * self.size


def shape_for(topics: int, value_bytes: int, max_slices: int) -> Shape:
    """The smallest shape with room for that many topics, or the largest that is allowed.

    `value_bytes` bounds the text of one slice and is at least 16.
    """
    header = len(f"{max_slices - 1}/{max_slices}:")
    largest = (value_bytes - header) // 4 * 3  # a multiple of 3 needs no padding in base64
    wanted = topics * BITS_PER_TOPIC // 8
    size = SMALLEST
    while size < largest and size < wanted:
        size = min(2 * size, largest)
    slices = 1
    while 2 * slices <= max_slices and slices * size < wanted:
        slices *= 2
    return Shape(slices, size)


def slice_of(hashed: int, slices: int) -> int:
    """The slice that holds a hash: its first bits, which the places inside hardly depend on."""
    return (hashed >> (HASH_BITS - _SLICE_BITS)) * slices >> _SLICE_BITS


def _places(hashed: int, bits: int) -> list[int]:
    """Double hashing: two halves of the hash make up any number of independent places."""
    first, step = hashed & _HALF, hashed >> HASH_BITS // 2 | 1
    return [(first + probe * step) % bits for probe in range(PROBES)]


class CountingFilter:
    """The filter of this node, which also forgets: it counts how many topics set each bit."""

    __slots__ = ("_bits", "_counts", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._counts = array("I", [0]) * (8 * shape.bytes)
        self._bits = bytearray(shape.bytes)

    def add(self, hashed: int) -> None:
        """Put a topic in; a second time counts, too."""
        for place in self._all_places(hashed):
            self._counts[place] += 1
            self._bits[place >> 3] |= 1 << (place & 7)

    def remove(self, hashed: int) -> None:
        """Take out a topic that was put in."""
        for place in self._all_places(hashed):
            self._counts[place] -= 1
            if not self._counts[place]:
                self._bits[place >> 3] &= ~(1 << (place & 7))

    def texts(self) -> list[str]:
        """Each slice as the value of an attribute."""
        slices, size = self.shape
        return [
            f"{at}/{slices}:{urlsafe_b64encode(self._bits[at * size : (at + 1) * size]).decode()}"
            for at in range(slices)
        ]

    def _all_places(self, hashed: int) -> list[int]:
        bits = 8 * self.shape.size
        offset = slice_of(hashed, self.shape.slices) * bits
        return [offset + place for place in _places(hashed, bits)]


class FilterSlice(NamedTuple):
    """One slice of the filter of some member, as read from its attribute."""

    at: int
    slices: int
    bits: bytes

    def covers(self, hashed: int) -> bool:
        """Whether that topic would be in this slice."""
        return slice_of(hashed, self.slices) == self.at

    def holds(self, hashed: int) -> bool:
        """Whether a topic that this slice covers may have been put in; no is certain."""
        bits = self.bits
        size = 8 * len(bits)
        # The places of `_places`, one by one: most topics are not in it, and the first place tells.
        place, step = hashed & _HALF, hashed >> HASH_BITS // 2 | 1
        for _ in range(PROBES):
            at = place % size
            if not bits[at >> 3] >> (at & 7) & 1:
                return False
            place += step
        return True


@lru_cache(maxsize=REMEMBERED_SLICES)
def read_slice(text: str) -> FilterSlice | None:
    """The slice in an attribute's value; None when it is not one."""
    parts = _TEXT.fullmatch(text)
    if parts is None:
        return None
    at, slices = int(parts[1]), int(parts[2])
    if slices not in _COUNTS or at >= slices:
        return None
    try:
        bits = b64decode(parts[3], altchars=b"-_", validate=True)
    except ValueError:
        return None
    return FilterSlice(at, slices, bits) if bits else None
