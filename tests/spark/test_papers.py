"""The papers' evaluations: claims are judged as they say, and one page has all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.paper_figures import PAPERS
from bench.papers import published, spidercast
from bench.papers.published import Claim, Finding
from nodes.spawning import ROOT


def claim(**bounds: Any) -> Claim:
    return Claim("x", "figure 1", "a thing", "%", **bounds)


@pytest.mark.parametrize(
    ("one", "ours", "verdict", "told"),
    [
        (claim(value=83.0, within=10.0), 73.0, "agrees", "83 %"),
        (claim(value=83.0, within=10.0), 72.9, "differs", "83 %"),
        (claim(least=45.0), 45.0, "agrees", "at least 45 %"),
        (claim(least=45.0), 44.9, "differs", "at least 45 %"),
        (claim(most=1.0), 1.1, "differs", "at most 1 %"),
        (claim(most=1.0), None, "not tried", "at most 1 %"),
    ],
)
def test_a_claim_is_judged_as_it_says(
    one: Claim, ours: float | None, verdict: str, told: str
) -> None:
    assert Finding(one, ours).verdict == verdict
    assert one.told == told


def test_every_paper_has_its_file_and_spidercast_its_example(tmp_path: Path) -> None:
    for name in PAPERS:
        assert published.read(name).claims
    found = spidercast.evaluate(published.read("spidercast"), tmp_path, quick=True)
    assert found[0].ours == 250
    assert {one.claim.name for one in found} == set(published.read("spidercast").claims)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_page_has_all_papers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "papers", "--quick", "--json"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=380,
    )
    assert done.returncode == 0, done.stderr
    bars = json.loads(done.stdout)["bars"]
    assert {bar["name"].partition(":")[0] for bar in bars} == set(PAPERS)
    page = (tmp_path / "runs" / "papers" / "index.html").read_text(encoding="utf-8")
    assert all(title in page for title in PAPERS.values())
