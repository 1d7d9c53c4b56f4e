"""What a convergecast sums up: count, sum, least, greatest, and a sketch of distinct values."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from heapq import merge
from itertools import pairwise
from math import inf
from typing import Annotated, TypeAlias

import msgspec

SKETCH_VALUES = 128  # standard error of the distinct count: 1 / sqrt(126), 9 %
HASH_BYTES = 8
LARGEST = 1e290  # of a number that is summed up: MOST_MEMBERS of them have a finite sum

MOST_MEMBERS = 2**40

Tally: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_MEMBERS)]


class Aggregate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The sum over some members; merging is associative and commutative, in any shape of tree.

    But for `total`, whose last digits depend on the order, as every sum of floats does.
    """

    count: Tally = 0  # members that have a value
    numbers: Tally = 0  # of them, with a number
    total: float = 0.0
    least: float = inf
    greatest: float = -inf
    sketch: Annotated[bytes, msgspec.Meta(max_length=SKETCH_VALUES * HASH_BYTES)] = b""

    @property
    def mean(self) -> float | None:
        """The mean of all numbers; None without any."""
        return self.total / self.numbers if self.numbers else None

    @property
    def distinct(self) -> float:
        """About how many different values there are; exact below `SKETCH_VALUES`."""
        kept = len(self.sketch) // HASH_BYTES
        if kept < SKETCH_VALUES:
            return kept
        kth = int.from_bytes(self.sketch[-HASH_BYTES:], "big")
        return (SKETCH_VALUES - 1) * 2.0 ** (8 * HASH_BYTES) / (kth + 1)

    def merged(self, other: Aggregate) -> Aggregate:
        """The aggregate of both, which must not overlap but for the sketch."""
        return Aggregate(
            self.count + other.count,
            self.numbers + other.numbers,
            self.total + other.total,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
            _merged_sketch(self.sketch, other.sketch),
        )


NOTHING = Aggregate()


def aggregate_of(value: object) -> Aggregate:
    """What one member contributes; nothing without a value."""
    if value is None:
        return NOTHING
    sketch = _hashed(value.hex() if isinstance(value, bytes) else str(value))
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return Aggregate(count=1, sketch=sketch)
    number = float(value)
    return Aggregate(1, 1, number, number, number, sketch)


def is_sound(aggregate: Aggregate) -> bool:
    """Whether a peer's aggregate can be one: no NaN, nothing too large, hashes in order."""
    hashes = _hashes(aggregate.sketch)
    if not aggregate.numbers:
        bounds = (aggregate.total, aggregate.least, aggregate.greatest) == (0.0, inf, -inf)
    else:
        bounds = (
            abs(aggregate.total) <= LARGEST * aggregate.numbers
            and -LARGEST <= aggregate.least <= aggregate.greatest <= LARGEST
        )
    return (
        bounds
        and aggregate.numbers <= aggregate.count
        and len(aggregate.sketch) % HASH_BYTES == 0
        and len(hashes) <= aggregate.count
        and all(one < two for one, two in pairwise(hashes))
    )


def _hashes(sketch: bytes) -> list[bytes]:
    return [sketch[at : at + HASH_BYTES] for at in range(0, len(sketch), HASH_BYTES)]


def _merged_sketch(one: bytes, other: bytes) -> bytes:
    """The k minimum values of both: hashes in ascending order, each once."""
    if not one or not other:
        return one or other
    distinct = dict.fromkeys(merge(_hashes(one), _hashes(other)))
    return b"".join(list(distinct)[:SKETCH_VALUES])


@lru_cache(maxsize=4096)
def _hashed(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=HASH_BYTES).digest()
