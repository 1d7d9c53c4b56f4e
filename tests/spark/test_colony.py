"""The job about colonies, on traces of Figure 1 in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodes.scenarios.recording import Recording
from nodes.scenarios.running import run_scenario
from overlay.traces import open_run
from overlay.tracing import Level


def test_figure_1_in_the_traces(spark: Any, tmp_path: Path) -> None:
    """C1 asks for two services: P2 and P1 and P3 see the request, C2 and C3 serve it."""
    played = run_scenario("colony-figure-1", 1, traces=Recording(tmp_path, Level.MESSAGES))
    assert played.passed, played.failure
    with open_run(tmp_path, spark=spark) as run:
        (summary,) = (row.asDict() for row in run.table("colony").collect())
        load = {row["node"]: row["load"] for row in run.table("colony_load").collect()}
    assert (summary["requests"], summary["wants"], summary["served"]) == (1, 2, 100.0)
    assert (summary["servants"], summary["hops"], summary["brokers"]) == (2, 2.0, 3.0)
    assert summary["timed_out"] == 0
    assert load == {"P1": 100.0, "P2": 100.0, "P3": 100.0}
