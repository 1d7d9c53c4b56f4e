"""The commands of the first screen: what `make` offers, and how setup answers on an odd machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.scenarios.registry import find

ROOT = Path(__file__).parents[2]
TARGETS = [
    *("setup", "demo", "test", "check", "sim", "sim-long", "replay"),
    *("docs", "fuzz", "bench", "rewrite", "clean", "help"),
]


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # A `make test` above us must not hand its flags to the make that is under test.
    inherited = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        command,
        cwd=folder,
        env=inherited | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What setup reads of a clone, with no .venv yet."""
    (tmp_path / ".ci").mkdir()
    for name in ("Makefile", "pyproject.toml", ".ci/venv", ".ci/java"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_make_alone_shows_every_target() -> None:
    shown = run(ROOT, "make").stdout
    assert [target for target in TARGETS if f"make {target} " not in shown] == []


def test_ci_runs_what_people_run() -> None:
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == "make test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_test_lints_checks_types_simulates_and_tests() -> None:
    steps = run(ROOT, "make", "--dry-run", "test", "SEEDS_SHORT=7").stdout
    order = ["venv dev", "ruff check", "ruff format --check", "mypy", "--seeds 7", "not slow"]
    places = [steps.find(step) for step in order]
    assert -1 not in places
    assert places == sorted(places)


def test_setup_without_a_fit_python_says_what_to_install(clone: Path) -> None:
    result = run(clone, "make", "setup", "PYTHON=no-such-python")
    assert result.returncode == 2
    assert "no Python >= 3.11 with venv found (tried: no-such-python)" in result.stderr
    assert "apt-get install python3 python3-venv" in result.stderr
    assert not (clone / ".venv").exists()


def test_setup_leaves_a_venv_that_fits_alone(clone: Path) -> None:
    (clone / ".venv" / "bin").mkdir(parents=True)
    (clone / ".venv" / "bin" / "python").symlink_to(sys.executable)
    checksum = subprocess.check_output(["cksum"], input=(clone / "pyproject.toml").read_bytes())
    stamp = clone / ".venv" / ".fits-dev"
    stamp.write_text(f"{clone}\n{checksum.decode()}", encoding="utf-8")
    result = run(clone, "make", "setup")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("damage", ["moved", "no interpreter", "half-made"])
def test_setup_never_trusts_a_venv_that_does_not_fit(damage: str, clone: Path) -> None:
    (clone / ".venv" / "bin").mkdir(parents=True)
    python = sys.executable if damage == "moved" else "/no/such/python"
    (clone / ".venv" / "bin" / "python").symlink_to(python)
    if damage != "half-made":
        (clone / ".venv" / ".fits-dev").write_text("/elsewhere\n1 2\n", encoding="utf-8")
    # It would make the venv again, and stops only because this machine "has" no Python.
    result = run(clone, "make", "setup", "PYTHON=no-such-python")
    assert "no Python >= 3.11 with venv found" in result.stderr


@pytest.mark.parametrize("words", [[], ["SEED=7"], ["SCENARIO=echo-loss"]])
def test_replay_needs_a_seed_and_a_scenario_that_exists(words: list[str]) -> None:
    result = run(ROOT, "make", "replay", "--assume-old=setup", *words)
    assert result.returncode == 2
    usage = "usage: make replay SEED=7 SCENARIO=echo-loss"
    assert result.stderr.startswith(usage)
    assert find(usage.rpartition("=")[2]).name == "echo-loss"
