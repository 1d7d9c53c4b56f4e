"""`overlay doctor` on hosts with a filter in the way, and on a LAN that two overlays share."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from overlay.security.authority import Authority
from overlay.security.rights import Rights
from tests.netns.commands import block
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.waiting import WITHIN

ROOT = Path(__file__).parents[2]
OVERLAY = [sys.executable, "-m", "nodes.cli"]


def _environment(host: Host) -> dict[str, str]:
    own = {"XDG_RUNTIME_DIR": str(host.folder), "OVERLAY_HOME": str(host.folder / "home")}
    own["OVERLAY_SET"] = ""  # with beacons
    return {**os.environ, "PYTHONPATH": str(ROOT), **own}


def _doctor(host: Host, check: str) -> list[dict[str, Any]]:
    words = [*OVERLAY, "doctor", "--only", check, "--json"]
    done = host.run(words, check=False, environment=_environment(host))
    told = json.loads(done.stdout)
    assert told["well"] == (done.returncode == 0), done.stderr
    findings: list[dict[str, Any]] = told["findings"]
    return findings


def _wrong(findings: list[dict[str, Any]]) -> list[str]:
    return [one["what"] for one in findings if one["verdict"] == "wrong"]


def test_multicast_that_a_filter_blocks(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    assert _wrong(_doctor(a, "multicast")) == []
    block(a.namespace, "239.0.0.0/8")
    told = _wrong(_doctor(a, "multicast"))
    assert [what.partition(" (")[0] for what in told] == [
        "multicast is blocked on eth0, IPv4",
        "multicast is blocked on lo, IPv4",
    ]
    (rule,) = {one["what"].rpartition(": ")[2] for one in _doctor(a, "firewall")}
    assert rule == "ip daddr 239.0.0.0/8 drop"


def test_two_overlays_of_one_name_on_a_lan(lab: Lab, tmp_path: Path) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    for host in (a, b):
        folder = tmp_path / host.name
        Authority.create(folder, "lab").issue(host.name, Rights(zones=("*",))).save(folder)
        words = ["peer", "--name", host.name, "--keys", str(folder)]
        host.start([*OVERLAY, *words], environment=_environment(host)).line("^tcp://")
    told: list[str] = []
    patience = time.monotonic() + WITHIN
    while not told and time.monotonic() < patience:
        told = _wrong(_doctor(c, "overlays"))
    assert told[0].startswith("2 overlays are called 'lab' (authority ")
