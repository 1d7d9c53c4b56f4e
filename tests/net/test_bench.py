"""Every benchmark runs, and speaks the one form; what it finds means nothing in so short a run."""

import json
import subprocess
import sys

import pytest

from nodes.spawning import ROOT

NAMES = ["membership", "node", "simulator", "transport"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_prints_one_object_with_all_repeats_and_bars(name: str) -> None:
    done = bench(name, "--json", "--quick", "--repeats", "1")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"bench", "machine", "results", "bars", "notes"}
    assert report["bench"] == name
    assert report["machine"]["cores"] >= 1
    for case in report["results"].values():
        assert set(case) == {"unit", "repeats", "median", "spread"}
        assert case["median"] >= 0
        assert case["repeats"]
    assert report["bars"]
    for bar in report["bars"]:
        assert set(bar) == {"name", "value", "unit", "bar", "direction", "holds"}
        reached = bar["value"] >= bar["bar"]
        if bar["direction"] == "at most":
            reached = bar["value"] <= bar["bar"]
        assert bar["holds"] is reached


def test_a_wrong_name_says_which_there_are() -> None:
    done = bench("transprot")
    assert done.returncode == 2
    assert "did you mean transport?" in done.stderr


def test_one_section_runs_alone() -> None:
    done = bench("membership", "--json", "--quick", "--repeats", "1", "--only", "detection")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)["results"]
    assert results
    assert all(name.startswith(("frozen: ", "killed: ")) for name in results)


def test_a_wrong_section_says_which_there_are() -> None:
    done = bench("membership", "--only", "reel")
    assert done.returncode == 2
    assert "membership has the sections cost, detection, mistakes," in done.stderr
    done = bench("transport", "--only", "real")
    assert done.returncode == 2
    assert "transport has no sections" in done.stderr
