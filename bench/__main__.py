"""`python -m bench NAME [--json]`: run one benchmark, or `all`; exit 0 when it could measure.

A benchmark is a module with a NAME and a `run(options)`. One with SECTIONS can be run in parts, and
one with PEERS beside others who do the same work.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import msgspec

import bench
from bench.report import Options, Report


def benches() -> dict[str, ModuleType]:
    """Return every module of this folder that has a NAME and a `run(options)`, by that name."""
    modules = (
        import_module(f"bench.{found.name}")
        for found in iter_modules(bench.__path__)
        if not found.name.startswith("_") and not found.ispkg
    )
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}


def show(report: Report) -> None:
    """Print tables for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    cases = Table("case", "median", "unit", "spread", "repeats", title=f"bench {report.bench}")
    for name, case in report.results.items():
        figures = (f"{case.median:,.4g}", case.unit, f"{case.spread:.0%}", str(len(case.repeats)))
        cases.add_row(name, *figures)
    bars = Table("bar", "value", "unit", "wanted", "holds")
    for bar in report.bars:
        wanted = f"{bar.direction} {bar.bar:,.4g}"
        bars.add_row(bar.name, f"{bar.value:,.4g}", bar.unit, wanted, "yes" if bar.holds else "NO")
    console.print(cases)
    console.print(bars)
    for note in report.notes:
        console.print(f"note: {note}", markup=False)
    console.print(", ".join(f"{key} {value}" for key, value in report.machine.items()))


def _parts(known: Mapping[str, ModuleType], kind: str) -> str:
    """Which benchmarks have SECTIONS or PEERS, and which ones."""
    return "; ".join(
        f"{name}: {', '.join(getattr(module, kind))}"
        for name, module in known.items()
        if hasattr(module, kind)
    )


def _check_parts(
    parser: argparse.ArgumentParser, option: str, name: str, chosen: Sequence[str], there: list[str]
) -> None:
    """Refuse what the benchmark does not have."""
    for part in chosen:
        if part not in there:
            what = f"has {', '.join(there)}" if there else "has none"
            parser.error(f"{option} {part}: {name} {what}")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    # Nodes of a benchmark must not find others by accident; where finding is measured it is on.
    os.environ["OVERLAY_SET"] = "beacon.enabled=false"
    known = benches()
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("name", help=f"one of: {', '.join(known)}, all")
    parser.add_argument("parts", nargs="*", metavar="SECTION", help="as --only SECTION")
    parser.add_argument("--json", action="store_true", help="print one JSON object per benchmark")
    parser.add_argument("--repeats", type=int, default=Options().repeats)
    parser.add_argument("--quick", action="store_true", help="small: only shows that it runs")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SECTION",
        help=f"one part of a benchmark; may be repeated ({_parts(known, 'SECTIONS')})",
    )
    parser.add_argument(
        "--peers",
        nargs="?",
        const="all",
        default="",
        metavar="NAME,…",
        help=f"others beside ours, where they are installed ({_parts(known, 'PEERS')})",
    )
    options = parser.parse_args(words)
    options.only += options.parts
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    names = list(known) if options.name == "all" else [options.name]
    if names[0] not in known:
        near = get_close_matches(options.name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}, all"
        parser.error(f"there is no benchmark {options.name}: {hint}")
    module = known.get(options.name)
    _check_parts(
        parser, "--only", options.name, options.only, list(getattr(module, "SECTIONS", ()))
    )
    there = list(getattr(module, "PEERS", ()))
    peers = there if options.peers == "all" else list(filter(None, options.peers.split(",")))
    if options.peers:
        _check_parts(parser, "--peers", options.name, peers or ["all"], there)
    wanted = Options(options.repeats, options.quick, tuple(options.only), tuple(peers))
    for name in names:
        report: Report = known[name].run(wanted)
        if options.json:
            print(msgspec.json.encode(report).decode(), flush=True)
        else:
            show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
