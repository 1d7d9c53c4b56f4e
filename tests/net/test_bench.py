"""Every benchmark runs, and speaks the one form; what it finds means nothing in so short a run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.membership_peers import add_peers
from bench.peers.contender import Told
from bench.peers.serf import SerfPeers
from bench.report import Options, Report
from nodes.spawning import ROOT

NAMES = [
    "interest-links",
    "simulator",
    "transport",
    # Half a minute each, on a shared machine two: their sections have tests of their own.
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("colony", "discovery", "lab", "membership", "node", "resources", "topics")
    ),
]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=230,
    )


@pytest.mark.timeout(240)  # ten seconds alone; a shared machine may starve it
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


def test_a_peer_that_is_missing_is_skipped_and_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # where nothing is
    report = Report("membership", {})
    add_peers(report, Options(peers=("serf",)), tmp_path, [5], 1)
    assert report.notes == ["serf is skipped, since it is not installed: apt-get install serf"]
    assert report.results == {}


def test_the_log_of_serf_is_read() -> None:
    serf = SerfPeers()
    assert serf.told(b"==> Serf agent running!", 1.5) == Told(1.5)
    came = b"    2026/11/18 03:28:00 [INFO] serf: EventMemberJoin: peer001 127.0.0.1"
    assert serf.told(came, 2.5) == Told(2.5, "member-joined", "peer001")
    failed = b"    2026/11/18 03:28:09 [INFO] serf: EventMemberFailed: peer001 127.0.0.1"
    assert serf.told(failed, 9.5) == Told(9.5, "member-failed", "peer001")
    assert serf.told(b"    2026/11/18 03:28:00 [INFO] agent: Serf agent starting", 1.0) is None


def test_wrong_peers_say_which_there_are() -> None:
    done = bench("membership", "--peers", "zyre")
    assert done.returncode == 2
    assert "--peers zyre: membership has pyre, zenoh, serf" in done.stderr


def test_a_wrong_section_says_which_there_are() -> None:
    done = bench("membership", "--only", "reel")
    assert done.returncode == 2
    assert "--only reel: membership has cost, detection, mistakes," in done.stderr
    done = bench("transport", "--only", "real")
    assert done.returncode == 2
    assert "--only real: transport has none" in done.stderr
