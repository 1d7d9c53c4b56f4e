"""`overlay lab status`, `logs` and `exec`: what changes nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from nodes.lab.agreement import disagreements
from nodes.lab.failures import HostFailure
from nodes.lab.fleet import connected
from nodes.lab.inventory import Host, Inventory
from nodes.lab.outcome import Outcome
from nodes.lab.plan import peers_of, plan
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote
from nodes.lab.watching import look


async def status(inventory: Inventory, tell: Progress) -> Outcome:
    """What every peer sees now; a host whose peers do not agree counts as failed."""
    outcome = Outcome(lab=inventory.name)
    async with connected(inventory, inventory.hosts, tell) as fleet:
        tell.step("asking all peers")
        outcome.peers = await look(fleet)
        peers = plan(inventory)
        there = {name: peer for name, peer in peers.items() if peer.host in fleet.remotes}
        for name, problem in disagreements(there, outcome.peers).items():
            fix = "`overlay lab up`" if name not in outcome.peers else f"`overlay lab logs {name}`"
            shown = "was never started" if name not in outcome.peers else problem
            fleet.failures.setdefault(peers[name].host, HostFailure(f"{name} {shown}", fix))
        outcome.take(fleet)
    return outcome


async def logs(
    inventory: Inventory, tell: Progress, names: Sequence[str], lines: int
) -> tuple[dict[str, list[str]], Outcome]:
    """The last lines of these peers, or of these hosts' peers; all when none is named."""
    hosts = [
        host
        for host in inventory.hosts
        if not names or {host.name, *(peer.name for peer in peers_of(host))} & set(names)
    ]
    outcome = Outcome(lab=inventory.name)
    async with connected(inventory, hosts, tell) as fleet:

        async def read(remote: Remote) -> dict[str, list[str]]:
            whole = not names or remote.name in names
            chosen = [p.name for p in peers_of(remote.host) if whole or p.name in names]
            told: dict[str, list[str]] = await remote.call("logs", names=chosen, lines=lines)
            return told

        answers = await fleet.each("reading", read)
        outcome.take(fleet)
    return {name: said for told in answers.values() for name, said in told.items()}, outcome


async def execute(
    inventory: Inventory,
    tell: Progress,
    hosts: Sequence[Host],
    command: Sequence[str],
    within: float,
) -> tuple[dict[str, dict[str, Any]], Outcome]:
    """Run a command on these hosts: its exit code and what it printed, by host.

    One word is a line of sh, several are a command and its arguments.
    """
    line = command[0] if len(command) == 1 else shlex.join(command)
    outcome = Outcome(lab=inventory.name)
    async with connected(inventory, hosts, tell) as fleet:
        tell.step(f"running {line}")

        async def one(remote: Remote) -> dict[str, Any]:
            done = await remote.ssh.run(remote.environment_line(line), within=within)
            out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
            return {"code": done.returncode, "out": out, "err": err}

        answers = await fleet.each("running", one)
        outcome.take(fleet)
    return answers, outcome
