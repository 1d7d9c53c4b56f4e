"""Bad weather removes nobody: loss, delay, reordering and copies make members slow, not dead.

All peers run with the settings of the profile, so it is the defaults that are tested.
"""

from __future__ import annotations

from pathlib import Path

from tests.netns.lab import Lab
from tests.netns.peers import await_probes, await_views, lives, removals, start_peers

PROBES = 12  # of each peer: six seconds at two in each probe_period
HANG = 3  # probes of the others while one hangs: half of the shortest suspicion


def test_all_join_through_one_seed_and_stay_while_a_tenth_is_lost(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    lab.loss(10)
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    await_probes(peers, PROBES)
    assert removals(peers) == {}
    await_views(peers, peers)


def test_insecure_peers_join_and_stay_while_a_tenth_is_lost(lab: Lab) -> None:
    hosts = lab.hosts("a", "b", "c", "d")
    lab.loss(10)
    peers = start_peers(hosts, seeds=hosts[:1], keys=None)
    await_views(peers, peers)
    await_probes(peers, PROBES)
    assert removals(peers) == {}
    await_views(peers, peers)


def test_nobody_is_removed_for_delay_and_reordering(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    before = lives(peers)
    lab.delay(50, 30, reorder=True)  # the round trip is 40 to 160 ms
    await_probes(peers, PROBES)
    assert lab.switched()["overtaking"] > 0
    assert removals(peers) == {}
    assert lives(peers) == before
    await_views(peers, peers)


def test_frames_that_come_twice_and_late_bring_nobody_back(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d")
    lab.delay(10, 8, reorder=True, copied=50)
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    *others, victim = peers
    victim.kill()
    await_views(others, others)
    await_probes(others, PROBES // 2)
    assert removals(others) == {(other.name, victim.name): 1 for other in others}
    victim.start()
    await_views(peers, peers)
    assert lab.switched()["copied"] > 0


def test_a_host_that_hangs_again_and_again_is_not_removed(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    *others, slow = peers
    lab.delay(50, 30, hosts=[slow.host])
    for _ in range(2):
        slow.process.pause()
        await_probes(others, HANG)
        slow.process.resume()
        await_probes(peers, HANG)
    assert removals(peers) == {}
    await_views(peers, peers)
