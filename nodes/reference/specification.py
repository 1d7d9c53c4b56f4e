"""A protocol's docstring, which is its specification, as Markdown: the spec is written once.

Docstrings are written to be read as text. So rows of tables that go on in the next line are joined,
lists get the empty line that Markdown wants, and what is set in columns stays so. Paragraphs that
begin with "Invariants" get a heading; those and sentences that begin with "Departs from", also in
the modules of the package, are gathered under one.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

_ITEM = re.compile(r"\s*(-|\d+\.) ")
_DEPARTS = re.compile(r"Departs from .*?\.(?=\s+[A-Z*`(]|\s*$)", re.DOTALL)
INVARIANTS = """## Invariants

Checked in the simulator after every step; those of *scenarios* over whole runs with faults.
"""
_INVARIANTS = re.compile(r"Invariants\b")


def names() -> list[str]:
    """Every protocol."""
    folder = Path(inspect.getfile(import_module("protocols"))).parent
    return sorted(path.parent.name for path in folder.glob("*/machine.py"))


def page_part(name: str) -> str:
    """The specification of one, below headings of the second level."""
    package = import_module(f"protocols.{name}")
    text = inspect.getdoc(package) or ""
    blocks = [block for block in re.split(r"\n\s*\n", text)[1:] if block.strip()]
    main, invariants, departures = [], [], []
    rest = iter(blocks)
    for block in rest:
        if block.startswith("Departs"):
            departures.append(block)
        elif _INVARIANTS.match(block):
            invariants.append(block)
        else:
            main.append(block)
            departures += _DEPARTS.findall(block)
    departures += _elsewhere(Path(inspect.getfile(package)).parent)
    parts = ["## Specification\n", *(_shown(block) for block in main)]
    if invariants:
        parts.append(INVARIANTS)
        parts += [_shown(_without_heading(block)) for block in invariants]
    if departures:
        parts.append("## Departures from the paper\n")
        parts += [
            _shown(block) if "\n- " in block else f"- {_line(block)}\n" for block in departures
        ]
    return "\n".join(parts)


def _elsewhere(folder: Path) -> Iterator[str]:
    """What the modules of the package say of it, with the module's name."""
    for path in sorted(folder.glob("*.py")):
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for sentence in _DEPARTS.findall(ast.get_docstring(node) or ""):
                    yield f"{_line(sentence)} (`{path.name}`)"


def _line(text: str) -> str:
    return " ".join(text.split())


def _without_heading(block: str) -> str:
    """What follows `Invariants (where they are checked):`, or the word alone."""
    first, _, rest = block.partition("\n")
    return (
        rest
        if not first.rstrip().endswith((",", ";")) and _is_list(rest)
        else _capital(re.sub(r"^Invariants:?\s*(\([^)]*\))?:?\s*", "", block))
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_list(text: str) -> bool:
    return bool(_ITEM.match(text))


def _shown(block: str) -> str:
    """One paragraph, list, table or preformatted text."""
    lines = block.splitlines()
    if lines[0].startswith("|"):
        return "\n".join(_joined_rows(lines)) + "\n"
    if lines[0].startswith("  ") and not _ITEM.match(lines[0]):
        return "```text\n" + "\n".join(lines) + "\n```\n"
    shown: list[str] = []
    for line in lines:
        if _ITEM.match(line):
            if shown and not _ITEM.match(shown[-1]) and not shown[-1].startswith("    "):
                shown.append("")
            shown.append(line.strip())
        elif shown and (_ITEM.match(shown[-1]) or shown[-1].startswith("    ")):
            shown.append("    " + line.strip())
        else:
            shown.append(line.strip())
    return "\n".join(shown) + "\n"


def _joined_rows(lines: list[str]) -> list[str]:
    """A row whose first cell is empty goes on with the row before it."""
    rows: list[list[str]] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if rows and not cells[0]:
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return [f"| {' | '.join(cells)} |" for cells in rows]
