"""Traces: one schema for both drivers, the recorder, and what reads them.

    from overlay.traces import open_run

    with open_run("traces") as run:
        print(run.latency().toPandas())

Only what is asked for is imported: a node that records nothing must not pay for Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overlay.traces.opening import Run


def open_run(folder: Any, **options: Any) -> Run:
    """Open a folder of traces with Spark: see `overlay.traces.opening`, which is imported late."""
    from overlay.traces.opening import open_run as opened

    return opened(folder, **options)
