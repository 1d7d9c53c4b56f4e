"""Arrow arrays of plain Python values, made from buffers.

`pyarrow.array` would do; its first call imports pandas where there is one, which takes a node a
third of a second, and each full collection of garbage a tenth from then on.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from overlay.traces.schema import pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = {"h": "int16", "i": "int32", "q": "int64", "d": "float64"}  # by their codes in `array`
DIGITS = bytes.maketrans(b"\0\1", b"01")  # of flags
MICRO = 1_000_000


class Numbers:
    """A column of numbers that grows; some may be None."""

    def __init__(self, code: str, values: Sequence[float | None] = ()) -> None:
        self._code = code
        self._data = array(code)
        self._known = bytearray()  # a flag for each value
        self.extend(values)

    def extend(self, values: Sequence[float | None]) -> None:
        """Add these."""
        try:
            self._data += array(self._code, values)  # type: ignore[arg-type]
            self._known += b"\1" * len(values)
        except TypeError:  # some are None, perhaps all
            if values.count(None) == len(values):
                self._data.frombytes(bytes(self._data.itemsize * len(values)))
                self._known += bytes(len(values))
                return
            self._data.extend([value or 0 for value in values])  # type: ignore[misc]
            self._known += bytes([value is not None for value in values])

    def arrow(self) -> pa.Array:
        """The column as it is now."""
        arrow = pyarrow()
        buffers = [_bitmap(self._known), arrow.py_buffer(self._data)]
        kind = getattr(arrow, TYPES[self._code])()
        return arrow.Array.from_buffers(kind, len(self._data), buffers)


def strings(values: Sequence[str]) -> pa.Array:
    """A column of words; an empty one is null."""
    arrow = pyarrow()
    if not any(values):
        return arrow.nulls(len(values), arrow.string())
    encoded = [value.encode() for value in values]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    known = _bitmap(bytes([value != "" for value in values]))
    buffers = [known, arrow.py_buffer(ends), arrow.py_buffer(b"".join(encoded))]
    return arrow.Array.from_buffers(arrow.string(), len(values), buffers)


def microseconds(seconds: pa.Array) -> pa.Array:
    """Whole microseconds, halves to the even one as `round` does; null stays null."""
    import pyarrow.compute as compute

    micro = Numbers("d", [MICRO]).arrow()[0]  # a plain number would import pandas, too
    return compute.round(compute.multiply(seconds, micro)).cast(pyarrow().int64())


def _bitmap(known: bytes | bytearray) -> Any:
    """One bit for each flag, the first in the lowest bit; None: all are set."""
    if 0 not in known:
        return None
    bits = int(bytes(known[::-1]).translate(DIGITS), 2)
    return pyarrow().py_buffer(bits.to_bytes((len(known) + 7) // 8, "little"))
