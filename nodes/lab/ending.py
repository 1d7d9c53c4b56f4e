"""`overlay lab down` and `remove-host`: stop peers in good order, and leave nothing if wanted."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.lab import plan as planning
from nodes.lab.fleet import connected
from nodes.lab.inventory import Host, Inventory
from nodes.lab.keys import LabKeys
from nodes.lab.operator import Operator
from nodes.lab.outcome import Outcome
from nodes.lab.plan import peers_of
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote
from nodes.lab.watching import agreed, blame, look

STOP_SECONDS = 120.0


async def down(
    inventory: Inventory,
    operator: Operator,
    tell: Progress,
    *,
    hosts: Sequence[Host],
    purge: bool,
) -> Outcome:
    """Stop all peers of these hosts."""
    outcome = Outcome(lab=inventory.name)
    async with connected(inventory, hosts, tell) as fleet:
        tell.step("stopping peers" + (", removing all files" if purge else ""))

        async def stop(remote: Remote) -> None:
            told = await remote.call("stop", purge=purge, within=STOP_SECONDS)
            outcome.removed += told["stopped"]

        await fleet.each("stopping", stop)
        if purge:
            left = {n: r for n, r in operator.reached().items() if n not in fleet.remotes}
            operator.remember(left)
        outcome.take(fleet)
    return outcome


async def remove_host(
    inventory: Inventory, operator: Operator, tell: Progress, *, host: Host
) -> Outcome:
    """Stop a host's peers, revoke their keys, and wait until the others have forgotten them.

    A host that cannot be reached is removed as well: its keys are worthless from then on.
    """
    gone = [peer.name for peer in peers_of(host)]
    outcome = await down(inventory, operator, tell, hosts=[host], purge=True)
    unreachable = outcome.failures.pop(host.name, "")
    if unreachable:
        outcome.warnings[host.name] = (
            f"could not be cleaned ({unreachable}); its keys are revoked all the same"
        )
    outcome.removed = gone
    operator.remember({n: r for n, r in operator.reached().items() if n != host.name})
    others = [one for one in inventory.hosts if one.name != host.name]
    if not inventory.lab.insecure and operator.keys.is_dir():
        keys = LabKeys(operator)
        keys.revoke(gone)
    if not others:
        return outcome
    async with connected(inventory, others, tell) as fleet:
        tell.step("asking the hosts")
        await fleet.each("asking", lambda remote: remote.learn({}))
        if not inventory.lab.insecure and operator.keys.is_dir():
            told = keys.revocations().decode()
            await fleet.each("sending what is revoked", lambda one: one.call("revoked", list=told))
        peers = {
            name: peer
            for name, peer in planning.plan(inventory).items()
            if peer.host in fleet.remotes and name in fleet.remotes[peer.host].facts["specs"]
        }
        tell.step(f"waiting until nobody sees peers of {host.name} any more")
        blame(fleet, peers, await agreed(fleet, peers, gone=gone))
        outcome.peers = await look(fleet)
        outcome.take(fleet)
    return outcome
