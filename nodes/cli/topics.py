"""`overlay topics`: who publishes and subscribes to what, how fast, and who is behind."""

from __future__ import annotations

import time
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import typer

from nodes.cli.asking import NodeName, ask_each
from nodes.cli.output import AsJson, counted, print_json, print_table


class Part(msgspec.Struct):
    """What one node has to do with a topic, as far as it or others tell."""

    messages: int | None = None  # that it published, or got; others cannot say
    per_second: float | None = None  # from the second look on
    bytes_per_second: float | None = None
    behind: int | None = None  # messages that it lacks


class Row(msgspec.Struct):
    """One topic of one overlay, as the nodes of this machine know it together."""

    overlay: str
    topic: str
    modes: dict[str, None] = {}
    publishers: dict[str, Part] = {}
    subscribers: dict[str, Part] = {}
    messages: int = 0  # of all streams that are known
    per_second: float | None = None  # from the second look on
    bytes_per_second: float | None = None
    behind: int = 0  # messages, of the slowest
    gateways: dict[str, str] = {}  # by zone


class Progress(NamedTuple):
    """How far a stream is somewhere."""

    messages: int
    bytes: int


Stream: TypeAlias = tuple[str, str, str, int]
"""Overlay, topic, publisher and the number of a stream."""

Looks: TypeAlias = dict[tuple[Stream, str], Progress]
"""How far each stream is at each node."""


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
    earlier, looks = _looks(before), _looks(after)
    foremost: dict[Stream, str] = {}  # who knows most of a stream tells how fast it is
    for (stream, node), (messages, _) in looks.items():
        if stream not in foremost or messages > looks[stream, foremost[stream]].messages:
            foremost[stream] = node
    for (stream, node), progress in looks.items():
        row = rows[stream[:2]]
        parts = [row.subscribers[node]] if node in row.subscribers else []
        if foremost[stream] == node:
            parts.append(row.publishers[stream[2]])
        for part in parts:
            part.messages = (part.messages or 0) + progress.messages
        if foremost[stream] == node:
            row.messages += progress.messages
        if (stream, node) in earlier:
            then = earlier[stream, node]
            for part in parts:
                _add_rate(part, then, progress, seconds)
            if foremost[stream] == node:
                _add_rate(row, then, progress, seconds)
    return sorted(rows.values(), key=lambda row: (row.overlay, row.topic))


def _add_rate(one: Part | Row, then: Progress, now: Progress, seconds: float) -> None:
    one.per_second = (one.per_second or 0.0) + (now.messages - then.messages) / seconds
    one.bytes_per_second = (one.bytes_per_second or 0.0) + (now.bytes - then.bytes) / seconds


def _add(rows: dict[tuple[str, str], Row], view: dict[str, Any], one: dict[str, Any]) -> None:
    overlay, topic = view["overlay"], one["topic"]
    row = rows.setdefault((overlay, topic), Row(overlay, topic))
    row.modes[one["mode"]] = None
    row.publishers.setdefault(one["publisher"], Part())
    if one.get("subscriptions"):
        _lags(row, view["node"], one["behind"])
    for other in one["subscribers"]:
        others = "other zones" if other["zone"] == "*" else other["zone"]
        name = f"{other['name']} for {others}" if others else other["name"]
        if other["state"] != "offered":
            _lags(row, name, other["behind"])
        row.behind = max(row.behind, other["behind"] or 0)
    row.behind = max(row.behind, one.get("behind", 0))
    known = view["gateways"].get(topic, {})
    if known.get("gateway"):
        row.gateways[view["zone"]] = known["gateway"]
    row.gateways |= known.get("zones", {})


def _lags(row: Row, name: str, behind: int | None) -> None:
    """A subscriber, and by how much, as whoever knows the most of it tells."""
    part = row.subscribers.setdefault(name, Part())
    if behind is not None:
        part.behind = max(part.behind or 0, behind)


def _looks(views: list[dict[str, Any]]) -> Looks:
    """How far each stream is at each node, which may get it for itself and for others."""
    found: Looks = {}
    for view in views:
        for one in (*view["published"], *view["arriving"]):
            stream = (view["overlay"], one["topic"], one["publisher"], one["stream"])
            progress = Progress(one["messages"], one["bytes"])
            found[stream, view["node"]] = max(found.get((stream, view["node"]), progress), progress)
    return found


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
