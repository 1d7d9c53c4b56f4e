"""Peers in processes of their own, for tests: always ended, never waited for without a deadline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodes.spawning import peer_environment

DEADLINE = 60.0
OVERLAY = [sys.executable, "-m", "nodes.cli"]


def environment(runtime: Path) -> dict[str, str]:
    """With a runtime folder and a home of the test's own: nobody's nodes and keys are touched."""
    return peer_environment(
        XDG_RUNTIME_DIR=str(runtime), OVERLAY_HOME=str(runtime / "home"), COLUMNS="200"
    )


def overlay(runtime: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [*OVERLAY, *words],
        env=environment(runtime),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


@contextmanager
def peer(runtime: Path, *words: str, kind: str = "peer") -> Iterator[RunningPeer]:
    """Run `overlay peer` (or `broker`), insecure, on loopback; what still lives is killed."""
    command = [*OVERLAY, kind, "--profile", "local", "--bind", "127.0.0.1:0", "--json", *words]
    process = subprocess.Popen(
        command,
        env=environment(runtime),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield RunningPeer(process)
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE)


class RunningPeer:
    """One such process, and what its first line told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        first = process.stdout.readline()  # pytest-timeout bounds it
        assert first, process.communicate(timeout=DEADLINE)[1]
        self.told: dict[str, Any] = json.loads(first)

    @property
    def address(self) -> str:
        """Where it is reached."""
        return str(self.told["address"])

    def signal(self, number: int) -> None:
        """Send it a signal; harmless when it has ended."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def ended(self) -> tuple[int, str]:
        """Wait for its end: its exit code, and what it said on stderr."""
        _, errors = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, errors
