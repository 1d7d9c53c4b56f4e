"""Wheels and the environments made of them: one of each for every build, beside older ones."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from nodes.lab.onhost.facts import COMPLETE, digest
from nodes.lab.onhost.folder import Folder
from nodes.lab.onhost.trouble import Trouble

PIP_SECONDS = 900


def missing_wheels(folder: Folder, house: str, wheels: dict[str, str]) -> list[str]:
    """Which wheels (name: SHA-256) must still be sent; those of older builds are linked."""
    home = folder.houses / house
    home.mkdir(parents=True, exist_ok=True)
    older: dict[str, list[Path]] = {}
    for path in folder.houses.glob("*/*.whl"):
        older.setdefault(path.name, []).append(path)
    missing = []
    for name, sha in wheels.items():
        have = next((path for path in older.get(name, ()) if digest(path) == sha), None)
        if have is None:
            missing.append(name)
        elif have.parent != home:
            (home / name).unlink(missing_ok=True)
            os.link(have, home / name)
    return missing


def install(folder: Folder, house: str, requirement: str) -> None:
    """Make the environment of that build, if it is not here; no network is asked."""
    env = folder.envs / house
    if (env / COMPLETE).exists():
        return
    shutil.rmtree(env, ignore_errors=True)  # half made: interrupted, or the disk was full
    home = folder.houses / house
    pip = next(home.glob("pip-*.whl"), None)
    if pip is None:
        raise Trouble(f"no pip among the wheels in {home}", "run `overlay lab up --rebuild`")
    # Without ensurepip, which Debian keeps in a package of its own: pip runs out of its wheel.
    _run([sys.executable, "-m", "venv", "--without-pip", str(env)], env)
    python = str(env / "bin/python")
    words = ["install", "--quiet", "--no-index", "--no-cache-dir", "--disable-pip-version-check"]
    words += ["--no-compile", "--find-links", str(home)]
    _run([python, f"{pip}/pip", *words, requirement], env)
    # That it works is shown here; and what peers import is compiled once, not by each of them.
    _run([python, "-c", "import nodes.peer_process, nodes.cli.main"], env)
    (env / COMPLETE).touch()


def _run(words: list[str], env: Path) -> None:
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "PYTHON"))
    }
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=clean,
        timeout=PIP_SECONDS,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(env, ignore_errors=True)
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        if "No space left" in done.stdout:
            raise Trouble(f"the disk is full at {env}", "free some space there")
        raise Trouble(
            f"no environment: {lines[-1][:300] if lines else f'exit code {done.returncode}'}",
            f"run `{words[0]} -m venv` there by hand, or set python = in its [[host]]",
        )


def prune(folder: Folder) -> dict[str, Any]:
    """Remove builds that no peer is started from."""
    used = {spec["env"] for spec in folder.specs().values()}
    gone = []
    for place in (folder.envs, folder.houses):
        for path in sorted(place.iterdir()) if place.is_dir() else ():
            if path.name not in used:
                shutil.rmtree(path, ignore_errors=True)
                gone.append(path.name)
    return {"removed": sorted(set(gone))}
