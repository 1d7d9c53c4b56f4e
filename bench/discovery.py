"""Discovery: how soon nodes find each other."""

from __future__ import annotations

from bench.discovery_contact import CONTENDERS, report_contact
from bench.report import Options, Report, Section, run_sections

NAME = "discovery"

SECTIONS: dict[str, Section] = {"contact": report_contact}

PEERS = tuple(CONTENDERS)


def run(options: Options) -> Report:
    """Measure everything, or the sections that were asked for."""
    return run_sections(NAME, SECTIONS, options)
