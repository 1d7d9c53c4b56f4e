"""`overlay analyze` as people meet it, with what they get wrong."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from overlay.errors import ConfigError
from overlay.traces.java import find_java
from tests.net.processes import OVERLAY

HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "traces.md"


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OVERLAY, "analyze", *words],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | environment,
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "overlay: there is no folder nowhere: it should hold traces"),
        (["."], "overlay: no such master: 'sparky'; right are local[*], spark://HOST:PORT"),
        ([".", "--jobs", "lateny"], "overlay: there is no job lateny: did you mean latency?"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], complaint: str) -> None:
    if words == ["."]:
        words = [".", "--master", "sparky"]
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == 1


def test_without_java_it_says_which_command_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"Spark needs Java 17 or newer.*no Java that runs"):
        find_java()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o700)
    with pytest.raises(ConfigError, match="is Java 8"):
        find_java()
    apt = tmp_path / "apt-get"
    apt.write_text("")
    apt.chmod(0o700)
    with pytest.raises(ConfigError, match=r"run `.*apt-get install -y openjdk-17-jre-headless`"):
        find_java()
    old.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\" 2024-01-16' >&2\n")
    assert find_java() == old


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_example_of_the_how_to(tmp_path: Path) -> None:
    section = HOW_TO.read_text(encoding="utf-8").split("\n## From traces to a report", 1)[1]
    (commands,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    for line in commands.splitlines():
        name, *words = shlex.split(line)
        assert name == "overlay"
        done = subprocess.run(
            [*OVERLAY, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert (done.returncode, done.stderr) == (0, ""), line
    assert (tmp_path / "report" / "index.html").is_file()
    (program,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "plant/north/7" in done.stdout
