"""Partitions: each side removes the other, and when they heal the zone is whole by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.netns.lab import Lab
from tests.netns.peers import (
    HASTY,
    await_probes,
    await_views,
    lives,
    names,
    removals,
    start_peers,
)


def test_halves_part_and_merge_by_themselves(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e", "f")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=HASTY)
    await_views(peers, peers)
    before = lives(peers)
    left, right = peers[:3], peers[3:]
    lab.partition(hosts[:3], hosts[3:])
    await_views(left, left)
    await_views(right, right)
    lab.heal()  # while what each half says of the other still waits in broken links
    await_views(peers, peers)
    await_probes(peers, 12)  # three seconds, in which the last of that arrives
    await_views(peers, peers)
    assert {gone for _, gone in removals(left)} == names(right)  # and nobody of one's own half
    assert {gone for _, gone in removals(right)} == names(left)
    assert lives(peers) == before


@pytest.mark.parametrize("mute", [True, False])
def test_a_host_that_is_heard_one_way_only_is_removed_by_all(
    lab: Lab, keys: Path, mute: bool
) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=HASTY)
    await_views(peers, peers)
    before = lives(peers)
    *others, _ = peers
    *rest, odd = hosts
    sides = ([odd], rest) if mute else (rest, [odd])
    lab.partition(*sides, one_way=True)
    await_views(others, others)
    await_probes(others, 12)
    # They removed the odd one, once, and nobody else on its word.
    assert removals(others) == {(other.name, odd.name): 1 for other in others}
    await_views(others, others)
    lab.heal()
    await_views(peers, peers)
    assert lives(peers) == before


def test_helpers_vouch_for_a_host_that_one_other_cannot_hear(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=HASTY)
    await_views(peers, peers)
    lab.partition([hosts[4]], [hosts[1]], one_way=True)
    await_probes(peers, 24)  # six seconds: longer than the longest suspicion
    assert peers[1].events("link-lost") != []  # so it did cost the two their links
    assert removals(peers) == {}
    lab.heal()
    await_views(peers, peers)
