"""Nodes on several hosts and networks: groups on every interface, and addresses that fit each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.process import HostProcess
from tests.netns.waiting import until

ROOT = Path(__file__).parents[2]
GROUPS = {4: "239.255.77.1", 6: "ff02::7700"}
ANY = {4: "tcp://0.0.0.0:7400", 6: "tcp://[::]:7400"}
PORT = "7700"
both_versions = pytest.mark.parametrize("version", [4, 6], ids=["IPv4", "IPv6"])


def _talker(host: Host, *words: str, name: str = "") -> HostProcess:
    process = host.start(
        [sys.executable, "-m", "tests.netns.talker", name or host.name, *words],
        environment={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    process.line("^at ")
    return process


def _heard(process: HostProcess, kind: str) -> set[tuple[str, ...]]:
    return {tuple(words[1:]) for line in process.lines if (words := line.split())[0] == kind}


def _by(process: HostProcess) -> set[tuple[str, ...]]:
    """Who was heard, and by which interface."""
    return {words[:2] for words in _heard(process, "datagram")}


def _numbers(process: HostProcess) -> list[str]:
    return [line.split()[-1] for line in process.lines if line.startswith("datagram ")]


@both_versions
def test_a_group_is_heard_on_every_network_of_a_host(lab: Lab, version: int) -> None:
    a = lab.host("a", ["lan"])
    b = lab.host("b", ["lan", "lab"])
    c = lab.host("c", ["lab"])
    words = (ANY[version], "--group", GROUPS[version], PORT)
    talkers = [_talker(host, *words) for host in (a, b, c)]
    expected: list[set[tuple[str, ...]]] = [
        {("b", "eth0")},
        {("a", "eth0"), ("c", "eth1")},
        {("b", "eth0")},
    ]
    until(lambda: [_by(talker) for talker in talkers] == expected, what=f"{expected}")


def test_who_is_on_two_networks_with_us_is_heard_once_each_time(lab: Lab) -> None:
    a, b = lab.host("a", ["lan", "lab"]), lab.host("b", ["lan", "lab"])
    words = (ANY[4], "--group", GROUPS[4], PORT)
    one, other = _talker(a, *words), _talker(b, *words)
    for talker in (one, other):
        talker.line("^datagram .* 15$")
        assert _heard(talker, "copies")  # of each two came
        assert len(_numbers(talker)) == len(set(_numbers(talker)))


def test_an_interface_that_comes_later_is_joined(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    words = ("--group", GROUPS[4], PORT)
    _talker(a, "tcp://0.0.0.0:7400", *words, name="here")
    listener = _talker(a, "tcp://0.0.0.0:7401", *words, name="there")
    listener.line("^datagram here eth0 10.77.1.1 ")
    a.run(["ip", "link", "add", "late0", "type", "veth", "peer", "name", "late1"])
    for name in ("late0", "late1"):
        a.run(["ip", "link", "set", name, "up"])
    a.run(["ip", "address", "add", "10.99.0.1/24", "dev", "late0"])
    listener.line("^copies ")
    a.run(["ip", "link", "set", "eth0", "down"])
    listener.line("^datagram here late[01] 10.99.0.1 ")


def test_a_host_without_a_network_still_multicasts_to_itself(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    a.run(["ip", "link", "delete", "eth0"])
    words = ("--group", GROUPS[4], PORT)
    _talker(a, "tcp://0.0.0.0:7400", *words, name="here")
    _talker(a, "tcp://0.0.0.0:7401", *words, name="there").line("^datagram here lo 127.0.0.1 ")


@both_versions
def test_a_host_on_two_networks_is_reached_from_both(lab: Lab, version: int) -> None:
    a = lab.host("a", ["lan"])
    b = lab.host("b", ["lan", "lab"])
    c = lab.host("c", ["lab"])
    hosts = [port.ipv4 if version == 4 else f"[{port.ipv6}]" for port in b.ports]
    middle = _talker(b, ANY[version])
    # Its default route is through the first network, so that one is told first.
    assert _heard(middle, "at") == {tuple(f"tcp://{host}:7400" for host in hosts)}
    for host, address in ((a, hosts[0]), (c, hosts[1])):
        _talker(host, ANY[version], "--meet", f"tcp://{address}:7400")
        middle.line(f"^word {host.name}$")


def test_an_address_given_by_hand_is_the_only_one_told(lab: Lab) -> None:
    b = lab.host("b", ["lan", "lab"])
    by_hand = f"tcp://{b.port('lab').ipv4}:0"
    talker = _talker(b, ANY[4], "--advertise", by_hand)
    assert _heard(talker, "at") == {(f"tcp://{b.port('lab').ipv4}:7400",)}
