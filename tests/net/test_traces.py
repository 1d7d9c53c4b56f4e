"""Traces of real peers: switched while they run, readable after a kill, harmless on a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from overlay.traces.spool import recover
from tests.net.processes import DEADLINE, overlay, peer
from tests.unit.traces.rows import read_folder

QUICK = ("--set", "traces.flush_every=0.1", "--set", "traces.rotate_every=1")


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r")


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Wait for it, with a generous deadline."""
    end = time.monotonic() + DEADLINE
    pause = Event()
    while not (found := condition()):
        assert time.monotonic() < end, what
        pause.wait(0.05)
    return found


def trace(runtime: Path, *words: str) -> dict[str, Any]:
    """What `overlay trace` tells of the one node."""
    done = overlay(runtime, "trace", *words, "--json")
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["nodes"]
    assert isinstance(told, dict)
    return told


def test_the_level_changes_while_a_node_runs(runtime: Path, tmp_path: Path) -> None:
    into = ("--trace-dir", str(tmp_path), *QUICK)
    with peer(runtime, "--insecure", "--name", "ada", *into) as ada:
        assert trace(runtime, "status")["level"] == "off"
        assert not list(tmp_path.iterdir())
        assert trace(runtime, "on")["level"] == "delivery"
        assert trace(runtime, "level", "all", "--sample", "3")["sample"] == 3
        until("rows are written", lambda: trace(runtime, "status")["rows"] > 0)
        assert trace(runtime, "off")["level"] == "off"
        until("the file is finished", lambda: trace(runtime, "status")["files"])
        refused = overlay(runtime, "trace", "level", "everything")
        assert refused.returncode == 1
        assert "one of off, delivery, messages, all" in refused.stderr
        ada.signal(signal.SIGTERM)
        assert ada.ended()[0] == 0
    levels = [row["detail"] for row in read_folder(tmp_path) if row["kind"] == "level-set"]
    assert levels == ["delivery", "all"]


def test_a_killed_peer_leaves_what_it_had_written(runtime: Path, tmp_path: Path) -> None:
    into = ("--trace", "all", "--trace-dir", str(tmp_path), "--set", "traces.flush_every=0.1")
    with peer(runtime, "--insecure", "--name", "ada", *into) as ada:
        with peer(runtime, "--insecure", "--name", "bob", "--seed", ada.address) as bob:
            told = until(
                "it is under way",
                lambda: (now := trace(runtime, "status", "--node", "ada"))["rows"] > 20 and now,
            )
            ada.signal(signal.SIGKILL)
            ada.ended()
            assert bob.process.poll() is None
    assert not list(tmp_path.glob("run=*"))
    recover(tmp_path)
    rows = read_folder(tmp_path)
    assert len(rows) >= told["rows"]
    assert [row["row"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["kind"] for row in rows} >= {"started", "member-joined", "sent"}


def test_the_next_life_finishes_the_file_of_a_killed_one(runtime: Path, tmp_path: Path) -> None:
    into = ("--trace", "delivery", "--trace-dir", str(tmp_path), "--set", "traces.flush_every=0.1")
    with peer(runtime, "--insecure", "--name", "ada", *into) as ada:
        until("rows are written", lambda: trace(runtime, "status")["rows"])
        ada.signal(signal.SIGKILL)
        ada.ended()
    with peer(runtime, "--insecure", "--name", "ada", *into) as ada:
        until("the file is there", lambda: list(tmp_path.glob("run=*/hour=*/*.parquet")))
        ada.signal(signal.SIGTERM)
        assert ada.ended()[0] == 0
    lives = [row["life"] for row in read_folder(tmp_path) if row["kind"] == "started"]
    assert len(lives) == 2
    assert lives == sorted(set(lives))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this system does not let us mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_ends_tracing_and_the_node_goes_on(runtime: Path, small_disk: Path) -> None:
    into = ("--trace", "all", "--trace-dir", str(small_disk), *QUICK)
    with peer(runtime, "--insecure", "--name", "ada", *into, "--set", "traces.least_free=0") as ada:
        until("rows are written", lambda: trace(runtime, "status")["rows"])
        (small_disk / "ballast").write_bytes(b"x" * _left(small_disk))
        told = until("tracing ends", lambda: (now := trace(runtime, "status"))["failure"] and now)
        assert told["level"] == "off"
        assert "No space left" in told["failure"]
        with peer(runtime, "--insecure", "--name", "bob", "--seed", ada.address):
            members = ("members", "--node", "ada", "--json")
            until("bob joins", lambda: "bob" in overlay(runtime, *members).stdout)
        (small_disk / "ballast").unlink()
        assert trace(runtime, "on")["level"] == "all"
        until("it records again", lambda: trace(runtime, "status")["rows"])
        ada.signal(signal.SIGTERM)
        code, errors = ada.ended()
        assert code == 0
        assert "Traceback" not in errors
    assert read_folder(small_disk)


def _left(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize
