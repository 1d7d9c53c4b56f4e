"""Overlay time between hosts whose clocks are wrong: shifted inside of each node's driver."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from nodes.control import ControlError
from tests.netns.host import Host
from tests.netns.lab import Lab
from tests.netns.peers import HASTY, LOOK_EVERY, LabPeer, await_views
from tests.netns.waiting import until

SHIFTS = {"a": 0.0, "b": 0.45, "c": -0.35, "d": 0.2}
CLOSE = 0.001  # s


def start(hosts: Collection[Host], keys: Path | None, *sets: str) -> list[LabPeer]:
    """A peer on each host, each with a clock of its own."""
    first, *_ = hosts
    return [
        LabPeer(host, [first], keys, (f"net.clock_offset={SHIFTS[host.name]}", *sets))
        for host in hosts
    ]


def told(peers: Collection[LabPeer]) -> dict[str, dict[str, Any]]:
    """What `overlay time` tells of each; nothing while one starts."""
    try:
        return {peer.name: peer.ask("time") for peer in peers}
    except ControlError:
        return {}


def places(facts: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Overlay time against the machine's one clock, exactly: all must have the same."""
    return {name: one["offset"] + SHIFTS[name] for name, one in facts.items()}


def spread(facts: dict[str, dict[str, Any]]) -> float:
    found = places(facts).values()
    return max(found) - min(found)


def await_agreement(peers: Collection[LabPeer], close: float = CLOSE) -> dict[str, dict[str, Any]]:
    """Wait until all have the time of one root, so close to each other."""

    def agree() -> dict[str, dict[str, Any]]:
        facts = told(peers)
        standings = {(one["synchronised"], one["root"]) for one in facts.values()}
        good = len(standings) == 1 and next(iter(standings))[0] and spread(facts) <= close
        return facts if good else {}

    return until(agree, every=LOOK_EVERY, what=f"times within {close} s")


def test_hosts_with_wrong_clocks_agree_within_a_millisecond(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d")
    peers = start(hosts, keys)
    facts = await_agreement(peers)
    for one in facts.values():
        assert one["error"] < 0.1
        assert all(source["state"] in ("chosen", "agrees") for source in one["sources"])


def test_the_roots_death_moves_nobody(lab: Lab, keys: Path) -> None:
    hosts = lab.hosts("a", "b", "c", "d")
    peers = start(hosts, keys, *HASTY)
    await_views(peers, peers)
    before = await_agreement(peers)
    root = before["a"]["root"]
    next(peer for peer in peers if peer.name == root).kill()
    rest = [peer for peer in peers if peer.name != root]
    await_views(rest, rest)

    def another_root() -> bool:
        return {one["root"] for one in told(rest).values()}.isdisjoint({root})

    until(another_root, every=LOOK_EVERY, what="another root")
    after = await_agreement(rest)
    moved = places(after)[rest[0].name] - places(before)[rest[0].name]
    assert abs(moved) < 0.02


def test_an_asymmetric_way_is_inside_of_the_stated_error(lab: Lab) -> None:
    a, b, c = lab.hosts("a", "b", "c")
    lab.delay(40, hosts=[c])  # only what it sends
    peers = start([a, b, c], None)
    facts = await_agreement(peers, close=0.1)
    root = facts["c"]["root"]
    for name, place in places(facts).items():
        off = abs(place - places(facts)[root])
        assert off <= facts[name]["error"] + facts[root]["error"], name
    assert spread(facts) > 0.005, "an asymmetry that nobody can see must have shown here"
