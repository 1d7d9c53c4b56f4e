"""Traces: what recording costs, and what analysing takes.

Recording: the same peers with and without traces in the same run, and bytes on disk per row.
"""

from __future__ import annotations

from bench.report import Options, Report, run_sections
from bench.traces_recording import bytes_per_row, cost

NAME = "traces"

SECTIONS = {
    "cost": cost,
    "rows": bytes_per_row,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
