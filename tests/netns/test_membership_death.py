"""Peers that die, as a process or with their whole machine, and that come back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.netns.lab import Lab
from tests.netns.peers import HASTY, await_views, lives, removals, start_peers


@pytest.mark.parametrize("secure", [True, False])
def test_a_killed_peer_is_removed_and_returns_in_a_higher_life(
    lab: Lab, keys: Path, secure: bool
) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys if secure else None)
    await_views(peers, peers)
    *others, victim = peers
    earlier = others[0].view()[victim.name]["incarnation"]
    victim.kill()
    await_views(others, others)
    victim.start()
    await_views(peers, peers)
    assert {peer.view()[victim.name]["incarnation"] > earlier for peer in peers} == {True}
    assert {gone for _, gone in removals(others)} == {victim.name}


def test_a_machine_that_vanishes_is_removed_and_returns(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=HASTY)
    await_views(peers, peers)
    before = lives(peers)
    *others, _ = peers
    *_, victim = hosts
    unplugged = time.monotonic()
    lab.unplug(victim)
    await_views(others, others)
    print(time.monotonic() - unplugged)
    lab.heal()
    await_views(peers, peers)
    assert lives(peers) == before
