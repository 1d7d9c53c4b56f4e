"""SpiderCast: its worked examples, and the degree that links between subscribers take."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.interest_links import OURS, RANDOM, RINGS, SIMILAR, measure
from bench.papers.published import Finding, Paper
from overlay.ids import KeySpace, Ring

QUICK_NODES, QUICK_TOPICS, QUICK_EACH = 60, 40, 8


def evaluate(paper: Paper, folder: Path, *, quick: bool) -> list[Finding]:
    """Examples are computed by the code that peers run; nothing here is measured by time."""
    return [
        paper.found("key-200", _stored_at(paper.settings["ring"])),
        *_slices(paper),
        *_degrees(paper, quick=quick),
    ]


def _stored_at(ring: dict[str, Any]) -> float:
    places = {str(vid): vid for vid in ring["nodes"]}
    names = Ring(places, space=KeySpace(ring["bits"]), place=places.__getitem__)
    return float(places[names.responsible_for(ring["key"])])


def _slices(paper: Paper) -> list[Finding]:
    settings = paper.settings["slices"]
    if find_spec("protocols.dht") is None:
        note = "needs the distributed table"
        return [paper.found(f"slices-{zone}", None, note) for zone in settings["zones"]]
    slices_for = import_module("protocols.dht.slices").slices_for
    return [
        paper.found(f"slices-{zone}", float(slices_for(nodes, settings["size"])))
        for zone, nodes in settings["zones"].items()
    ]


def _degrees(paper: Paper, *, quick: bool) -> list[Finding]:
    given = paper.settings["degree"]
    nodes, topics, each = (
        (QUICK_NODES, QUICK_TOPICS, QUICK_EACH)
        if quick
        else (given["nodes"], given["topics"], given["subscriptions"])
    )
    degree = {
        overlay: measure(overlay, nodes, topics, each, given["known"], seed=0).degree
        for overlay in (OURS, RINGS, RANDOM, SIMILAR)
    }
    note = f"{nodes:,} nodes; the claim is for 10,000 (python -m bench interest-links --only large)"
    return [
        paper.found(f"below-{name}", 100 * (1 - degree[OURS] / degree[other]), note)
        for name, other in (("rings", RINGS), ("random", RANDOM), ("similar", SIMILAR))
    ]
