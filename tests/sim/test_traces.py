"""Traces of simulated runs: they change nothing, and they tell what happened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nodes.scenarios.recording import Recording
from nodes.scenarios.running import run_scenario
from overlay.sim import Partition
from overlay.sim.tracing import SimTraces
from overlay.tracing import Level
from tests.sim.world import World
from tests.unit.traces.rows import read_folder

SCENARIOS = [
    *("echo-loss", "membership-churn", "routing-crash", "zones-delegate-crash", "time-start"),
    *("topics-gateway-crash", "topics-replay", "discovery-star", "beacon-start"),
    *("time-clock-jumps", "membership-clock-jumps"),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recording_changes_nothing(scenario: str, tmp_path: Path) -> None:
    recorded = run_scenario(scenario, 3, traces=Recording(tmp_path))
    assert recorded.trace_hash == run_scenario(scenario, 3).trace_hash
    rows = read_folder(tmp_path)
    assert len(rows) == recorded.rows > 0
    assert [row["row"] for row in rows] == list(range(1, len(rows) + 1))


def test_the_same_run_leaves_the_same_file(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "two", "two"):  # the second time it replaces itself
        run_scenario("membership-churn", 3, traces=Recording(tmp_path / name))
        (path,) = (tmp_path / name).glob("run=*/hour=*/*.parquet")
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] == contents[2]


def of_kind(rows: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] in kinds]


def test_every_message_that_left_was_published_and_is_delivered_in_order(tmp_path: Path) -> None:
    run_scenario("topics-gateway-crash", 5, traces=Recording(tmp_path, Level.DELIVERY))
    rows = read_folder(tmp_path)
    published = Counter[tuple[str, int]]()
    for row in of_kind(rows, "published"):
        flow = (row["origin"], row["stream"])
        assert row["first"] == published[flow] + 1  # no range is told twice, none is left out
        published[flow] += row["count"]
    expected: dict[tuple[str, int, str, int], int] = {}
    for row in of_kind(rows, "stream-began", "delivered", "gap"):
        key = (row["node"], row["life"], row["origin"], row["stream"])
        if row["kind"] == "stream-began":
            expected[key] = row["first"]
        else:
            assert row["first"] == expected[key]
            expected[key] += row["count"]
    delivered = of_kind(rows, "delivered")
    assert delivered
    assert all(0 <= row["duration"] < 60e6 for row in delivered)
    assert {row["zone"] for row in delivered} > {None} or len({r["zone"] for r in delivered}) > 1


def test_what_is_sent_is_received_or_lost(tmp_path: Path) -> None:
    run_scenario("routing-basic", 1, traces=Recording(tmp_path))
    rows = read_folder(tmp_path)
    sent, received = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in of_kind(rows, "sent"):
        sent[row["node"], row["peer"], row["protocol"], row["message"]] += row["count"]
    for row in of_kind(rows, "received"):
        received[row["peer"], row["node"], row["protocol"], row["message"]] += row["count"]
    assert received
    assert all(sent[link] >= count for link, count in received.items())


def test_broadcast_trees_can_be_rebuilt(tmp_path: Path) -> None:
    run_scenario("routing-basic", 2, traces=Recording(tmp_path))
    rows = read_folder(tmp_path)
    arrived = of_kind(rows, "broadcast-arrived")
    assert arrived
    reached = {(row["origin"], row["stream"], row["node"]): row["hops"] for row in arrived}
    for row in arrived:
        if row["hops"] > 1:
            parent = (row["origin"], row["stream"], row["peer"])
            assert reached[parent] == row["hops"] - 1


def test_views_with_one_digest_are_equal(tmp_path: Path) -> None:
    run_scenario("membership-churn", 4, traces=Recording(tmp_path))
    rows = read_folder(tmp_path)
    views: dict[tuple[str, int], dict[str, None]] = {}
    seen: dict[str, tuple[str, ...]] = {}
    for row in rows:
        view = views.setdefault((row["node"], row["life"]), {row["node"]: None})
        if row["kind"] == "member-joined":
            view[row["peer"]] = None
        elif row["kind"] == "member-left" or (
            row["kind"] == "member-failed" and row["detail"] != "restarted"
        ):
            view.pop(row["peer"], None)
        elif row["kind"] == "view-changed":
            assert row["count"] == len(view)
            assert seen.setdefault(row["key"], tuple(sorted(view))) == tuple(sorted(view))
    assert len(seen) > 1


def test_crashes_and_faults_are_told(tmp_path: Path) -> None:
    sim = World()
    traces = sim.traces = SimTraces(sim, tmp_path, run="lab", level=Level.DELIVERY)
    for name in ("a", "b"):
        sim.add_node(name, lambda _host: None)
    handle = sim.faults.add(Partition([("a",), ("b",)]))
    sim.run_for(1.0)
    sim.faults.remove(handle)
    sim.crash("a")
    sim.restart("a")
    sim.stop("b")
    traces.close()
    told = [(row["kind"], row["node"], row["life"], row["time"]) for row in read_folder(tmp_path)]
    assert told == [
        ("level-set", None, 0, 0),
        ("started", "a", 1, 0),
        ("started", "b", 1, 0),
        ("fault-began", None, 0, 0),
        ("fault-ended", None, 0, 1_000_000),
        ("crashed", "a", 1, 1_000_000),
        ("started", "a", 2, 1_000_000),
        ("stopped", "b", 1, 1_000_000),
    ]
