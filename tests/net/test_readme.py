"""The README is true: its examples run as printed, in order, each section from the start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples import (
    FENCE,
    ROOT,
    Section,
    check_make,
    has_shell,
    run_python,
    run_shell,
    sections,
    shell_lines,
)

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


def test_the_first_screen_has_the_two_commands() -> None:
    first = "\n".join(README.splitlines()[:15])
    assert "\nmake demo " in first
    assert "\nmake test " in first


@pytest.mark.parametrize(
    "section", [one for one in sections(PAGE) if has_shell(one)], ids=lambda one: one.title
)
def test_shell_examples_run(
    section: Section, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_shell(section, tmp_path, tmp_path_factory.mktemp("r"))


def test_make_examples_are_targets() -> None:
    lines = [line for one in sections(PAGE) for line in shell_lines(one)]
    wanted = [line for line in lines if line.startswith("make")]
    assert len(wanted) >= 4
    check_make(wanted)


PYTHON = [block for language, block in FENCE.findall(README) if language == "python"]
PRINTED = (
    r"1 sensors/7/temperature 21\.5\n2 [a-z0-9/]+ 21\.6\n3 [a-z0-9/]+ 21\.7\n",
    r"\{'celsius': 21\.5\}\n",
    r"1 in the hall\n2 in the yard\n3 back, at another address\n",
    r"roof \{'room': 'attic', 'celsius': 34\.5\}\n",
    r"bob answered after \d+\.\d\d ms\n",
    r"AttributesChanged\(zone='lab', member='ada', keys=\('gpu',\)\)\n\[.*\{'gpu': 4\}.*\]\n",
)


@pytest.mark.parametrize(("program", "printed"), [*zip(PYTHON, PRINTED, strict=True)])
def test_python_examples_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, program: str, printed: str
) -> None:
    done = run_python(program, tmp_path, tmp_path_factory.mktemp("r"))
    assert re.fullmatch(printed, done.stdout), done.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target.partition("#")[0]).is_file(), target
