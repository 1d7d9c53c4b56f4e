"""Hosts with which something is wrong: each is named in one line with a fix, the others come up."""

from __future__ import annotations

import pytest

from tests.netns.commands import block
from tests.netns.lab_fixture import Hosts
from tests.netns.ssh_hosts import PYTHON, SshHosts

AHEAD = "import time\nreal = time.time\ntime.time = lambda: real() + 7200\n"


@pytest.mark.timeout(300)
def test_bad_hosts_are_named_and_the_others_come_up(ssh_hosts: Hosts) -> None:
    there = ssh_hosts("good", "well", "late", "deaf", "taken")
    there.add("full", tiny_disk=True)
    there.await_sshd("full")
    there.add("off", listens=False)
    there.add("gone", listens=False)
    block(there.hosts["deaf"].namespace, "224.0.0.0/4")
    there.lab.unplug(there.hosts["gone"])
    holder = (
        "import socket, time; s = socket.socket(); s.bind(('', 7400)); s.listen(); print('holds')"
    )
    there.hosts["taken"].start([str(PYTHON), "-u", "-c", f"{holder}; time.sleep(1e6)"]).line(
        "holds"
    )
    set_clock_ahead(there, "late")
    there.write(peers=1)
    text = there.inventory.read_text()
    late = 'name = "late"\npython = "/root/late/python"'
    there.inventory.write_text(text.replace('name = "late"', late))

    done = there.overlay("lab", "up", code=1)
    failed = dict(
        line.removeprefix("FAILED: ").split(": ", 1)
        for line in done.stdout.splitlines()
        if line.startswith("FAILED: ")
    )
    assert failed.keys() == {"late", "deaf", "taken", "full", "off", "gone"}
    assert failed["late"].startswith(
        "its clock is 2.0 h ahead of this machine's: run `sudo timedat"
    )
    assert failed["deaf"].startswith("no multicast between it and 2 others: allow UDP to 239.255.")
    assert failed["taken"].startswith("the port of taken-1 is taken by python")
    assert "set another port =" in failed["taken"]
    assert failed["full"].startswith("its disk has 4 MB free, 300 are wanted: free some")
    assert failed["off"].startswith("nobody listens at ssh port 22: start sshd there")
    address = there.hosts["gone"].address
    assert failed["gone"].startswith((f"ssh gets no answer from {address}", "no way leads to"))

    told = there.lab_json("status", code=1)
    assert told["peers"].keys() == {"good-1", "well-1"}
    for view in told["peers"].values():
        assert view["members"] == ["good-1", "well-1"]
    for name in ("late", "deaf", "taken", "full"):
        assert not list(
            there.hosts[name].folder.glob("root/.local/share/zmq-overlay/labs/*/*/envs/*")
        )


def set_clock_ahead(there: SshHosts, name: str) -> None:
    """Its Python reads a clock that is two hours ahead: namespaces share the machine's real one."""
    place = there.hosts[name].folder / "root" / "late"
    place.mkdir()
    (place / "sitecustomize.py").write_text(AHEAD)
    (place / "python").write_text(
        f'#!/bin/sh\nPYTHONPATH=/root/late exec {PYTHON.resolve()} "$@"\n'
    )
    (place / "python").chmod(0o755)
