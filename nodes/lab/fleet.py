"""All hosts at once: each step is done on all in parallel, and whoever fails is left out."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio

from nodes.lab.failures import HostFailure
from nodes.lab.inventory import Host, Inventory
from nodes.lab.progress import Progress
from nodes.lab.remote import Remote
from nodes.lab.ssh import Ssh

T = TypeVar("T")
Work = Callable[[Remote], Awaitable[T]]


class Fleet:
    """The hosts that a command works on, while their connections are open."""

    def __init__(self, inventory: Inventory, tell: Progress) -> None:
        self.inventory = inventory
        self.tell = tell
        self.remotes: dict[str, Remote] = {}  # those that are well, in the inventory's order
        self.failures: dict[str, HostFailure] = {}
        self.warnings: dict[str, HostFailure] = {}  # to be told, though the host takes part

    def fail(self, name: str, failure: HostFailure) -> None:
        """Leave a host out from now on."""
        self.failures.setdefault(name, failure)
        self.remotes.pop(name, None)

    async def each(
        self, doing: str, work: Work[T], remotes: Iterable[Remote] | None = None
    ) -> dict[str, T]:
        """Do it on all hosts that are well, or on some of them; what it gave, by host."""
        chosen = list(self.remotes.values()) if remotes is None else list(remotes)
        limiter = trio.CapacityLimiter(self.inventory.ssh.parallel)
        found: dict[str, T] = {}

        async def one(remote: Remote) -> None:
            async with limiter:
                self.tell.host(remote.name, doing)
                try:
                    found[remote.name] = await work(remote)
                except HostFailure as failure:
                    self.fail(remote.name, failure)
                    self.tell.host(remote.name, f"failed: {failure.reason}")
                else:
                    self.tell.host(remote.name, f"{doing}: done")

        async with trio.open_nursery() as nursery:
            for remote in chosen:
                nursery.start_soon(one, remote)
        return {remote.name: found[remote.name] for remote in chosen if remote.name in found}


@asynccontextmanager
async def connected(
    inventory: Inventory, hosts: Iterable[Host], tell: Progress
) -> AsyncIterator[Fleet]:
    """Connect to these hosts; those who cannot be reached are among the failures."""
    fleet = Fleet(inventory, tell)
    with tempfile.TemporaryDirectory(prefix="ovl-") as sockets:  # short: unix sockets live there
        opened = [
            Remote(
                host,
                Ssh(host, inventory.ssh, Path(sockets), inventory.path.parent),
                inventory.name,
                inventory.lab.supervise,
            )
            for host in hosts
        ]
        try:
            tell.step(f"connecting to {len(opened)} host{'s' * (len(opened) != 1)}")
            await fleet.each("connecting", lambda remote: remote.ssh.open(), opened)
            fleet.remotes = {one.name: one for one in opened if one.name not in fleet.failures}
            yield fleet
        finally:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    for remote in opened:
                        nursery.start_soon(remote.ssh.close)
