"""What people see meanwhile: a line for each host that changes in place; in a pipe plain lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.console import RenderableType


class Progress(Protocol):
    """Told by the commands."""

    def step(self, text: str) -> None:
        """The whole lab is at this."""

    def host(self, name: str, text: str) -> None:
        """One host is at this."""

    def note(self, line: str) -> None:
        """A line that stays."""


class Quiet:
    """For `--json`."""

    def step(self, text: str) -> None:
        """Say nothing."""

    def host(self, name: str, text: str) -> None:
        """Say nothing."""

    def note(self, line: str) -> None:
        """Notes are for people, and not in the way on stderr."""
        print(f"overlay: {line}", file=sys.stderr)


class Lines:
    """For a pipe or a log: one line for each step, none twice."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def step(self, text: str) -> None:
        """One line with the seconds since the start."""
        print(f"[{time.monotonic() - self._began:5.1f} s] {text}", file=sys.stderr, flush=True)

    def host(self, name: str, text: str) -> None:
        """Hosts would be too many lines; who fails is named at the end."""

    def note(self, line: str) -> None:
        """As it is."""
        print(line, file=sys.stderr, flush=True)


class Screen:
    """For a terminal: the step with its time, and below what each host is at."""

    SHOWN = 12  # hosts; of more only those who are last

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._step = ""
        self._step_began = time.monotonic()
        self._hosts: dict[str, str] = {}
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            get_renderable=self._picture,
            console=self._console,
            transient=True,
            refresh_per_second=8,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: object, *what: object) -> None:
        if kind is None:  # else the step did not come to its end
            self._end_step()
        self._live.stop()

    def step(self, text: str) -> None:
        """Leave a line for the step before, with the seconds that it took."""
        self._end_step()
        self._step, self._step_began = text, time.monotonic()
        self._hosts.clear()

    def host(self, name: str, text: str) -> None:
        """Show it until the next step."""
        self._hosts[name] = text

    def note(self, line: str) -> None:
        """Above the rest."""
        self._console.print(line, markup=False, soft_wrap=True)

    def _end_step(self) -> None:
        if self._step:
            took = time.monotonic() - self._step_began
            self._console.print(f"[green]✓[/] {self._step} [dim]{took:.1f} s[/]")
            self._step = ""

    def _picture(self) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        if self._step:
            grid.add_row(
                Text("…"), Text(f"{self._step}  {time.monotonic() - self._step_began:.0f} s")
            )
        for name, text in list(self._hosts.items())[-self.SHOWN :]:
            grid.add_row(Text(""), Text(f"{name}: {text}", style="dim"))
        return grid


@contextmanager
def progress(*, json: bool) -> Iterator[Progress]:
    """The right one for where the output goes."""
    if json:
        yield Quiet()
    elif sys.stderr.isatty():
        with Screen() as screen:
            yield screen
    else:
        yield Lines()
