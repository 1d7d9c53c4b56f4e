"""Tables short enough to look at: the page has the first rows, the files beside it have all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 200  # of each run
WHOLE = ("latency_cdf", "membership_views", "nodes")
"""Drawn, so every point counts; they are bounded by their job, or by the nodes of a run."""
DRAWN_ELSEWHERE = ("timeline",)
MOST_OF_WHOLE = 20_000
SIGNIFICANT = 7  # digits: half the page would be noise otherwise

WORST_FIRST = {
    "delivery": ("lost", "duplicated", "out_of_order", "outstanding"),
}
"""Tables whose order is by name, where people want to see trouble."""


def shortened(name: str, table: pa.Table, meaning: str) -> dict[str, Any]:
    """Columns, rows, how many rows each run has in all, and what they mean."""
    totals = Counter(table.column("run").to_pylist())
    if name in DRAWN_ELSEWHERE:
        table = table.slice(0, 0)
    elif name in WHOLE:
        table = table.slice(0, MOST_OF_WHOLE)
    else:
        table = _first_of_each_run(_worst_first(name, table))
    columns = [[_short(value) for value in column.to_pylist()] for column in table.columns]
    return {
        "columns": table.column_names,
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "totals": dict(totals),
        "meaning": meaning,
    }


def _worst_first(name: str, table: pa.Table) -> pa.Table:
    keys = [(column, "descending") for column in WORST_FIRST.get(name, ())]
    return table.sort_by(keys) if keys else table


def _first_of_each_run(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    seen: dict[str, int] = {}
    places = []
    for place, run in enumerate(table.column("run").to_pylist()):
        seen[run] = seen.get(run, 0) + 1
        if seen[run] <= MOST_ROWS:
            places.append(place)
    return table.take(pa.array(places, pa.int64()))


def _short(value: Any) -> Any:
    return float(f"{value:.{SIGNIFICANT}g}") if isinstance(value, float) else value
