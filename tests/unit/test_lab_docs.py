"""What the documentation shows of `overlay lab` can be typed, and its inventory is a good one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from nodes.cli.lab import app
from tests.unit.test_lab_inventory import read

ROOT = Path(__file__).parents[2]
TEXT = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/lab.md"))
LINES = re.findall(r"^overlay lab (.+?)(?:  +#.*)?$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_commands_can_be_typed(line: str) -> None:
    name, *words = shlex.split(line)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    commands[name].make_context(name, words).close()


def test_all_commands_are_told() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert {line.split()[0] for line in LINES} == set(commands)


def test_the_inventory_of_the_documentation_is_a_good_one() -> None:
    (block,) = re.findall(r"```toml\n(\[lab\].+?)```", TEXT, re.DOTALL)
    told = read(block)
    assert [host.peers for host in told.hosts] == [4, 8]
    assert told.hosts[1].settings["net"] == {"heartbeat": 5.0}
