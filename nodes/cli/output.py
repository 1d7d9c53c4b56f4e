"""How commands talk: tables for people, JSON for programs, errors in one line."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

WIDE = 200  # columns when nobody looks: a pipe must not get wrapped words


def print_json(facts: Any) -> None:
    """One JSON value on one line."""
    print(msgspec.json.encode(facts).decode())


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """A table; cells are plain text, whatever a peer put into its name."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")  # an address or a serial must stay whole
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console().print(table)


def console() -> "Console":
    """Where people read."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def complain(line: object) -> None:
    """One line on stderr."""
    print(f"overlay: {line}", file=sys.stderr)
