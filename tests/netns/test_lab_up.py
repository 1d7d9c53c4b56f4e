"""A lab from nothing to nothing: up, up again, a death, a change, logs, exec, down."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.netns.host import Host
from tests.netns.lab_fixture import Hosts
from tests.netns.ssh_hosts import SshHosts
from tests.netns.waiting import until

FOLDER = "root/.local/share/zmq-overlay/labs/test"


def pids(told: dict[str, Any]) -> dict[str, int]:
    return {name: view["pid"] for name, view in told["peers"].items()}


@pytest.mark.timeout(400)  # of other people's load: alone it takes a tenth
def test_a_lab_from_nothing_to_nothing(ssh_hosts: Hosts) -> None:
    there = ssh_hosts("h1", "h2")
    there.write(peers=2, zones={"h1": "a", "h2": "b"})
    first = there.lab_json("up")
    names = {f"h{host}-{peer}" for host in (1, 2) for peer in (1, 2)}
    assert set(first["started"]) == first["peers"].keys() == names
    assert first["failures"] == first["warnings"] == {}
    for name, view in first["peers"].items():
        assert view["zone"] == {"h1": "a", "h2": "b"}[name[:2]]
        assert set(view["members"]) == {other for other in names if other[:2] == name[:2]}
        assert view["zones"] == {"a": 2, "b": 2}
    only_its_own_keys(there)

    again = there.lab_json("up")
    assert again["started"] == again["restarted"] == again["removed"] == []
    assert pids(again) == pids(first)

    kill_one_and_see_it_kept(there, first)
    change_one_setting(there)

    told = there.overlay("lab", "exec", "--host", "h2", "--", "overlay", "status").stdout
    assert "h2-1" in told
    assert "h1-1" not in told
    stopped = there.lab_json("down", "--purge")
    assert set(stopped["removed"]) == names
    for host in there.hosts.values():
        assert not (host.folder / FOLDER).joinpath(host.name).exists()
        assert not [line for line in commands_on(host) if "nodes.cli" in line or "agent-" in line]


def commands_on(host: Host) -> list[str]:
    """The command lines of all processes of a host."""
    found = []
    for pid in host.run(["ip", "netns", "pids", host.namespace]).stdout.split():
        with suppress(OSError):
            found.append(Path("/proc", pid, "cmdline").read_text())
    return found


def only_its_own_keys(there: SshHosts) -> None:
    for name, host in there.hosts.items():
        found = {path.name for path in (host.folder / FOLDER / name / "keys").iterdir()}
        assert found == {f"{name}-1", f"{name}-2"}
        assert not list((host.folder / "root").rglob("authority.key"))


def kill_one_and_see_it_kept(there: SshHosts, told: dict[str, Any]) -> None:
    dead = pids(told)["h2-1"]
    os.kill(dead, signal.SIGKILL)

    def is_back() -> bool:
        words = there.words("lab", "status", "--json")
        done = there.desk.run(words, check=False, environment=there.environment())
        return done.returncode == 0 and f'"pid":{dead}' not in done.stdout

    until(is_back, what="the keeper to restart h2-1, and all to agree", every=0.5)
    log = there.overlay("lab", "logs", "h2-1").stdout
    assert "keeper: h2-1 ended by SIGKILL, starts again in 0.5 s" in log


def change_one_setting(there: SshHosts) -> None:
    before = pids(there.lab_json("up"))
    text = there.inventory.read_text()
    text += "[host.settings.net]\nheartbeat = 12.5\n"  # of the last host
    there.inventory.write_text(text)
    told = there.lab_json("up")
    assert told["restarted"] == ["h2-1", "h2-2"]
    assert told["started"] == []
    after = pids(told)
    assert {name for name in after if after[name] != before[name]} == {"h2-1", "h2-2"}
