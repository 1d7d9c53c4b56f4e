"""The house rules hold in this clone, and each rule notices a violation planted for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.house import layers, shape, tags

ROOT = Path(__file__).parents[2]
Rule = Callable[[Path], list[str]]
Plant = Callable[[dict[str, str]], Path]

RULES: tuple[Rule, ...] = (
    layers.upward_imports,
    layers.impure_protocols,
    layers.loops_in_shared_parts,
    layers.sibling_imports,
    layers.sibling_cycles,
    shape.long_files,
    shape.incomplete_protocols,
    shape.sleeping_tests,
    shape.nameless_log_lines,
    tags.tag_problems,
)

LAWFUL = {
    "overlay/protocol.py": "class Message: ...\nclass Event: ...\n",
    "overlay/net/driver.py": "import trio, zmq\nfrom overlay.protocol import Message\n",
    "overlay/hello.py": "from overlay.protocol import Message\nclass Hello(Message, tag=0): ...\n",
    "protocols/tags.toml": """
        [framework]
        blocks = [0]
        retired = [1]
        Hello = 0

        [echo]
        blocks = [16]
        retired = []
        Ask = 16
    """,
    "protocols/__init__.py": "",
    "protocols/echo/__init__.py": '"""Echo.\n\n| 16 | Ask | bored | answers |\n"""\n',
    "protocols/echo/machine.py": "from random import Random\nfrom overlay.ids import NodeId\n",
    "protocols/echo/messages.py": """
        from overlay.protocol import Message as Wire

        class Addressed(Wire): ...

        class Ask(Addressed, frozen=True, tag=16): ...
    """,
    "protocols/echo/events.py": "from overlay.protocol import Event\n",
    "protocols/echo/interface.py": "from typing import Protocol\n",
    "protocols/echo/config.py": "from overlay.config import Settings\n",
    "nodes/peer.py": "import trio\nfrom protocols.echo.machine import Echo\n",
    "tests/unit/test_peer.py": "import time\nimport trio\nstarted = time.monotonic()\n",
}

SIBLING = {
    "protocols/ring/__init__.py": '"""Ring: no messages."""\n',
    **{f"protocols/ring/{name}.py": "" for name in ("machine", "messages", "events", "config")},
}


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """A lawful little project, with these files put in or replaced."""

    def write(files: dict[str, str]) -> Path:
        for name, text in (LAWFUL | files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_holds_in_this_clone(rule: Rule) -> None:
    assert not rule(ROOT), "\n".join(rule(ROOT))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_accepts_a_lawful_project(rule: Rule, plant: Plant) -> None:
    assert rule(plant(SIBLING)) == []


@pytest.mark.parametrize(
    ("rule", "files", "complaint"),
    [
        (
            layers.upward_imports,
            {"overlay/host.py": "def late():\n    from protocols.echo import machine\n"},
            "overlay/host.py:2: overlay must not import protocols.echo.machine",
        ),
        (
            layers.upward_imports,
            {"protocols/echo/machine.py": "import nodes.peer\n"},
            "protocols must not import nodes.peer",
        ),
        (
            layers.upward_imports,
            {"nodes/peer.py": "from tests import conftest\n"},
            "nodes must not import tests.conftest",
        ),
        (
            layers.impure_protocols,
            {"protocols/echo/machine.py": "import zmq.green\n"},
            "a protocol must not import zmq.green",
        ),
        (
            layers.impure_protocols,
            {"protocols/echo/machine.py": "from time import monotonic\n"},
            "a protocol must not import time.monotonic",
        ),
        (
            layers.impure_protocols,
            {"protocols/echo/machine.py": "import random\n"},
            "only `from random import Random`",
        ),
        (
            layers.impure_protocols,
            {"protocols/echo/machine.py": "from overlay import net\n"},
            "a protocol must not import overlay.net: of the framework only",
        ),
        (
            layers.impure_protocols,
            {"protocols/echo/machine.py": "kept = open('state')\n"},
            "protocols/echo/machine.py:1: a protocol must not call open: push effects",
        ),
        (
            layers.loops_in_shared_parts,
            {"overlay/sim/clock.py": "import threading\n"},
            "overlay.sim.clock must not import threading",
        ),
        (
            layers.sibling_imports,
            {"protocols/echo/machine.py": "from ..ring.machine import Ring\n", **SIBLING},
            "imports protocols.ring.machine.Ring: of a sibling only protocols.ring.events",
        ),
        (
            layers.sibling_imports,
            {"protocols/echo/machine.py": "from protocols import ring\n", **SIBLING},
            "imports protocols.ring: of a sibling only",
        ),
        (
            layers.sibling_imports,
            {"protocols/echo/machine.py": "from protocols.ring.events import _Hidden\n", **SIBLING},
            "protocols.ring.events._Hidden is private",
        ),
        (
            layers.sibling_cycles,
            {
                **SIBLING,
                "protocols/echo/machine.py": "from protocols.ring.events import Joined\n",
                "protocols/ring/machine.py": "from protocols.echo.interface import Echoes\n",
            },
            "protocols echo and ring need each other",
        ),
        (
            shape.long_files,
            {"nodes/peer.py": "x = 1\n" * 501},
            "nodes/peer.py: 501 lines, at most 500",
        ),
        (
            shape.incomplete_protocols,
            {"protocols/lone/__init__.py": '"""Alone."""\n'},
            "protocols/lone/machine.py is missing",
        ),
        (
            shape.incomplete_protocols,
            {"protocols/echo/__init__.py": ""},
            "protocols/echo/__init__.py has no docstring",
        ),
        (
            shape.incomplete_protocols,
            {"protocols/echo/__init__.py": '"""Echo. It sends Ask."""\n'},
            "its message table has no row `| 16 | Ask | sent when | the receiver |`",
        ),
        (
            shape.incomplete_protocols,
            {"protocols/echo/__init__.py": '"""Echo.\n\n| 17 | Ask | bored | answers |\n"""\n'},
            "its message table has no row `| 16 | Ask |",
        ),
        (
            shape.nameless_log_lines,
            {"nodes/peer.py": "from overlay.net import log\n\nlog.warning('it failed')\n"},
            "nodes/peer.py:3: say extra=about(event, protocol)",
        ),
        (
            shape.sleeping_tests,
            {"tests/net/test_link.py": "import time as t\n\nt.sleep(1)\n"},
            "tests/net/test_link.py:3: no time.sleep in tests",
        ),
        (
            shape.sleeping_tests,
            {"tests/net/test_link.py": "from time import sleep\n"},
            "tests/net/test_link.py:1: no time.sleep in tests",
        ),
    ],
)
def test_notices(rule: Rule, files: dict[str, str], complaint: str, plant: Plant) -> None:
    assert [line for line in rule(plant(files)) if complaint in line]


ASK_TWICE = """
    from overlay.protocol import Message

    class Ask(Message, tag=16): ...

    class Tell(Message, tag={tag}): ...
"""
TABLE = """
    [framework]
    blocks = [0]
    retired = [1]
    Hello = 0

    [echo]
    blocks = [{block}]
    retired = [{retired}]
    Ask = {ask}
    {more}
"""


def table(block: int = 16, retired: str = "", ask: int = 16, more: str = "") -> dict[str, str]:
    text = TABLE.format(block=block, retired=retired, ask=ask, more=more)
    return {"protocols/tags.toml": text}


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (
            {"protocols/echo/messages.py": ASK_TWICE.format(tag=17)},
            "protocols/echo/messages.py:6: add to protocols/tags.toml under [echo]: `Tell = 17`",
        ),
        (
            {"protocols/ring/messages.py": ASK_TWICE.format(tag=33)},
            "add to protocols/tags.toml: `[ring]`, `blocks = [32]`, `retired = []`, `Tell = 33`",
        ),
        (
            {"protocols/echo/messages.py": ASK_TWICE.format(tag="NEXT")},
            "Tell needs a literal tag",
        ),
        (table(ask=18), "Ask has tag=16, protocols/tags.toml pins 18: set `tag=18`"),
        (table(more="Gone = 17"), "Gone = 17 has no class any more"),
        (table(more="Tell = 16"), "16 is both echo.Ask and echo.Tell"),
        (table(retired="16"), "echo.Ask uses 16, which [echo] retired"),
        (table(more="Tell = 1"), "echo.Tell uses 1, which [framework] retired"),
        (table(more="Tell = 32"), "[echo] Tell = 32 is outside of its blocks [16]"),
        (table(block=32), "[echo] needs `blocks = [16]`"),
        (table(block=20), "block 20 must be a multiple of 16 below 10000"),
        (table(block=10_000), "below 10000, where third parties begin"),
        (table(block=0), "block 0 is both [framework] and [echo]"),
    ],
)
def test_notices_tags(files: dict[str, str], complaint: str, plant: Plant) -> None:
    assert [line for line in tags.tag_problems(plant(files)) if complaint in line]


def test_finds_messages_through_aliases_and_shared_bases(plant: Plant) -> None:
    found = tags.message_classes(plant({}))
    assert [(m.name, m.owner, m.tag) for m in found] == [
        ("Hello", "framework", 0),
        ("Ask", "echo", 16),
    ]


def lint(project: Path, file: str) -> str:
    """What ruff says of one file, with this clone's settings."""
    for name in ("pyproject.toml", "protocols/ruff.toml"):
        (project / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, project / name)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", file]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize(
    "line",
    [
        "import trio",
        "import zmq",
        "import socket",
        "import time",
        "from time import monotonic",
        "import asyncio",
        "import threading",
        "from random import choice",
        "from overlay.net import driver",
        "from overlay import sim",
        "from nodes.peer import Peer",
    ],
)
def test_ruff_keeps_protocols_pure(line: str, tmp_path: Path) -> None:
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "machine.py").write_text(f'"""A machine."""\n\n{line}\n')
    assert "TID251" in lint(tmp_path, "protocols/machine.py")


def test_ruff_lets_protocols_name_random_and_others_use_trio(tmp_path: Path) -> None:
    (tmp_path / "protocols").mkdir()
    (tmp_path / "nodes").mkdir()
    (tmp_path / "protocols" / "machine.py").write_text("from random import Random\n")
    (tmp_path / "nodes" / "peer.py").write_text("import trio\n")
    assert "TID251" not in lint(tmp_path, "protocols/machine.py") + lint(tmp_path, "nodes/peer.py")


def test_ruff_and_the_import_walk_ban_the_same() -> None:
    config = tomllib.loads((ROOT / "protocols" / "ruff.toml").read_text(encoding="utf-8"))
    banned = set(config["lint"]["flake8-tidy-imports"]["banned-api"])
    assert set(layers.OUTSIDE_WORLD) <= banned
    assert not {name for name in banned if name.startswith(layers.PURE_OVERLAY)}
