"""Traces: what recording costs, and what analysing takes.

Recording: the same peers with and without traces in the same run, and bytes on disk per row.
Analysing: all Spark jobs over 100 million rows and over half of them, their answers beside those of
DuckDB, and rows that keep coming.
"""

from __future__ import annotations

from bench.report import Options, Report, run_sections
from bench.traces_recording import bytes_per_row, cost

NAME = "traces"


def _jobs(report: Report, options: Options) -> None:
    from bench.traces_analysis import report_jobs  # late: it takes Spark's extra and a second

    report_jobs(report, options)


def _check(report: Report, options: Options) -> None:
    from bench.traces_analysis import report_check

    report_check(report, options)


def _streaming(report: Report, options: Options) -> None:
    from bench.traces_streaming import report_streaming

    report_streaming(report, options)


SECTIONS = {
    "cost": cost,
    "rows": bytes_per_row,
    "jobs": _jobs,
    "check": _check,
    "streaming": _streaming,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
