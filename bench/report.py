"""One form for every benchmark: all repeats, their median and spread, and the bars to reach."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import msgspec

Direction: TypeAlias = Literal["at least", "at most"]


class Case(msgspec.Struct, frozen=True):
    """One thing measured several times."""

    unit: str
    repeats: list[float]
    median: float
    spread: float  # (largest - smallest) / median


class Bar(msgspec.Struct, frozen=True):
    """What a figure must reach, and whether it did in this run."""

    name: str
    value: float
    unit: str
    bar: float
    direction: Direction
    holds: bool


class Report(msgspec.Struct):
    """What `python -m bench NAME --json` prints."""

    bench: str
    machine: dict[str, Any]
    results: dict[str, Case] = msgspec.field(default_factory=dict)
    bars: list[Bar] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)  # what the figures do not say

    def add(self, case: str, unit: str, repeats: Iterable[float]) -> Case:
        """Enter one case."""
        values = list(repeats)
        middle = median(values)
        spread = (max(values) - min(values)) / middle if middle else 0.0
        self.results[case] = entered = Case(unit, values, middle, spread)
        return entered

    def require(self, name: str, value: float, unit: str, direction: Direction, bar: float) -> None:
        """Enter one bar; missing it is a finding, not an error."""
        holds = value >= bar if direction == "at least" else value <= bar
        self.bars.append(Bar(name, value, unit, bar, direction, holds))

    def take(self, other: Report) -> None:
        """Enter what another process found for this report."""
        self.results.update(other.results)
        self.bars += other.bars
        self.notes += other.notes


class Options(msgspec.Struct, frozen=True):
    """How thoroughly to measure."""

    repeats: int = 5
    quick: bool = False  # small enough for a test: the figures mean little
    only: tuple[str, ...] = ()  # sections; empty: all
    peers: tuple[str, ...] = ()  # who else does the same work beside ours


Section: TypeAlias = Callable[[Report, Options], None]
"""A part of a benchmark that can be run alone: it enters its cases and bars."""


def run_sections(name: str, sections: Mapping[str, Section], options: Options) -> Report:
    """Run the sections that were asked for, in their order."""
    report = Report(name, machine())
    for section, measure in sections.items():
        if not options.only or section in options.only:
            measure(report, options)
    return report


def machine() -> dict[str, Any]:
    """Return what a figure depends on, and how busy it was."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(average, 2) for average in os.getloadavg()],
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
