"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; what a cell holds cannot break out of it."""
    lines = [_row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def code(text: object) -> str:
    """Text as code; empty stays empty."""
    return f"`{text}`" if str(text) else ""


def _row(cells: Sequence[object]) -> str:
    plain = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(plain)} |"
