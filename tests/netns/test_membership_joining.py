"""Ways into a zone: whoever is a member can be a seed, and has an address that others reach."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from nodes.spawning import peer_environment
from tests.netns.lab import Lab
from tests.netns.peers import address_of, await_views, start_peers


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


def test_a_host_with_two_interfaces_is_reached_by_those_on_its_second(lab: Lab, keys: Path) -> None:
    # Its default route is through `west`, where nobody else is; so that address it tells first.
    a = lab.host("a", ["west", "east"])
    b, c, d = (lab.host(name, ["east"]) for name in "bcd")
    peers = start_peers([a, b, c, d], seeds=[b], keys=keys)
    await_views(peers, peers)
    for peer in peers:
        told = peer.view()["a"]["endpoints"]
        assert f"tcp://{address_of(a, 'east')}" in told
    command = [sys.executable, "-m", "nodes.cli", "members", "--json"]
    done = d.run(command, environment=peer_environment())
    (view,) = json.loads(done.stdout)["views"]
    assert {member["name"] for member in view["members"]} == set("abcd")
