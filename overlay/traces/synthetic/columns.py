"""Rows of many kinds as numpy columns, and a node's rows as Parquet files in the right folders."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from overlay.traces.schema import COLUMNS, VERSION, FileFacts, arrow_schema, file_name

FILE_ROWS = 1_000_000
GROUP_ROWS = 250_000
HOUR = 3_600_000_000  # µs
TEXT = tuple(column.name for column in COLUMNS if column.type == "string")
NUMBERS = tuple(column.name for column in COLUMNS if column.type != "string")
DEFAULTS: Mapping[str, Any] = {"version": VERSION, "count": 1, "weight": 1}


class Words:
    """The words of all text columns, each by a number; a column of rows is then numbers only."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, word: str) -> int:
        """The number of a word."""
        return self._codes.setdefault(word, len(self._codes))

    def codes(self, words: list[str]) -> np.ndarray:
        """The numbers of several, to pick from by index."""
        return np.array([self.code(word) for word in words], dtype=np.int32)

    def array(self) -> pa.Array:
        """All words, in the order of their numbers."""
        return pa.array(list(self._codes), pa.string())


class Rows:
    """Blocks of rows of one node: text as numbers of Words, None where there is nothing."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._blocks: list[tuple[int, dict[str, Any]]] = []

    def add(self, size: int, **columns: Any) -> None:
        """A block: a column is an array, or one value for all rows (a str too)."""
        if size:
            self._blocks.append((size, columns))

    def table(self, **constant: Any) -> pa.Table:
        """All blocks in the order of time; `row` counts them."""
        sizes = [size for size, _ in self._blocks]
        total = sum(sizes)
        time = self._column("time", sizes, {}, np.int64)[0]
        order = np.argsort(time, kind="stable")
        arrays = []
        for column in COLUMNS:
            if column.name == "row":
                arrays.append(pa.array(np.arange(total)))
                continue
            kind = np.int32 if column.type == "string" else np.dtype(column.type).type
            values, missing = self._column(column.name, sizes, constant, kind)
            values, missing = values[order], missing[order]
            if column.type == "string":
                codes = pa.array(values, mask=missing)
                arrays.append(pa.DictionaryArray.from_arrays(codes, self.words.array()))
            else:
                arrays.append(pa.array(values, mask=missing if missing.any() else None))
        return pa.table(arrays, names=[column.name for column in COLUMNS])

    def _column(
        self, name: str, sizes: list[int], constant: Mapping[str, Any], kind: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        total = sum(sizes)
        values = np.zeros(total, dtype=kind)
        missing = np.zeros(total, dtype=bool)
        at = 0
        for size, (_, columns) in zip(sizes, self._blocks, strict=True):
            value = columns.get(name, constant.get(name, DEFAULTS.get(name)))
            part = slice(at, at + size)
            if value is None:
                missing[part] = True
            else:
                values[part] = self.words.code(value) if isinstance(value, str) else value
            at += size
        return values, missing


def write(folder: Path, table: pa.Table, run: str, node: str, life: int) -> list[Path]:
    """Write a node's rows as its recorder would: rotated, and each hour in its folder."""
    time = table.column("time").to_numpy()
    hours = time // HOUR
    cuts = [0, *(np.flatnonzero(np.diff(hours)) + 1).tolist(), len(time)]
    paths: list[Path] = []
    for begin, end in pairwise(cuts):
        hour = datetime.fromtimestamp(float(hours[begin] * 3600), UTC).strftime("%Y-%m-%dT%H")
        place = folder / f"run={run}" / f"hour={hour}"
        place.mkdir(parents=True, exist_ok=True)
        for at in range(begin, end, FILE_ROWS):
            part = table.slice(at, min(FILE_ROWS, end - at))
            facts = FileFacts(VERSION, run, node, life, len(paths), part.num_rows)
            metadata = arrow_schema(facts).metadata
            path = place / file_name(node, life, len(paths))
            pq.write_table(
                part.replace_schema_metadata(metadata),
                path,
                compression="zstd",
                row_group_size=GROUP_ROWS,
            )
            paths.append(path)
    return paths
