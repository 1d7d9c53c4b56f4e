"""Examples in Markdown: taken out of their pages, and run as a reader would run them."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.net.beacons import own_group
from tests.net.processes import DEADLINE, OVERLAY, environment

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PORT = "7400"  # in the examples; a test takes a free one
LOOKING = ("brokers", "discover", "find", "members", "zones")  # what they look at may take a moment
NODES = ("peer", "broker", "bdn", "collector")  # they go on while what follows runs
ELSEWHERE = (
    *("make", "source", "python -m bench", "overlay --install-completion", "overlay analyze"),
    "overlay lab",  # tests/unit/test_lab_docs.py
)
"""Commands that other tests run, or that change the user's shell."""


class Section(NamedTuple):
    """A heading and its fenced blocks: language and text."""

    page: str
    title: str
    blocks: list[tuple[str, str]]


def sections(path: Path) -> list[Section]:
    """What a page has, heading by heading."""
    parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    page = path.relative_to(ROOT).as_posix()
    return [Section(page, part.partition("\n")[0], FENCE.findall(part)) for part in parts]


def shell_lines(section: Section) -> list[str]:
    """The shell commands, without their comments."""
    text = "".join(block for language, block in section.blocks if language == "sh")
    return [line.partition("  #")[0].strip() for line in text.splitlines()]


def has_shell(section: Section) -> bool:
    """Whether there is a command of ours to run."""
    return any(
        line.startswith("overlay") and not line.startswith(ELSEWHERE)
        for line in shell_lines(section)
    )


def run_shell(section: Section, folder: Path, runtime: Path) -> None:
    """Run a section's commands in order, from the start, as several terminals would."""
    for language, block in section.blocks:
        if language == "toml":
            (folder / block.splitlines()[0].removeprefix("# ")).write_text(block)
    (folder / "protocols").mkdir()  # for new-protocol: what it knows a clone by
    shutil.copy(ROOT / "protocols" / "tags.toml", folder / "protocols")
    beacons = " ".join(own_group())  # so that peers find those of their own section
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with ExitStack() as peers:
        for line in shell_lines(section):
            if line.startswith(ELSEWHERE):
                continue
            name, *words = shlex.split(line.replace(PORT, port))
            assert name == "overlay", f"nobody tests {line!r}"
            process = start(words, folder, runtime, beacons)
            peers.callback(process.communicate, timeout=DEADLINE)
            peers.callback(process.kill)
            if words[0] == "sub":  # it goes on beside what follows, until it has its messages
                peers.callback(_check_done, process, line)
            elif words[0] in NODES:
                assert process.stdout is not None
                assert process.stdout.readline().startswith("tcp://127.0.0.1:"), line
            else:
                _, errors = process.communicate(timeout=DEADLINE)
                patience = time.monotonic() + DEADLINE
                while (
                    process.returncode == 1 and words[0] in LOOKING and time.monotonic() < patience
                ):
                    process = start(words, folder, runtime, beacons)  # who reads types slower
                    _, errors = process.communicate(timeout=DEADLINE)
                assert (process.returncode, errors) == (0, ""), line


def start(words: list[str], folder: Path, runtime: Path, beacons: str) -> subprocess.Popen[str]:
    """Start one command."""
    return subprocess.Popen(
        [*OVERLAY, *words],
        cwd=folder,
        env=environment(runtime) | {"OVERLAY_SET": beacons},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _check_done(process: subprocess.Popen[str], line: str) -> None:
    _, errors = process.communicate(timeout=DEADLINE)
    assert (process.returncode, errors) == (0, ""), line


def run_python(program: str, folder: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(runtime),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def check_make(lines: list[str]) -> None:
    """Targets of make are there; other tests run what they do."""
    for line in lines:
        subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, check=True, timeout=DEADLINE)
