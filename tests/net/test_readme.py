"""The README is true: its examples run as printed, in order, each section from the start."""

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

import pytest

from tests.net.beacons import own_group
from tests.net.processes import DEADLINE, OVERLAY, environment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
PORT = "7400"  # in the README; a test takes a free one
LOOKING = ("brokers", "discover", "find", "members", "zones")  # what they look at may take a moment
ELSEWHERE = ("make", "source", "python -m bench", "overlay --install-completion", "overlay analyze")
"""Commands that other tests run, or that change the user's shell."""


class Section(NamedTuple):
    """A heading and its fenced blocks: language and text."""

    title: str
    blocks: list[tuple[str, str]]


def sections() -> list[Section]:
    parts = re.split(r"^## ", README, flags=re.MULTILINE)
    return [Section(part.partition("\n")[0], FENCE.findall(part)) for part in parts]


def lines(section: Section) -> list[str]:
    """The shell commands, without their comments."""
    text = "".join(block for language, block in section.blocks if language == "sh")
    return [line.partition("  #")[0].strip() for line in text.splitlines()]


SHELL = [one for one in sections() if any(line.startswith("overlay") for line in lines(one))]


def test_the_first_screen_has_the_two_commands() -> None:
    first = "\n".join(README.splitlines()[:15])
    assert "\nmake demo " in first
    assert "\nmake test " in first


@pytest.mark.parametrize("section", SHELL, ids=lambda section: section.title)
def test_shell_examples_run(
    section: Section, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runtime = tmp_path_factory.mktemp("r")
    for language, block in section.blocks:
        if language == "toml":
            (tmp_path / block.splitlines()[0].removeprefix("# ")).write_text(block)
    (tmp_path / "protocols").mkdir()  # for new-protocol: what it knows a clone by
    shutil.copy(ROOT / "protocols" / "tags.toml", tmp_path / "protocols")
    beacons = " ".join(own_group())  # so that peers find those of their own section
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with ExitStack() as peers:
        for line in lines(section):
            if line.startswith(ELSEWHERE):
                continue
            name, *words = shlex.split(line.replace(PORT, port))
            assert name == "overlay", f"nobody tests {line!r}"
            process = start(words, tmp_path, runtime, beacons)
            peers.callback(process.communicate, timeout=DEADLINE)
            peers.callback(process.kill)
            if words[0] == "sub":  # it goes on beside what follows, until it has its messages
                peers.callback(_check_done, process, line)
            elif words[0] in ("peer", "broker", "bdn", "collector"):
                assert process.stdout is not None
                assert process.stdout.readline().startswith("tcp://127.0.0.1:"), line
            else:
                _, errors = process.communicate(timeout=DEADLINE)
                patience = time.monotonic() + DEADLINE
                while (
                    process.returncode == 1 and words[0] in LOOKING and time.monotonic() < patience
                ):
                    process = start(words, tmp_path, runtime, beacons)  # who reads types slower
                    _, errors = process.communicate(timeout=DEADLINE)
                assert (process.returncode, errors) == (0, ""), line


def start(words: list[str], folder: Path, runtime: Path, beacons: str) -> subprocess.Popen[str]:
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


def test_make_examples_are_targets() -> None:
    wanted = [line for one in sections() for line in lines(one) if line.startswith("make")]
    assert len(wanted) >= 6
    for line in wanted:
        subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, check=True, timeout=DEADLINE)


PYTHON = [block for language, block in FENCE.findall(README) if language == "python"]
PRINTED = (
    r"1 sensors/7/temperature 21\.5\n2 [a-z0-9/]+ 21\.6\n3 [a-z0-9/]+ 21\.7\n",
    r"\{'celsius': 21\.5\}\n",
    r"blue\nTrue\nFalse\n\{'r': 255\}\n",
    r"b1: the lowest round trip\n",
    r"roof \{'room': 'attic', 'celsius': 34\.5\}\n",
    r"roof \{'room': 'attic', 'celsius': 34\.5\}\n",  # kept at b2
    r"ada/box \{'ram': 48\}\n\[\{'ram': 40\}\] True\n",
    r"0 bob\n\{\} True\n",
    r"bob answered after \d+\.\d\d ms\n",
    r"AttributesChanged\(zone='lab', member='ada', keys=\('gpu',\)\)\n\[.*\{'gpu': 4\}.*\]\n",
)


@pytest.mark.parametrize(("program", "printed"), [*zip(PYTHON, PRINTED, strict=True)])
def test_python_examples_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, program: str, printed: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path_factory.mktemp("r")),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert re.fullmatch(printed, done.stdout), done.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).is_file(), target
