"""`overlay analyze` as people meet it, with what they get wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from overlay.errors import ConfigError
from overlay.traces.java import find_java
from tests.net.processes import OVERLAY


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
