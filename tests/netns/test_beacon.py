"""Peers on hosts of one LAN find each other: none is told an address."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes.spawning import peer_environment
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from tests.netns.commands import block
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.peers import PORT, LabPeer, address_of, await_views
from tests.netns.waiting import until

BEACONS = ("beacon.enabled=true",)
BEACONS_ONLY = (*BEACONS, "beacon.mdns=never")
both = pytest.mark.parametrize("secure", [True, False], ids=["secure", "insecure"])


def finder(
    host: Host, keys: Path | None, sets: tuple[str, ...] = BEACONS_ONLY, **other: Any
) -> LabPeer:
    return LabPeer(host, (), keys, sets, **other)


def counts(peer: LabPeer) -> dict[str, int]:
    told: dict[str, int] = peer.ask("status")["protocols"]["beacon"]
    return told


def seconds_to_join(peer: LabPeer, member: str) -> float:
    """From the first line of the peer, at its start, until it had that member."""
    first = json.loads(next(line for line in peer.process.lines if line.startswith('{"name"')))
    joined = next(one for one in peer.events("member-joined") if one["member"] == member)
    return float(joined["monotonic"] - first["monotonic"])


@both
def test_two_hosts_find_each_other_within_a_second(lab: Lab, keys: Path, secure: bool) -> None:
    a, b = lab.hosts("a", "b")
    first = finder(a, keys if secure else None)
    first.process.line('^{"name"')
    second = finder(b, keys if secure else None)
    await_views([first, second], [first, second])
    assert seconds_to_join(second, "a") < 1.0


def test_ipv6_alone_is_enough(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c")
    for host in hosts:
        host.run(["ip", "-4", "address", "flush", "dev", "eth0"])
    peers = [finder(host, keys, bind=f"[::]:{PORT}") for host in hosts]
    await_views(peers, peers)


def test_link_local_addresses_are_enough(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b")
    for host in hosts:
        host.run(["ip", "address", "flush", "dev", "eth0", "scope", "global"])
    peers = [finder(host, keys, bind=f"[::]:{PORT}") for host in hosts]
    await_views(peers, peers)


def test_a_host_on_two_networks_joins_them(lab: Lab, keys: Path) -> None:
    a, b, c = lab.host("a", ["lan"]), lab.host("b", ["lan", "lab"]), lab.host("c", ["lab"])
    finder(a, keys)
    finder(c, keys)
    middle = finder(b, keys)
    until(lambda: {*middle.view()} == {"a", "b", "c"}, what="both neighbours of b")


def test_an_interface_that_comes_later_is_used(lab: Lab, keys: Path) -> None:
    a, b = lab.hosts("a", "b")
    b.run(["ip", "link", "set", "eth0", "down"])
    first, second = finder(a, keys), finder(b, keys)
    until(lambda: {*first.view()} == {"a"} and {*second.view()} == {"b"}, what="two that are alone")
    b.run(["ip", "link", "set", "eth0", "up"])
    await_views([first, second], [first, second])
    until(
        lambda: first.view()["b"]["endpoints"] == [f"tcp://{address_of(b)}"],
        what="the address of that interface",
    )


def test_two_overlays_on_one_lan_do_not_mix(lab: Lab, keys: Path, tmp_path: Path) -> None:
    other = Authority.create(tmp_path, "overlay")  # of the same name
    for name in "cd":
        other.issue(name, Rights(zones=("default",))).save(tmp_path)
    a, b, c, d, e = lab.hosts("a", "b", "c", "d", "e")
    ours = [finder(a, keys), finder(b, keys)]
    theirs = [finder(c, tmp_path), finder(d, tmp_path)]
    insecure = [finder(e, None)]
    for side in (ours, theirs, insecure):
        await_views(side, side)
    refusals = ours[0].ask("status")["driver"]["refusals"]
    assert refusals["certificate-untrusted"] >= 1
    assert refusals["datagram-wrong-overlay"] >= 1
    assert counts(ours[0])["found"] + counts(ours[1])["found"] <= 2
    assert counts(insecure[0])["found"] == 0


def test_where_multicast_is_blocked_last_known_peers_are_found(
    lab: Lab, keys: Path, tmp_path: Path
) -> None:
    a, b = lab.hosts("a", "b")
    sets = (*BEACONS_ONLY, "beacon.remember_every=0.2")
    first = finder(a, keys, sets)
    second = finder(b, keys, sets, state=tmp_path / "state")
    await_views([first, second], [first, second])
    until(
        lambda: any(b"10.77.1.1:7400" in file.read_bytes() for file in _files(tmp_path / "state")),
        what="its peer on disk",
    )
    second.kill()
    await_views([first], [first])
    for host in (a, b):
        block(host.namespace, "224.0.0.0/4")
    second.start()
    await_views([first, second], [first, second])
    assert counts(second)["heard"] == 0


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@both
def test_where_only_mdns_passes_it_is_enough(lab: Lab, keys: Path, secure: bool) -> None:
    a, b = lab.hosts("a", "b")
    for host in (a, b):
        block(host.namespace, "239.0.0.0/8")
    peers = [finder(host, keys if secure else None, BEACONS) for host in (a, b)]
    await_views(peers, peers)
    assert [counts(peer)["heard"] for peer in peers] == [0, 0]
    peers[0].process.signal(signal.SIGTERM)  # it leaves in good order, and withdraws its service
    assert peers[0].process.wait() == 0


def test_the_demo_asks_whether_there_is_multicast(lab: Lab) -> None:
    (a,) = lab.hosts("a")
    ask = "from nodes.multicast import works_at_loopback; print(works_at_loopback())"
    environment = peer_environment()
    words = [sys.executable, "-c", ask]
    assert a.run(words, environment=environment).stdout == "True\n"
    block(a.namespace, "224.0.0.0/4")
    assert a.run(words, environment=environment).stdout == "False\n"
