"""Publisher mobility: its paper's figures, what it only tells, what it left open, and lossless."""

from __future__ import annotations

from bench.mobility_cause import cause
from bench.mobility_paper import (
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    lossless,
    overshoot,
    rebuilding,
    subscribers,
)
from bench.mobility_real import real
from bench.mobility_sweep import lengths, sizes, speed
from bench.report import Options, Report, Section, run_sections

NAME = "mobility"

SECTIONS: dict[str, Section] = {
    "time": speed,
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
    "figure7": figure_7,
    "figure8": figure_8,
    "figure9": figure_9,
    "figure10": figure_10,
    "subscribers": subscribers,
    "overshoot": overshoot,
    "lossless": lossless,
    "t4": rebuilding,
    "cause": cause,
    "sizes": sizes,
    "lengths": lengths,
    "real": real,
}


def run(options: Options) -> Report:
    """Run the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
