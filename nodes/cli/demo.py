"""`overlay demo`: zones form; a delegate, a gateway and a zone are killed, and others go on."""

import sys
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodes.cli.output import AsJson, complain, console, print_json, print_table
from overlay.errors import OverlayError

if TYPE_CHECKING:
    from nodes.demo import DemoReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    dir: Annotated[
        Path | None,
        typer.Option("--dir", help="Where traces and report go.", show_default="runs/demo-TIME"),
    ] = None,
    stay: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=86_400,
            help="Seconds that peers run on, for whoever looks at the dashboard; Ctrl-C ends it.",
            show_default="300 in a terminal, else 0",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Run three zones of four peers here; kill a delegate, a gateway, and a whole zone."""
    import trio

    from nodes.demo import play
    from nodes.demo_dashboard import STAY

    folder = dir or Path("runs", f"demo-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    traces = folder / "traces" if find_spec("pyarrow") else None
    if stay is None:
        stay = STAY if _somebody_looks() and not json else 0.0
    try:
        if json:
            report = trio.run(play, _quiet, _quiet, traces, stay)
        else:
            screen = console()
            with screen.status("") as progress:
                report = trio.run(play, screen.print, progress.update, traces, stay)
    except OverlayError:
        if dir is None:  # a demo that did not happen leaves nothing behind
            rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.parent.rmdir()
        raise
    if json:
        print_json(report)
    else:
        _show(report)
        _analyse(traces, folder / "report")
        if report.dashboard and not stay:
            print("dashboard: `overlay demo --stay 300` keeps this one; `overlay dashboard`: yours")
    for failure in report.failures:
        complain(failure)
    if report.failures:
        raise typer.Exit(1)


def _analyse(traces: Path | None, out: Path) -> None:
    """End with the report of what just happened, where Spark can make one."""
    if traces is None:
        print("no traces: pip install 'zmq-overlay[traces]' lets peers record them")
        return
    from overlay.traces.spool import recover

    recover(traces)  # of the peers that were killed
    try:
        from nodes.cli import analyze  # it needs the extra `spark`

        told = analyze.run(traces, out)
    except (ImportError, OverlayError) as error:
        print(f"traces: {traces.resolve()} (no report: {error})")
        return
    print(f"report: {told['report']}")


def _somebody_looks() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _quiet(line: str) -> None:
    """For programs only the end counts."""


def _show(report: "DemoReport") -> None:
    _show_zones(report.zones_before, "the zones before")
    _show_zones(report.zones_after, f"the zones after the death of {report.victim}")
    victim, heir = report.victim, report.replacement
    rows = [
        (one.name, *map(_milliseconds, (one.failed, one.replaced, one.returned)))
        for one in report.witnesses
    ]
    columns = ("peer", f"saw {victim} fail", f"saw {heir} appointed", f"saw {victim} return")
    title = f"{heir} replaced {victim} within {_milliseconds(report.replaced)}"
    print_table(columns, rows, title=title)
    print(report.machines.told())
    stream = report.stream
    rows = [
        ("published by", stream.publisher, f"{stream.published:,} messages to {stream.topic}"),
        ("killed in mid-stream", stream.victim, f"a gateway; {stream.successor} went on for it"),
        ("delivered to", f"{len(stream.subscribers)} peers", f"{stream.delivered:,} messages"),
    ]
    print_table(("stream", "who", "what"), rows, title=stream.told())
    print(f"zone {report.table.zone} was killed: {report.table.told()}")
    print(f"{report.seconds:.1f} s in all")


def _show_zones(zones: list[dict[str, Any]], title: str) -> None:
    rows = [(zone["name"], zone["size"], ", ".join(zone["delegates"])) for zone in zones]
    print_table(("zone", "members", "delegates"), rows, title=title)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
