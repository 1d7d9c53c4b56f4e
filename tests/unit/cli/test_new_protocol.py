"""`overlay new-protocol`: what it writes passes every check; a mistake writes nothing."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nodes.new_protocol import write_protocol
from nodes.new_protocol.writing import LONGEST_NAME
from overlay.errors import ConfigError
from tests.house.layers import impure_protocols, sibling_imports, upward_imports
from tests.house.shape import incomplete_protocols
from tests.house.tags import tag_problems

ROOT = Path(__file__).resolve().parents[3]
SHORTEST, LONGEST = "p", "q" * LONGEST_NAME


def copy_of_clone(folder: Path) -> Path:
    """What a protocol and its test need of a clone."""
    for name in ("overlay", "protocols", "tests/house"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
        )
    for name in ("pyproject.toml", "tests/__init__.py", "tests/recording.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "tests" / "unit").mkdir()
    (folder / "tests" / "unit" / "__init__.py").touch()
    return folder


def python(clone: Path, *words: str) -> None:
    """Run a tool inside of the copy, and show what it says when it fails."""
    environment = os.environ | {"PYTHONPATH": str(clone)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=clone, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_writes_passes_ruff_mypy_pytest_and_the_house_rules(tmp_path: Path) -> None:
    clone = copy_of_clone(tmp_path)
    before = house_problems(clone)  # none, unless somebody is at work on another protocol
    written = [write_protocol(clone, name) for name in ("ping_pong", SHORTEST, LONGEST)]
    python_files = [file for one in written for file in one.files if file.endswith(".py")]
    assert len(python_files) == 3 * 6
    python(clone, "ruff", "check", *python_files)
    python(clone, "ruff", "format", "--check", *python_files)
    python(clone, "mypy", "--strict", "--cache-dir", os.devnull, *python_files)
    python(clone, "pytest", "-q", "-p", "no:cacheprovider", "tests/unit")
    assert house_problems(clone) == before


def house_problems(clone: Path) -> list[str]:
    rules = (upward_imports, impure_protocols, sibling_imports, incomplete_protocols, tag_problems)
    return [problem for rule in rules for problem in rule(clone)]


def empty_clone(folder: Path, tags: str = "[echo]\nblocks = [16]\nretired = []\n") -> Path:
    (folder / "protocols").mkdir()
    (folder / "protocols" / "tags.toml").write_text(tags)
    return folder


def test_each_protocol_gets_the_next_free_block(tmp_path: Path) -> None:
    clone = empty_clone(tmp_path)
    assert [write_protocol(clone, name).first_tag for name in ("one", "two")] == [32, 48]
    assert tomllib.loads((clone / "protocols" / "tags.toml").read_text()) == {
        "echo": {"blocks": [16], "retired": []},
        "one": {"blocks": [32], "retired": [], "OneRequest": 32, "OneReply": 33},
        "two": {"blocks": [48], "retired": [], "TwoRequest": 48, "TwoReply": 49},
    }


def test_a_block_reserved_for_the_name_is_used(tmp_path: Path) -> None:
    reserved = "[zones]\nblocks = [80]\nretired = []\n\n[echo]\nblocks = [16]\nretired = []\n"
    clone = empty_clone(tmp_path, reserved)
    assert write_protocol(clone, "zones").first_tag == 80
    tags = tomllib.loads((clone / "protocols" / "tags.toml").read_text())
    assert tags["zones"] == {
        "blocks": [80],
        "retired": [],
        "ZonesRequest": 80,
        "ZonesReply": 81,
    }
    assert tags["echo"] == {"blocks": [16], "retired": []}


@pytest.mark.parametrize(
    "name", ["", "Ping", "ping-pong", "1ping", "ping__pong", "_p", "p_", "../up", "class", "q" * 21]
)
def test_a_bad_name_says_what_a_good_one_is(tmp_path: Path, name: str) -> None:
    clone = empty_clone(tmp_path)
    with pytest.raises(ConfigError, match="like ping_pong"):
        write_protocol(clone, name)
    assert [path.name for path in clone.iterdir()] == ["protocols"]


@pytest.mark.parametrize("path", ["protocols/one", "tests/unit/test_one.py"])
def test_nothing_is_replaced(tmp_path: Path, path: str) -> None:
    clone = empty_clone(tmp_path)
    (clone / path).mkdir(parents=True)
    before = sorted(clone.rglob("*"))
    with pytest.raises(ConfigError, match=f"{path} is there already"):
        write_protocol(clone, "one")
    assert sorted(clone.rglob("*")) == before


def test_tags_that_are_pinned_already_are_left_alone(tmp_path: Path) -> None:
    clone = empty_clone(tmp_path, "[one]\nblocks = [16]\nretired = [16]\n")
    with pytest.raises(ConfigError, match="pins tags of one already"):
        write_protocol(clone, "one")


def test_outside_of_a_clone_it_says_where_to_go(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no clone of zmq-overlay: go into one"):
        write_protocol(tmp_path, "one")
