"""`overlay demo`: zones form; a delegate, a gateway and a zone are killed, and others go on."""

from typing import TYPE_CHECKING, Any

import typer

from nodes.cli.output import AsJson, complain, console, print_json, print_table

if TYPE_CHECKING:
    from nodes.demo import DemoReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(json: AsJson = False) -> None:
    """Run three zones of four peers here; kill a delegate, a gateway, and a whole zone."""
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
