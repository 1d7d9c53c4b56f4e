"""What is drawn of many rows, as few numbers: the overlay over time, and the load of its nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

HEAT_NODES = 60  # a row of the map each; those with the most load
HEAT_STEPS = 100
MOST_DEATHS = 100
SERIES = ("published", "delivered", "sent", "sent_bytes", "received_bytes", "problems")


def runs_of(tables: Mapping[str, pa.Table]) -> list[dict[str, Any]]:
    """Every run: its name, when it began and ended (µs), and how many nodes and lives it had."""
    if "nodes" not in tables:
        return []
    found: dict[str, dict[str, Any]] = {}
    for one in tables["nodes"].to_pylist():
        run = found.setdefault(
            one["run"],
            {"name": one["run"], "begin": one["born"], "end": one["died"], "lives": 0},
        )
        run["begin"] = min(run["begin"], one["born"])
        run["end"] = max(run["end"], one["died"])
        run["lives"] += 1
        run.setdefault("names", set()).add(one["node"])
        run.setdefault("zones", set()).add(one["zone"] or "")
    for run in found.values():
        run["nodes"] = len(run.pop("names"))
        run["zones"] = sorted(run["zones"] - {""})
    return list(found.values())


def over_time(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """For each run: rates at each point in time, how many nodes lived, and who died."""
    if "nodes" not in tables:
        return {}
    return {run["name"]: _one_over_time(run, tables) for run in runs_of(tables)}


def _one_over_time(run: dict[str, Any], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    step = 0
    for one in _rows(tables, "timeline", run["name"]):
        step = one["step"]
        for name in SERIES:
            sums[one["at"]][name] += one[name]
    points = range(min(sums), max(sums) + 1, step) if sums else range(0)
    seconds = step / 1e6
    lives = _rows(tables, "nodes", run["name"])
    dead = _dead(lives, _rows(tables, "membership", run["name"]))
    return {
        "seconds": [(at - run["begin"]) / 1e6 for at in points],
        **{name: [sums[at][name] / seconds for at in points] for name in SERIES},
        "alive": _alive(lives, run, dead),
        "deaths": [
            [(one["died"] - run["begin"]) / 1e6, one["node"], one["ended"]]
            for one in lives
            if one["ended"] != "stopped" and (one["node"], one["life"]) in dead
        ][:MOST_DEATHS],
    }


def _dead(lives: list[dict[str, Any]], noticed: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Lives that ended in the run: who is silent at the end is dead only if others noticed."""
    found = {(one["node"], one["life"]) for one in lives if one["ended"] != "silent"}
    return found | {(one["node"], one["life"]) for one in noticed if one["what"] == "silent"}


def _alive(
    lives: list[dict[str, Any]], run: dict[str, Any], dead: set[tuple[str, int]]
) -> list[list[float]]:
    """Steps of how many nodes lived: seconds, and the number from then on."""
    changes: Counter[int] = Counter()
    for one in lives:
        changes[one["born"]] += 1
        if (one["node"], one["life"]) in dead:
            changes[one["died"]] -= 1
    count, steps = 0, []
    for at in sorted(changes):
        count += changes[at]
        if at < run["end"]:  # at the end all are gone, which is no news
            steps.append([(at - run["begin"]) / 1e6, count])
    if steps:
        steps.append([(run["end"] - run["begin"]) / 1e6, steps[-1][1]])
    return steps


def heat(tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    """For each run: the load of each node over time, as a matrix."""
    return {run["name"]: _one_heat(run, tables) for run in runs_of(tables)}


def _one_heat(run: dict[str, Any], tables: Mapping[str, pa.Table]) -> dict[str, Any]:
    rows = _rows(tables, "timeline", run["name"])
    if not rows:
        return {"nodes": [], "of": 0, "seconds": [], "rates": [], "unit": ""}
    carries_bytes = any(one["sent_bytes"] or one["received_bytes"] for one in rows)
    begin, end = min(one["at"] for one in rows), max(one["at"] + one["step"] for one in rows)
    width = max(-(-(end - begin) // HEAT_STEPS), rows[0]["step"])
    cells: dict[str, Counter[int]] = defaultdict(Counter)
    zones: dict[str, str] = {}
    for one in rows:
        load = (
            one["sent_bytes"] + one["received_bytes"]
            if carries_bytes
            else one["published"] + one["delivered"]
        )
        cells[one["node"]][(one["at"] - begin) // width] += load
        zones[one["node"]] = one["zone"] or ""
    busiest = sorted(cells, key=lambda node: -cells[node].total())[:HEAT_NODES]
    names = sorted(busiest, key=lambda node: (zones[node], node))
    steps = range(-(-(end - begin) // width))
    return {
        "nodes": [[name, zones[name]] for name in names],
        "of": len(cells),
        "seconds": [(begin + width * place - run["begin"]) / 1e6 for place in steps],
        "rates": [[cells[name][place] / (width / 1e6) for place in steps] for name in names],
        "unit": "B/s" if carries_bytes else "messages/s",
    }


def _rows(tables: Mapping[str, pa.Table], name: str, run: str) -> list[dict[str, Any]]:
    if name not in tables:
        return []
    return [one for one in tables[name].to_pylist() if one["run"] == run]
