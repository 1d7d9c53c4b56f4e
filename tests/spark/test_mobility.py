"""The job about moving clients, on a small city in the simulator, beside what its world counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.mobility_paper import settings
from bench.mobility_workload import Algorithm, Handover, Outcome, Workload
from bench.mobility_world import City
from overlay.sim.tracing import SimTraces
from overlay.traces import open_run
from overlay.tracing import Level


def recorded(folder: Path, algorithm: Algorithm, handover: Handover) -> Outcome:
    load = Workload(
        algorithm=algorithm,
        handover=handover,
        publishers=4,
        subscribers=12,
        speeds=(100.0,),
        warm_up=0.0,
        duration=40.0,
    )
    city = City(settings(quick=True), load)
    city.sim.traces = SimTraces(city.sim, folder, run=algorithm, level=Level.DELIVERY)
    found = city.play()
    city.sim.traces.close()
    return found


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Outcome]]:
    folder = tmp_path_factory.mktemp("moves")
    return folder, {
        "standard": recorded(folder, "standard", "best-effort"),
        "delayed": recorded(folder, "delayed", "lossless"),
    }


def test_moves_and_losses_are_those_of_the_world(
    spark: Any, played: tuple[Path, dict[str, Outcome]]
) -> None:
    folder, outcomes = played
    with open_run(folder, spark=spark) as run:
        summary = {row["run"]: row.asDict() for row in run.table("mobility").collect()}
        each = [row.asDict() for row in run.table("mobility_moves").collect()]
    assert set(summary) == set(outcomes)
    for name, found in outcomes.items():
        row = summary[name]
        assert (row["algorithm"], row["moves"], row["clients"]) == (name, found.moves, 4)
        assert row["away"] == pytest.approx(3000)
        assert (row["expected"], row["delivered"]) == (sum(found.expected), sum(found.delivered))
        assert row["lost"] == row["expected"] - row["delivered"]
    assert summary["standard"]["lost"] > 0, "nobody waits for the tree"
    assert summary["standard"]["rebuilt"] is None, "and nobody asks for it"
    assert summary["delayed"]["lost"] == summary["delayed"]["incomplete"] == 0
    assert 0 < summary["delayed"]["rebuilt"] <= summary["delayed"]["p99"] < 5000
    first = [row for row in each if row["previous"] is None]
    assert len(first) == 8, "each client connects once without having left"
    assert len(each) == sum(found.moves for found in outcomes.values()) + 8
