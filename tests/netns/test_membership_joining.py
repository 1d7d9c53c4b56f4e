"""Ways into a zone: whoever is a member can be a seed, and has an address that others reach."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nodes.spawning import peer_environment
from tests.netns.lab import Lab
from tests.netns.peers import (
    address_of,
    await_probes,
    await_views,
    names,
    removals,
    start_peers,
)


def test_a_zone_outlives_its_seeds_and_takes_newcomers(lab: Lab, keys: Path) -> None:
    a, b, c, d, e, f = lab.hosts("a", "b", "c", "d", "e", "f")
    peers = start_peers([a, b, c, d, e], seeds=[a, b], keys=keys)
    await_views(peers, peers)
    for seed in peers[:2]:
        seed.kill()
    rest = peers[2:]
    await_views(rest, rest)
    newcomers = start_peers([f], seeds=[d], keys=keys)
    await_views([*rest, *newcomers], [*rest, *newcomers])


@pytest.mark.parametrize("secure", [True, False])
def test_a_host_with_two_interfaces_is_reached_by_those_on_its_second(
    lab: Lab, keys: Path, secure: bool
) -> None:
    # Its default route is through `west`, where nobody else is: that address it tells first.
    a = lab.host("a", ["west", "east"])
    rest = [lab.host(name, ["east"]) for name in "bcd"]
    peers = start_peers([a, *rest], seeds=rest[:1], keys=keys if secure else None)
    await_views(peers, peers)
    await_probes(peers, 6)
    assert removals(peers) == {}  # nobody took it for dead while it looked for the way
    told = [f"tcp://{address_of(a, network)}" for network in ("west", "east")]
    assert [peer.view()["a"]["endpoints"] for peer in peers] == [told] * len(peers)


def test_the_command_line_tells_the_members_of_a_host(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    command = [sys.executable, "-m", "nodes.cli", "members", "--json"]
    for host in hosts:
        done = host.run(command, environment=peer_environment())
        (view,) = json.loads(done.stdout)["views"]
        assert view["node"] == host.name  # each host has a control socket of its own
        assert {member["name"] for member in view["members"]} == names(hosts)
