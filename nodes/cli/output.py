"""How commands talk: tables for people, JSON for programs, errors in one line."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from nodes.cli.completion import profiles

if TYPE_CHECKING:
    from rich.console import Console

Profile = Annotated[
    str,
    typer.Option(help="A ready-made base of settings: lan, wan, local.", autocompletion=profiles),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

LogFormat = Annotated[str, typer.Option(help="How lines on stderr look: text, or json.")]
LogLevel = Annotated[str, typer.Option(help="From which on: debug, info, warning, error.")]

WIDE = 200  # columns when nobody looks: a pipe must not get wrapped words


def print_json(facts: Any, *, flush: bool = False) -> None:
    """One JSON value on one line."""
    print(msgspec.json.encode(facts).decode(), flush=flush)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """A table; cells are plain text, whatever a peer put into its name.

    A terminal too narrow for its words gets a line for each cell instead.
    """
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    texts = [[str(cell) for cell in row] for row in rows]
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")  # an address or a serial must stay whole
    for text in texts:
        table.add_row(*map(Text, text))
    screen = console()
    endless = screen.options.update_width(1 << 16)
    if Measurement.get(screen, endless, table).minimum <= screen.width:
        screen.print(table)
    else:
        _print_lines(columns, texts, title)


def _print_lines(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None) -> None:
    if title is not None:
        print(title)
    width = max(map(len, columns))
    for row in rows:
        print()
        for column, cell in zip(columns, row, strict=True):
            print(f"{column:<{width}}  {cell}")


def console() -> "Console":
    """Where people read."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def counted(count: int, noun: str) -> str:
    """`1 member`, `2 members`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def complain(line: object) -> None:
    """One line on stderr."""
    print(f"overlay: {line}", file=sys.stderr)
