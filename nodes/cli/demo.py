"""`overlay demo`: see peers find each other, one be killed, and the rest go on."""

from typing import TYPE_CHECKING

import typer

from nodes.cli.output import AsJson, complain, console, print_json, print_table

if TYPE_CHECKING:
    from nodes.demo import DemoReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(json: AsJson = False) -> None:
    """Run eight peers on this machine, kill one, let it come back, and show what happened."""
    import trio

    from nodes.demo import play

    if json:
        report = trio.run(play, _quiet, _quiet)
        print_json(report)
    else:
        screen = console()
        with screen.status("") as progress:
            report = trio.run(play, screen.print, progress.update)
        _show(report)
    for failure in report.failures:
        complain(failure)
    if report.failures:
        raise typer.Exit(1)


def _quiet(line: str) -> None:
    """For programs only the end counts."""


def _show(report: "DemoReport") -> None:
    rows = [
        (
            peer.name,
            peer.ended,
            peer.answered,
            peer.lost,
            _milliseconds(peer.noticed),
            _milliseconds(peer.reunited),
            peer.exit_code,
        )
        for peer in report.peers
    ]
    victim = report.victim
    columns = (
        "peer",
        "asked",
        "answered",
        "lost",
        f"saw {victim} die",
        f"saw {victim} return",
        "exit code",
    )
    print_table(columns, rows, title=f"{len(rows)} peers, {report.seconds:.1f} s")


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
