"""Topics as all nodes that were asked know them together: a row for each, rates from two looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec


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


Node: TypeAlias = tuple[str, str]
"""Overlay and name."""

Stream: TypeAlias = tuple[str, str, str, int]
"""Overlay, topic, publisher and the number of a stream."""

Looks: TypeAlias = dict[tuple[Stream, str], Progress]
"""How far each stream is at each node."""


def rows_of(
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    seconds: float | Mapping[Node, float],
) -> list[Row]:
    """What all nodes tell, a row for each topic; rates are between two looks.

    `seconds` lie between them, of all nodes or of each one.
    """
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
            passed = seconds if isinstance(seconds, float) else seconds[stream[0], node]
            for part in parts:
                _add_rate(part, then, progress, passed)
            if foremost[stream] == node:
                _add_rate(row, then, progress, passed)
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
