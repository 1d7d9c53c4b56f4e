"""Resources: matching of constraints, and discovery as its paper evaluated it."""

from __future__ import annotations

from bench.report import Options, Report, run_sections
from bench.resources_matching import finding, matching
from bench.resources_models import models
from bench.resources_paper import figure_9, figure_10, figure_11, figure_14

NAME = "resources"

SECTIONS = {
    "matching": matching,
    "find": finding,
    "figure9": figure_9,
    "figure10": figure_10,
    "figure11": figure_11,
    "models": models,
    "figure14": figure_14,
}


def run(options: Options) -> Report:
    """Measure all sections, or those that were asked for."""
    return run_sections(NAME, SECTIONS, options)
