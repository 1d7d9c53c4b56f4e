"""An upgrade under load: every peer of the lab is restarted from a new build, gateways too, and a
reader in another zone gets every message of an ack-mode topic once and in order.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes.control import ask, sockets_of
from nodes.peer_options import PeerOptions, plain_words
from nodes.spawning import peer_environment
from overlay.ids import Ring
from protocols.gateways import gateway_key
from tests.netns.host import Host
from tests.netns.lab_fixture import Hosts, make_wheels_of
from tests.netns.process import HostProcess
from tests.netns.ssh_hosts import ROOT, SshHosts
from tests.netns.waiting import until

RATE = 500  # messages per second
PARTS = ("overlay", "protocols", "nodes", "configs")
FILES = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
ZONES = {"h1": "a", "h2": "b"}
PATIENCE = 100.0  # s, on a machine that others use too


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_upgrade_under_load_loses_nothing(ssh_hosts: Hosts, tmp_path: Path) -> None:
    newer = newer_tree(tmp_path / "newer")
    there = ssh_hosts("h1", "h2")
    there.write(peers=2, zones=ZONES)
    before = there.lab_json("up")
    topic = topic_over_the_lab()
    publisher = guest(there, "pub", "a", topic, "--publish", "ack", "--rate", str(RATE))
    reader = guest(there, "sub", "b", topic)
    until(lambda: any("publisher-appeared" in line for line in reader.lines), what="the reader")
    command(there, "pub", "begin")
    until(lambda: last(publisher, "published") > RATE, what="a second of messages")

    there.source = newer
    told = there.lab_json("upgrade")
    assert told["failures"] == {}
    assert sorted(told["restarted"]) == ["h1-1", "h1-2", "h2-1", "h2-2"]
    envs = {view["env"] for view in told["peers"].values()}
    assert len(envs) == 1
    assert not envs & {view["env"] for view in before["peers"].values()}
    for host, zone in ZONES.items():
        guests = {"a": "pub", "b": "sub"}
        assert told["peers"][f"{host}-1"]["members"] == [f"{host}-1", f"{host}-2", guests[zone]]

    command(there, "pub", "finish")
    until(lambda: last(publisher, "finished"), what="the flush", within=PATIENCE)
    published = last(publisher, "finished")
    until(lambda: last(reader, "got") >= published, what="the last message", within=PATIENCE)
    assert reader.lines_dropped == publisher.lines_dropped == 0
    assert numbers(reader) == list(range(1, published + 1))
    assert not [line for line in reader.lines if '"gap"' in line or "subscription-failed" in line]

    again = there.lab_json("upgrade")
    assert again["restarted"] == []


def newer_tree(place: Path) -> Path:
    """A copy of the sources with one line more, and its wheels."""
    for part in PARTS:
        shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, place / name)
    with (place / "nodes" / "__init__.py").open("a") as file:
        file.write("\nNEWER = True\n")
    make_wheels_of(place)
    return place


def topic_over_the_lab() -> str:
    """A topic whose gateways are peers of the lab in both zones, so that they are restarted."""
    for number in range(10_000):
        topic = f"plant/{number}"
        zones = (("h1-1", "h1-2", "pub"), ("h2-1", "h2-2", "sub"))
        gateways = [Ring(zone).responsible_for(gateway_key(topic)) for zone in zones]
        if gateways[0] != "pub" and gateways[1] != "sub":
            return topic
    raise AssertionError("no such topic")


def guest(there: SshHosts, name: str, zone: str, topic: str, *words: str) -> HostProcess:
    """An application's peer on a machine of its own, with keys of the lab's authority."""
    keys = there.desk.folder / "config" / "labs" / "test" / "keys"
    there.overlay("keys", "issue", name, "--zone", zone, "--folder", str(keys))
    host: Host = there.lab.host(name)
    seeds = tuple(f"{one.address}:7400" for one in there.hosts.values())
    options = PeerOptions(
        name=name, zone=zone, seed=seeds, bind=("0.0.0.0:7400",), keys=str(keys), json=True
    )
    line = [sys.executable, "-m", "tests.netns.newsreader", topic, *words, "--"]
    environment = peer_environment(PYTHONUNBUFFERED="1")
    return host.start([*line, *plain_words(options)], environment=environment)


def command(there: SshHosts, name: str, do: str) -> None:
    folder = there.lab.name.folder / name / "zmq-overlay"
    found = until(lambda: sockets_of(folder, name), what=f"the socket of {name}")
    ask(found[0], do, timeout=PATIENCE)


def told(process: HostProcess, key: str) -> list[dict[str, Any]]:
    assert process.is_running, process
    return [json.loads(line) for line in process.lines if line.startswith(f'{{"{key}"')]


def last(process: HostProcess, key: str) -> int:
    found = told(process, key)
    if not found:
        return 0
    return int(found[-1]["runs"][-1][1] if key == "got" else found[-1][key])


def numbers(reader: HostProcess) -> list[int]:
    """Every message in the order in which it came."""
    runs = [run for line in told(reader, "got") for run in line["runs"]]
    return [number for first, final in runs for number in range(first, final + 1)]
