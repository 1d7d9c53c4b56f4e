"""Resources: matching of constraints, and discovery as its paper evaluated it."""

from __future__ import annotations

from bench.report import Options, Report, run_sections
from bench.resources_matching import finding, matching

NAME = "resources"

SECTIONS = {
    "matching": matching,
    "find": finding,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
