"""A lab: how long it takes to bring one up on hosts that have nothing but Python and sshd."""

from __future__ import annotations

from bench.lab_up import measure_up
from bench.report import Options, Report, run_sections

NAME = "lab"
SECTIONS = {
    "up": measure_up,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
