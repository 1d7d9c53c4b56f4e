"""`overlay analyze`: what traces say, as a page to look at and as tables."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from nodes.cli.output import AsJson, counted, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(analyze)


def analyze(
    traces: Annotated[Path, typer.Argument(help="A folder of traces (run=…/hour=…/*.parquet).")],
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("report"),
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[N], spark://HOST:PORT or sc://HOST:PORT.")
    ] = "local[*]",
    jobs: Annotated[str, typer.Option(help="Only these, as latency,delivery; empty: all.")] = "",
    memory: Annotated[str, typer.Option(help="Of Spark's heap in this process.")] = "4g",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Read all files again, not only new ones.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Analyse traces with Spark; a second time, only the files that came since."""
    done = run(traces, out, master=master, jobs=jobs, memory=memory, fresh=fresh, shows=not json)
    if json:
        print_json(done)
        return
    for file, reason in done["skipped"]:
        print(f"left out: {file}: {reason}")
    print_table(("table", "rows", "what it says"), done["tables"])
    rows = f"{counted(done['rows'], 'row')} in {counted(done['files'], 'file')}"
    print(f"{rows}, {done['seconds']:.1f} s in all\n{done['report']}")


def run(
    traces: Path,
    out: Path,
    *,
    master: str = "local[*]",
    jobs: str = "",
    memory: str = "4g",
    fresh: bool = False,
    shows: bool = True,
) -> dict[str, Any]:
    """Analyse, with a progress bar on stderr if it `shows`; what was read and written."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    from overlay.traces.analyze import analyse

    hidden = not (shows and sys.stderr.isatty())
    columns = (BarColumn(), MofNCompleteColumn(), Elapsed(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task("starting Spark", total=None)

        def tell(doing: str, step: int, steps: int) -> None:
            bar.update(task, description=doing, completed=step - 1, total=steps)

        names = [name.strip() for name in jobs.split(",") if name.strip()]
        return analyse(
            traces, out, master=master, jobs=names, memory=memory, fresh=fresh, tell=tell
        )
