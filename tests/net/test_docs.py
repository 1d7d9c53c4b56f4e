"""The pages of the documentation are true: what they show is run, as in the README.

A `python` block is run, and the `text` block after it is what it prints (`…` stands for anything on
a line); `sh` blocks of a section are run in order; everything else is at least parsed.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from nodes.reference import commands
from nodes.reference.diagrams import draw
from tests.examples import (
    ROOT,
    Section,
    check_make,
    has_shell,
    run_python,
    run_shell,
    sections,
    shell_lines,
)

MADE = {"STATUS.md", "MESSAGES.md", "METRICS.md", "TRACES.md"}  # no page, or made from the code
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.name not in MADE)
ALONE = ("docs/lab.md",)  # it needs hosts; tests/unit/test_lab_docs.py holds it to the code
COMMANDS = re.findall(r"^## (overlay .+)$", commands.page(), re.MULTILINE)
SECTIONS = [section for page in PAGES for section in sections(page)]


class Program(NamedTuple):
    """A program of a page, and what it prints."""

    where: str
    text: str
    prints: str


def programs() -> Iterator[Program]:
    for section in SECTIONS:
        blocks = [*section.blocks, ("", "")]
        for (language, text), (after, printed) in pairwise(blocks):
            if language == "python":
                assert after == "text", f"{section.page}: what does this print?\n{text}"
                yield Program(f"{section.page}:{section.title}", text, printed)


@pytest.mark.parametrize(
    "section",
    [one for one in SECTIONS if has_shell(one) and one.page not in ALONE],
    ids=lambda one: f"{one.page}:{one.title}",
)
def test_shell_examples_run(
    section: Section, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_shell(section, tmp_path, tmp_path_factory.mktemp("r"))


@pytest.mark.parametrize("program", list(programs()), ids=lambda one: one.where)
def test_python_examples_run(
    program: Program, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    done = run_python(program.text, tmp_path, tmp_path_factory.mktemp("r"))
    wanted = ".*".join(re.escape(part) for part in program.prints.split("…"))
    assert re.fullmatch(wanted, done.stdout), done.stdout + done.stderr


def test_targets_of_make_are_there() -> None:
    lines = [line for one in SECTIONS for line in shell_lines(one)]
    check_make([*{line for line in lines if line.startswith("make")}])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_block_is_of_a_kind_that_is_tested(page: Path) -> None:
    for section in sections(page):
        for language, text in section.blocks:
            match language:
                case "sh" | "python" | "text":
                    pass  # run above; text is what programs print
                case "console":
                    for line in re.findall(r"^\$ (overlay \w[\w-]*)", text, re.MULTILINE):
                        assert any(one.startswith(line) for one in COMMANDS), line
                case "yaml":
                    yaml.safe_load(text)
                case "toml":
                    tomllib.loads(text)
                case "json":
                    json.loads(text)
                case "py":
                    ast.parse(text)
                case "sequence" | "picture":
                    assert draw(language, text).startswith("<div")
                case other:
                    raise AssertionError(f"{page.name}: nobody tests {other} blocks")
