"""`overlay doctor` on this machine, with real peers on it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.net.processes import DEADLINE, overlay, peer

QUIET = ("--set", "beacon.enabled=false")


def _doctor(runtime: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    done = overlay(runtime, "doctor", *QUIET, "--listen", "0", "--json", *words)
    assert not done.stderr
    told = json.loads(done.stdout)
    assert told["well"] == (done.returncode == 0)
    return done.returncode, told["findings"]


def _wrong(findings: list[dict[str, Any]]) -> list[str]:
    return [one["what"] for one in findings if one["verdict"] == "wrong"]


def test_a_clock_that_is_off(tmp_path: Path) -> None:
    words = ("--insecure", "--zone", "lab", *QUIET)
    with peer(tmp_path, "--name", "ada", *words) as ada:
        late = ("--set", "net.clock_offset=-4")
        with peer(tmp_path, "--name", "bob", "--seed", ada.address, *late, *words):
            patience = time.monotonic() + DEADLINE
            code, findings = _doctor(tmp_path, "--only", "clock")
            # The zone agrees on a time first, and its errors shrink. Whose time it takes is theirs
            # to say: bob is behind it, or ada is ahead of it.
            off = re.compile(r"the clock of this machine is 4\.0 s (behind|ahead of) overlay time")
            while not any(map(off.match, _wrong(findings))) and time.monotonic() < patience:
                code, findings = _doctor(tmp_path, "--only", "clock")
    assert any(map(off.match, _wrong(findings))), findings
    assert code == 1


def test_a_peer_that_is_well(tmp_path: Path) -> None:
    with peer(tmp_path, "--name", "ada", "--insecure", *QUIET):
        code, findings = _doctor(tmp_path, "ada")
    assert (code, _wrong(findings)) == (0, [])
    assert {one["check"] for one in findings} >= {"versions", "limits", "disk", "clock", "peers"}


def test_a_taken_port_in_words_for_people(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = overlay(tmp_path, "doctor", *QUIET, "--bind", f"127.0.0.1:{port}", "--only", "ports")
    assert done.returncode == 1
    assert f"tcp port {port} is taken by " in done.stdout
    assert "fix: choose another with --bind HOST:PORT" in done.stdout


def test_wrong_usage_is_told_as_such(tmp_path: Path) -> None:
    def code(*words: str) -> int:
        done: subprocess.CompletedProcess[str] = overlay(tmp_path, "doctor", *words)
        assert done.stderr
        return done.returncode

    assert code("--only", "horoscope") == 2
    assert code("nobody") == 1
