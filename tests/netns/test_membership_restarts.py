"""Peers that restart faster than anybody can be found dead."""

from __future__ import annotations

from pathlib import Path

from tests.netns.lab import Lab
from tests.netns.peers import LabPeer, await_views, names, removals, start_peers

ROUNDS = 3


def await_ready(peer: LabPeer) -> None:
    """Wait until a peer has told its addresses, whomever it knows by then."""
    peer.process.line(r"^\{")


def incarnations(peer: LabPeer) -> dict[str, int]:
    """Which life everybody is in, as a peer knows it."""
    return {name: member["incarnation"] for name, member in peer.view().items()}


def test_a_flapping_peer_takes_nobody_with_it(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys)
    await_views(peers, peers)
    *others, flapper = peers
    earlier = incarnations(others[0])
    for _ in range(ROUNDS):
        flapper.kill()
        flapper.start()
        await_ready(flapper)
    await_views(peers, peers)
    later = incarnations(others[0])
    assert {name for name in later if later[name] != earlier[name]} <= {flapper.name}
    assert later[flapper.name] > earlier[flapper.name]
    assert {gone for _, gone in removals(others)} <= {flapper.name}


def test_a_zone_is_whole_again_after_all_but_one_restarted_again_and_again(
    lab: Lab, keys: Path
) -> None:
    hosts = lab.hosts("a", "b", "c", "d", "e")
    peers = start_peers(hosts, seeds=hosts[:2], keys=keys)
    await_views(peers, peers)
    *others, stayed = peers  # no seed: the others find it because it finds them
    earlier = incarnations(stayed)
    for _ in range(ROUNDS):
        for peer in others:
            peer.kill()
        for peer in others:
            peer.start()
        for peer in others:
            await_ready(peer)
    await_views(peers, peers)
    later = incarnations(stayed)
    assert {name for name in later if later[name] > earlier[name]} >= names(others)
    assert stayed.name not in {gone for _, gone in removals(others)}
