"""`overlay topics`: who publishes and subscribes to what, how fast, and who is behind."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, counted, print_json, print_table


class Row(msgspec.Struct):
    """One topic of one overlay, as the nodes of this machine know it together."""

    overlay: str
    topic: str
    modes: dict[str, None] = {}
    publishers: dict[str, None] = {}
    subscribers: dict[str, None] = {}
    messages: int = 0  # of all streams that are known
    per_second: float | None = None  # from the second look on
    behind: int = 0  # messages, of the slowest
    gateways: dict[str, str] = {}  # by zone


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


def rows_of(before: list[dict[str, Any]], after: list[dict[str, Any]], seconds: float) -> list[Row]:
    """What all nodes tell, a row for each topic; rates are between two looks."""
    rows: dict[tuple[str, str], Row] = {}
    for view in after:
        for one in (*view["published"], *view["arriving"]):
            _add(rows, view, one)
    earlier, counts = _counts(before), _counts(after)
    for (overlay, topic, *_), count in counts.items():
        rows[overlay, topic].messages += count
    for key, count in counts.items():
        if key in earlier:
            row = rows[key[0], key[1]]
            row.per_second = (row.per_second or 0.0) + (count - earlier[key]) / seconds
    return sorted(rows.values(), key=lambda row: (row.overlay, row.topic))


def _add(rows: dict[tuple[str, str], Row], view: dict[str, Any], one: dict[str, Any]) -> None:
    overlay, topic = view["overlay"], one["topic"]
    row = rows.setdefault((overlay, topic), Row(overlay, topic))
    row.modes[one["mode"]] = None
    row.publishers[one["publisher"]] = None
    if one.get("subscriptions"):
        row.subscribers[view["node"]] = None
    row.behind = max(row.behind, one.get("behind", 0))
    for other in one["subscribers"]:
        others = "other zones" if other["zone"] == "*" else other["zone"]
        name = f"{other['name']} for {others}" if others else other["name"]
        if other["state"] != "offered":
            row.subscribers[name] = None
        row.behind = max(row.behind, other["behind"] or 0)
    known = view["gateways"].get(topic, {})
    if known.get("gateway"):
        row.gateways[view["zone"]] = known["gateway"]
    row.gateways |= known.get("zones", {})


def _counts(views: list[dict[str, Any]]) -> dict[tuple[str, str, str, int], int]:
    """How far each stream is, as whoever knows most of it tells."""
    found: dict[tuple[str, str, str, int], int] = {}
    for view in views:
        for one in (*view["published"], *view["arriving"]):
            key = (view["overlay"], one["topic"], one["publisher"], one["stream"])
            found[key] = max(found.get(key, 0), one["messages"])
    return found


def _show(views: list[dict[str, Any]], rows: list[Row], json: bool) -> None:
    if json:
        print_json({"topics": [msgspec.structs.asdict(row) for row in rows], "nodes": views})
        return
    table = [
        (
            row.topic,
            ", ".join(row.modes),
            ", ".join(row.publishers),
            ", ".join(row.subscribers) or "-",
            row.messages,
            "-" if row.per_second is None else f"{row.per_second:,.0f}",
            row.behind,
            ", ".join(f"{zone}: {name}" for zone, name in row.gateways.items()) or "-",
        )
        for row in rows
    ]
    names = ", ".join(view["node"] for view in views)
    columns = ("topic", "mode", "publishers", "subscribers", "messages", "per s", "behind")
    title = f"{counted(len(rows), 'topic')}, as {names} see{'s' if len(views) == 1 else ''} them"
    print_table((*columns, "gateways"), table, title=title)
