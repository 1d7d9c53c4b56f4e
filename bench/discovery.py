"""Discovery: how soon the nearest broker is found, and what that costs."""

from __future__ import annotations

from bench.discovery_brokers import report_choice, report_topologies
from bench.discovery_cost import report_scale, report_security
from bench.report import Options, Report, Section, run_sections

NAME = "discovery"

SECTIONS: dict[str, Section] = {
    "topologies": report_topologies,
    "choice": report_choice,
    "scale": report_scale,
    "security": report_security,
}


def run(options: Options) -> Report:
    """Measure everything, or the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
