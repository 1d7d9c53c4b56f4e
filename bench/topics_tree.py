"""What a publisher with 199 subscribers pays: sending to each, or a pruned broadcast."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from statistics import median
from typing import Any

from bench.progress import Progress
from bench.report import Options, Report

MEMBERS = 199  # and the publisher
QUICK_MEMBERS = 19
BYTES = 100
RATE = 50  # messages/s, each a chunk by itself
SECONDS = 6
MOST_REPEATS = 2  # each takes most of a minute, and a share of CPU time hardly varies
SHARE_BAR = 1 / 5

ROUTES = {
    "direct": ["topics.tree_from=100000"],
    "pruned broadcast": ["topics.tree_from=3", "topics.tree_until=2"],
}


def tree(report: Report, options: Options) -> None:
    """CPU time of the publisher alone, without what it takes when it is idle."""
    repeats = min(options.repeats, MOST_REPEATS)
    progress = Progress("topics tree", repeats * 2 * len(ROUTES))
    for mode in ("nack",) if options.quick else ("nack", "ack"):
        found: dict[str, list[float]] = {route: [] for route in ROUTES}
        for _ in range(repeats):
            for route, sets in ROUTES.items():
                progress.step(f"{mode}, {route}")
                found[route].append(_measure(mode, sets, options))
        members = (QUICK_MEMBERS if options.quick else MEMBERS) + 1
        for route, values in found.items():
            report.add(f"{members} members, {mode}, publisher's CPU, {route}", "µs/message", values)
        share = median(found["pruned broadcast"]) / median(found["direct"])
        what = f"{members} members, {mode}: publisher's CPU, pruned broadcast against direct"
        report.require(what, share, "×", "at most", SHARE_BAR)


def _measure(mode: str, sets: list[str], options: Options) -> float:
    members = QUICK_MEMBERS if options.quick else MEMBERS
    seconds = 1 if options.quick else SECONDS
    common = {
        "mode": mode,
        "sets": sets,
        "members": members,
        "size": BYTES,
        "rate": RATE,
        "count": RATE * seconds,
        "seconds": seconds + 0.5,
        "settling": 1 if options.quick else 10,
        "within": 120,
    }
    crowd = _start({**common, "role": "crowd"})
    parts = [crowd]
    try:
        parts.append(publisher := _start({**common, "role": "publisher", **_line(crowd)}))
        cpu = _line(publisher)
        got = _line(crowd)
        if got["least"] < common["count"]:
            raise RuntimeError(f"{mode}: a member got {got['least']} of {common['count']} messages")
        return float(cpu["busy"] - cpu["idle"]) / RATE / seconds * 1e6
    finally:
        for part in parts:
            part.kill()
            part.communicate()


def _start(options: Mapping[str, Any]) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "bench.topics_crowd", json.dumps(options)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _line(part: subprocess.Popen[str]) -> dict[str, Any]:
    assert part.stdout is not None
    line = part.stdout.readline()
    if not line:
        raise RuntimeError("a part of the crowd died or took too long: see above")
    found: dict[str, Any] = json.loads(line)
    return found
