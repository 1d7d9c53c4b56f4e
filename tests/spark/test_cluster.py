"""The same command on a standalone cluster and behind Spark Connect gives the same tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import trio

from overlay.traces.synthetic import Plan, generate
from tests.net.processes import OVERLAY
from tests.spark.cluster import Cluster, cluster, connect_server
from tests.spark.conftest import Analysed

DEADLINE = 220.0


def command(traces: Path, out: Path, master: str, jobs: str) -> list[str]:
    where = ["--out", str(out), "--master", master, "--memory", "1g"]
    return [*OVERLAY, "analyze", str(traces), *where, "--jobs", jobs, "--json"]


def table(out: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(out / "tables" / f"{name}.parquet").to_pylist()
    return rows


def lost(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {f"{row['node']} {row['origin']} {row['topic']}": row["lost"] for row in rows}


@pytest.mark.timeout(240)
def test_on_a_cluster_with_two_workers(analysed: Analysed, tmp_path: Path) -> None:
    with cluster(tmp_path) as running:
        words = command(analysed.traces, tmp_path / "out", running.address, "delivery")
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == analysed.answers.rows
    assert table(tmp_path / "out", "delivery") == analysed.rows("delivery")
    executors = [*tmp_path.glob("work*/app-*/*/stderr")]
    assert len({path.parts[-4] for path in executors}) == 2, "both workers had executors"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_is_killed_in_mid_job_costs_nothing(tmp_path: Path) -> None:
    answers = generate(tmp_path / "traces", Plan(rows=400_000))
    with cluster(tmp_path) as running:
        words = command(tmp_path / "traces", tmp_path / "out", running.address, "delivery,traffic")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as analysis:
            trio.run(_kill_when_it_works, running, tmp_path, analysis)
            told, _ = analysis.communicate(timeout=DEADLINE)
    assert analysis.returncode == 0
    assert json.loads(told)["rows"] == answers.rows
    assert lost(table(tmp_path / "out", "delivery")) == {
        name: flow.lost for name, flow in answers.flows.items()
    }


async def _kill_when_it_works(
    running: Cluster, folder: Path, analysis: subprocess.Popen[str]
) -> None:
    """Once a first digest is there, and before the last one is."""
    digests = folder / "out" / ".state" / "digests"
    with trio.fail_after(DEADLINE):
        while not (digests / "nodes" / "batch=0" / "_SUCCESS").exists():
            assert analysis.poll() is None
            await trio.sleep(0.05)
    assert not (digests / "timeline" / "batch=0" / "_SUCCESS").exists()
    running.workers[0].kill()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_behind_spark_connect(analysed: Analysed, tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        words = command(analysed.traces, tmp_path / "out", address, "latency,delivery")
        done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    assert table(tmp_path / "out", "delivery") == analysed.rows("delivery")
    assert table(tmp_path / "out", "latency") == analysed.rows("latency")
    assert sys.executable in words[0]
