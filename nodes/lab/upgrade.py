"""`overlay lab upgrade` and `restart`: another build, or the same, one member at a time."""

from __future__ import annotations

from collections.abc import Collection

from nodes.lab import plan as planning
from nodes.lab.fleet import Fleet, connected
from nodes.lab.inventory import Inventory
from nodes.lab.operator import LabError
from nodes.lab.outcome import Outcome
from nodes.lab.plan import LabPeer
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote
from nodes.lab.rolling import Restart, one_by_one
from nodes.lab.up import install
from nodes.lab.watching import agreed, blame, look


async def upgrade(inventory: Inventory, tell: Progress, *, rebuild: bool) -> Outcome:
    """Install this build beside the old one on all hosts, then restart peers from it.

    Interrupted, it goes on where it was: peers that run from this build are left alone.
    """
    async with connected(inventory, inventory.hosts, tell) as fleet:
        outcome = Outcome(lab=inventory.name)
        peers = await _present(fleet)
        houses = await install(fleet, rebuild=rebuild)
        old = {
            name: peer
            for name, peer in peers.items()
            if peer.host in fleet.remotes
            and fleet.remotes[peer.host].facts["specs"][name]["env"] != houses[peer.host]
        }

        async def restart(remote: Remote, peer: LabPeer) -> None:
            await remote.call("restart", names=[peer.name], env=houses[remote.name])

        await _roll(fleet, peers, old, restart, outcome, doing="upgrading")
        await fleet.each("tidying up", lambda remote: remote.call("prune"))
        outcome.take(fleet)
        return outcome


async def restart(
    inventory: Inventory, tell: Progress, *, names: Collection[str], at_once: bool
) -> Outcome:
    """Restart these peers, or those of these hosts; all when none is named."""
    async with connected(inventory, inventory.hosts, tell) as fleet:
        outcome = Outcome(lab=inventory.name)
        peers = await _present(fleet)
        chosen = {n: p for n, p in peers.items() if not names or n in names or p.host in names}

        async def one(remote: Remote, peer: LabPeer) -> None:
            await remote.call("restart", names=[peer.name], env="")

        async def together(remote: Remote) -> None:
            mine = [name for name, peer in chosen.items() if peer.host == remote.name]
            if mine:
                await remote.call("restart", names=mine, env="")
                outcome.restarted += mine

        if at_once:
            tell.step("restarting all at once")
            await fleet.each("restarting", together)
            chosen = {}
        await _roll(fleet, peers, chosen, one, outcome, doing="restarting")
        outcome.take(fleet)
        return outcome


async def _roll(
    fleet: Fleet,
    peers: dict[str, LabPeer],
    chosen: dict[str, LabPeer],
    restart: Restart,
    outcome: Outcome,
    *,
    doing: str,
) -> None:
    if chosen:
        fleet.tell.step("waiting until all zone tables agree, before anything is touched")
        left = await agreed(fleet, peers)
        if left:
            blame(fleet, peers, left)
            outcome.peers = await look(fleet)
            return
    outcome.restarted += await one_by_one(fleet, peers, chosen, restart, doing=doing)
    if not fleet.failures:
        fleet.tell.step("waiting until all zone tables agree")
        blame(fleet, peers, await agreed(fleet, peers))
    outcome.peers = await look(fleet)


async def _present(fleet: Fleet) -> dict[str, LabPeer]:
    """The peers of the inventory that were started; LabError when there are none at all."""
    fleet.tell.step("asking the hosts")
    await fleet.each("asking", lambda remote: remote.learn({}))
    peers = {
        name: peer
        for name, peer in planning.plan(fleet.inventory).items()
        if peer.host in fleet.remotes and name in fleet.remotes[peer.host].facts["specs"]
    }
    if not peers and not fleet.failures:
        raise LabError("nothing runs on the hosts yet: `overlay lab up` first")
    return peers
