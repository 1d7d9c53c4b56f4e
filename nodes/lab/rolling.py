"""Restarts that nobody notices: zone after zone, member by member, each when all agree again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from nodes.lab.failures import HostFailure
from nodes.lab.fleet import Fleet
from nodes.lab.plan import LabPeer
from nodes.lab.remote import Remote
from nodes.lab.watching import agreed

Restart = Callable[[Remote, LabPeer], Awaitable[object]]


async def one_by_one(
    fleet: Fleet,
    peers: Mapping[str, LabPeer],
    chosen: Mapping[str, LabPeer],
    restart: Restart,
    *,
    doing: str,
) -> list[str]:
    """Restart the chosen ones among all peers; the names of those that were.

    It stops at the first that does not come back, while most of its zone still runs as it did.
    """
    done: list[str] = []
    order = sorted(chosen.values(), key=lambda peer: (not peer.is_member, peer.zone))
    for number, peer in enumerate(order, start=1):
        fleet.tell.step(f"{doing} {peer.name} of zone {peer.zone}, {number} of {len(order)}")
        remote = fleet.remotes.get(peer.host)
        if remote is None:
            continue  # its host failed meanwhile, and is named
        try:
            await restart(remote, peer)
        except HostFailure as failure:
            fleet.fail(peer.host, failure)
            break
        done.append(peer.name)
        left = await agreed(fleet, peers, zones=[peer.zone] if peer.is_member else None)
        if left:
            name, problem = next(iter(left.items()))
            where = peers[name].host
            why = HostFailure(f"{name} {problem}", f"see `overlay lab logs {name}`")
            fleet.failures.setdefault(where, why)
            break
    return done
