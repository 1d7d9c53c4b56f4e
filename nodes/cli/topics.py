"""`overlay topics`: who publishes and subscribes to what, how fast, and who is behind."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, counted, print_json, print_table
from nodes.topic_rows import Part, Row, rows_of


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(topics)


def topics(
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between the looks that give rates.")
    ] = 1.0,
    node: NodeName = None,
    json: AsJson = False,
) -> None:
    """Show the topics that nodes of this machine publish, get or hand on; Ctrl-C ends --watch."""
    try:
        before, then = ask_each(node, "topics"), time.monotonic()
        while True:
            time.sleep(interval)
            after, now = ask_each(node, "topics"), time.monotonic()
            _show(after, rows_of(before, after, now - then), json)
            if not watch:
                return
            before, then = after, now
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _show(views: list[dict[str, Any]], rows: list[Row], json: bool) -> None:
    if json:
        print_json({"topics": msgspec.to_builtins(rows), "nodes": views})
        return
    table = [
        (
            row.topic,
            ", ".join(row.modes),
            ", ".join(row.publishers),
            ", ".join(_named(name, part) for name, part in row.subscribers.items()) or "-",
            row.messages,
            "-" if row.per_second is None else f"{row.per_second:,.0f}",
            "-" if row.bytes_per_second is None else f"{row.bytes_per_second / 1000:,.1f}",
            row.behind,
            ", ".join(f"{zone}: {name}" for zone, name in row.gateways.items()) or "-",
        )
        for row in rows
    ]
    names = ", ".join(view["node"] for view in views)
    columns = ("topic", "mode", "publishers", "subscribers", "messages", "per s", "kB/s", "behind")
    title = f"{counted(len(rows), 'topic')}, as {names} see{'s' if len(views) == 1 else ''} them"
    print_table((*columns, "gateways"), table, title=title)


def _named(name: str, part: Part) -> str:
    return f"{name} ({part.behind:,} behind)" if part.behind else name
