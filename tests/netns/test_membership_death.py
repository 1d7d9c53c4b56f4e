"""Peers that die, as a process or with their whole machine, and that come back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nodes.settings import node_config
from protocols.membership import MembershipSettings
from protocols.membership.probing import JITTER
from protocols.membership.suspects import SECOND_HAND
from protocols.membership.suspicion import suspicion_timeout
from tests.netns.lab import Lab
from tests.netns.peers import HASTY, await_views, lives, removals, start_peers
from tests.netns.waiting import until

# The links of a silent host break after a while, too: here only probes may tell.
PATIENT_LINKS = (*HASTY, "net.heartbeat=60", "net.unacked_within=60")
STARVED = 10.0  # s that a busy machine may add


def slowest_detection(members: int) -> float:
    """Seconds from silence to removal everywhere: one accuser, of whom others only hear."""
    settings = node_config("a", insecure=True, sets=PATIENT_LINKS).section(MembershipSettings)
    noticed = settings.probe_period * (1 + JITTER) + settings.probe_timeout
    suspected = noticed + settings.indirect_timeout
    judged = suspected + suspicion_timeout(settings, members, accusers=1, abrupt=False)
    return judged + SECOND_HAND * settings.probe_period


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
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=PATIENT_LINKS)
    await_views(peers, peers)
    before = lives(peers)
    *others, _ = peers
    *_, victim = hosts
    unplugged = time.monotonic()
    lab.unplug(victim)
    await_views(others, others)
    for other in others:
        reasons = [event["reason"] for event in other.events("link-lost")]
        assert "disconnected" not in reasons  # no connection closed: it was the probes
        (failed,) = other.events("member-failed")
        assert failed["member"] == victim.name
        assert failed["monotonic"] - unplugged < slowest_detection(len(peers)) + STARVED
    lab.heal()
    await_views(peers, peers)
    assert lives(peers) == before


def test_a_machine_that_restarts_is_let_in_though_its_old_connections_never_closed(
    lab: Lab, keys: Path
) -> None:
    """Its peers know another life of that name, until they look whether it is still there."""
    hosts = lab.hosts("a", "b", "c")
    peers = start_peers(hosts, seeds=hosts[:1], keys=keys, sets=PATIENT_LINKS)
    await_views(peers, peers)
    *others, victim = peers
    earlier = others[0].view()[victim.name]["incarnation"]
    lab.unplug(hosts[-1])
    victim.kill()  # what its kernel says about that arrives nowhere
    until(lambda: not victim.process.is_running, what="its end")
    lab.heal()
    victim.start()
    await_views(peers, peers)
    until(
        lambda: all(peer.view()[victim.name]["incarnation"] > earlier for peer in peers),
        what="the new life in all views",
    )
