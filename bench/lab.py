"""A lab: how long it takes to bring one up, and what it costs to watch one."""

from __future__ import annotations

from bench.lab_dashboard import measure_dashboard, measure_metrics, measure_page
from bench.lab_up import measure_up
from bench.report import Options, Report, run_sections

NAME = "lab"
SECTIONS = {
    "up": measure_up,
    "dashboard": measure_dashboard,
    "page": measure_page,
    "metrics": measure_metrics,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
