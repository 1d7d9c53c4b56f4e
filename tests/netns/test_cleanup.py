"""Nothing of a lab outlives it, whatever became of the process that made it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.netns.commands import run
from tests.netns.lab import Lab
from tests.netns.naming import LabName, labs, parse, start_of
from tests.netns.sweep import sweep
from tests.netns.waiting import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("rights")

BUILD = """
import os, signal
from tests.netns.lab import Lab
lab = Lab().__enter__()
a, b = lab.hosts("a", "b")
lab.delay(1)
print(lab.name, a.start(["sleep", "1000"]).pid, flush=True)
"""


def traces(lab: LabName) -> list[str]:
    """What the machine still shows of a lab."""
    shown = [run(["ip", "netns", "list"]), run(["ip", "link"]), run(["nft", "list", "ruleset"])]
    lines = [line for text in shown for line in text.splitlines() if str(lab) in line]
    return [*lines, *lab.namespaces(), *([str(lab.folder)] if lab.folder.exists() else [])]


def built_elsewhere(rest: str, ends_with: int) -> tuple[LabName, int]:
    """Build a lab in a process of its own that then goes on with `rest`."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD + rest],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == ends_with, done.stderr
    name, pid = done.stdout.split()
    lab = parse(name)
    assert lab is not None
    return lab, int(pid)


def test_a_lab_leaves_nothing() -> None:
    with Lab() as lab:
        a, _ = lab.hosts("a", "b")
        lab.delay(1)
        lab.loss(10)
        sleeper = a.start(["sleep", "1000"])
        # One that the harness does not hold: it is found by its namespace.
        child = a.start(["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"])
        orphan = int(child.line(r"^(\d+)$")[1])
        assert len(lab.name.namespaces()) == 3
    assert traces(lab.name) == []
    assert not sleeper.is_running
    assert start_of(orphan) is None
    lab.close()  # harmless


def test_a_test_that_fails_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError):
        with Lab() as lab:
            lab.host("a")
            raise ZeroDivisionError
    assert traces(lab.name) == []


def test_a_lab_that_cannot_be_built_leaves_nothing() -> None:
    lab = Lab()
    lab.name.folder.mkdir()  # in its way
    with pytest.raises(FileExistsError), lab:
        raise AssertionError("it was built")
    assert traces(lab.name) == []


def test_a_lab_that_nobody_closed_ends_with_its_process() -> None:
    lab, sleeper = built_elsewhere("raise SystemExit(5)", 5)
    assert traces(lab) == []
    assert start_of(sleeper) is None


def test_the_lab_of_a_killed_process_is_swept() -> None:
    lab, sleeper = built_elsewhere("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)
    assert lab.is_orphan
    sweep()
    # Another worker may be sweeping the same lab, and be in the middle of it.
    until(lambda: not traces(lab), what="the orphan to be gone")
    assert start_of(sleeper) is None


def test_a_sweep_spares_the_living(lab: Lab) -> None:
    a, b = lab.hosts("a", "b")
    assert not lab.name.is_orphan
    assert lab.name in labs()
    sweep()
    assert a.reaches(b.address, tries=3)
