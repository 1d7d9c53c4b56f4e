"""Arrow arrays made from buffers are those that pyarrow makes of the same values."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.traces.arrays import Numbers, microseconds, strings


@given(st.lists(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1))))
def test_numbers_that_grow_in_parts(parts: list[list[int | None]]) -> None:
    column = Numbers("q")
    for part in parts:
        column.extend(part)
    found = column.arrow()
    found.validate(full=True)
    assert found.equals(pa.array([value for part in parts for value in part], pa.int64()))


def test_a_number_too_large_for_its_column_is_an_error() -> None:
    with pytest.raises(OverflowError):
        Numbers("i", [2**31])


@given(st.lists(st.text()))
def test_an_empty_word_is_null(words: list[str]) -> None:
    found = strings(words)
    found.validate(full=True)
    assert found.to_pylist() == [word or None for word in words]


@given(st.lists(st.none() | st.floats(-3e9, 3e9)))
def test_microseconds_are_rounded_as_python_does(seconds: list[float | None]) -> None:
    found = microseconds(Numbers("d", seconds).arrow())
    assert found.to_pylist() == [None if one is None else round(one * 1e6) for one in seconds]


WRITES = """
import sys
from pathlib import Path
from overlay.traces.config import TraceSettings
from overlay.traces.writer import TraceWriter
from tests.unit.traces.rows import delivery, rows_of
writer = TraceWriter(Path(sys.argv[1]), TraceSettings(), run="lab", recorder="ada", life=1)
writer.write(rows_of([delivery(1), delivery(2, key="ab", value=1.0)]))
print(writer.rotate() is not None, "pandas" in sys.modules)
"""


def test_a_node_that_records_does_not_import_pandas(tmp_path: object) -> None:
    pytest.importorskip("pandas")
    done = subprocess.run(
        [sys.executable, "-c", WRITES, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]
