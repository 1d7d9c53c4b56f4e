"""Asking all peers what they see, and waiting until they agree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import trio

from nodes.lab.agreement import disagreements
from nodes.lab.failures import HostFailure
from nodes.lab.fleet import Fleet
from nodes.lab.plan import LabPeer
from nodes.lab.remote import Remote

LOOK_EVERY = 0.5  # s; each look costs every host a process


async def look(fleet: Fleet, hosts: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """What each peer tells, by name; a host that does not answer fails."""
    chosen = (
        None if hosts is None else [fleet.remotes[name] for name in hosts if name in fleet.remotes]
    )

    async def ask(remote: Remote) -> dict[str, dict[str, Any]]:
        told = await remote.call("status")
        for view in told["peers"].values():
            view |= {"host": remote.name, "supervised": told["supervised"]}
        return dict(told["peers"])

    answers = await fleet.each("asking its peers", ask, chosen)
    return {name: view for told in answers.values() for name, view in told.items()}


async def agreed(
    fleet: Fleet,
    peers: Mapping[str, LabPeer],
    *,
    gone: Collection[str] = (),
    zones: Collection[str] | None = None,
) -> dict[str, str]:
    """Wait until all of these peers agree; what is left to be agreed when the time is over."""
    left: dict[str, str] = {}
    with trio.move_on_after(fleet.inventory.lab.agree_within):
        while True:
            there = {name: peer for name, peer in peers.items() if peer.host in fleet.remotes}
            if zones is None:
                hosts = None
            else:
                hosts = dict.fromkeys(peer.host for peer in there.values() if peer.zone in zones)
            views = await look(fleet, hosts)
            there = {name: peer for name, peer in there.items() if peer.host in fleet.remotes}
            left = disagreements(there, views, gone=gone, zones=zones)
            if not left:
                return {}
            for name, problem in left.items():
                fleet.tell.host(there[name].host, f"{name} {problem}")
            await trio.sleep(LOOK_EVERY)
    return left


def blame(fleet: Fleet, peers: Mapping[str, LabPeer], left: Mapping[str, str]) -> None:
    """Turn what was not agreed into one failure of each host."""
    within = fleet.inventory.lab.agree_within
    for name, problem in left.items():
        failure = HostFailure(
            f"{name} {problem} after {within:g} s", f"see `overlay lab logs {name}`"
        )
        fleet.failures.setdefault(peers[name].host, failure)
