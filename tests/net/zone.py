"""Zones for tests: peers in this process, or in processes of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio

from nodes.peer import Peer
from overlay.security.authority import Authority
from overlay.security.rights import Rights
from tests.net.processes import RunningPeer, peer

DEADLINE = 30.0
OVERLAY = "testing"

FEDERATE = "zones.settle=0.1"  # at once: a table is founded only once delegates looked around
NO_DELEGATES = "zones.settle=600"  # whose attributes would appear among those of a test


class Zone:
    """Makes peers of one overlay; secure ones get their keys here."""

    def __init__(self, folder: Path, *, secure: bool) -> None:
        self._folder = folder
        self._authority = Authority.create(folder, OVERLAY) if secure else None

    def peer(
        self,
        name: str,
        *seeds: Peer,
        zones: tuple[str, ...] = ("*",),
        publish: tuple[str, ...] = ("**",),
        subscribe: tuple[str, ...] = ("**",),
        table: str = "read write",
        **more: Any,
    ) -> Peer:
        """A peer that meets these; not started."""
        if self._authority is not None and not (self._folder / name).exists():
            may = ("read" in table, "write" in table)
            rights = Rights(zones, (), publish, subscribe, *may)
            self._authority.issue(name, rights, 1).save(self._folder)
        options: dict[str, Any] = {"zone": "west", "control": False, "bind": ["127.0.0.1:0"]}
        options["sets"] = [NO_DELEGATES]
        return Peer.join(
            name=name,
            seeds=[seed.node.endpoints[0] for seed in seeds],
            overlay=OVERLAY,
            insecure=self._authority is None,
            keys=self._folder if self._authority is not None else None,
            profile="local",
            **options | more,
        )


@asynccontextmanager
async def crashing(peer: Peer) -> AsyncIterator[trio.CancelScope]:
    """Run a peer that a cancel ends as a crash does: its protocols are not told."""
    over = trio.Event()
    scope = trio.CancelScope()

    async def live(task_status: trio.TaskStatus[None]) -> None:
        try:
            with scope:
                async with peer:
                    task_status.started()
                    await trio.sleep_forever()
        finally:
            over.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(live)
        yield scope
        scope.cancel()
        await over.wait()


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, not for a time."""
    with trio.fail_after(DEADLINE):
        while not condition():  # noqa: ASYNC110 (it may be about anything)
            await trio.sleep(0.01)


class Narrator:
    """A peer in a process of its own, and all that it told of its zone."""

    def __init__(self, running: RunningPeer) -> None:
        self.running = running
        self.events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.running.process.stdout is not None
        for line in self.running.process.stdout:
            with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()

    def told(self, kind: str, member: str) -> list[dict[str, Any]]:
        """The events of that kind about that member, so far."""
        return [
            event
            for event in tuple(self.events)
            if event["event"] == kind and event.get("member") == member
        ]

    def await_told(self, kind: str, member: str, count: int = 1) -> dict[str, Any]:
        """Wait until it told that so often."""
        with self._news:
            found = self._news.wait_for(lambda: len(self.told(kind, member)) >= count, DEADLINE)
        assert found, f"never told {kind} of {member}: {self.events}"
        return self.told(kind, member)[count - 1]

    def end(self) -> None:
        """Wait until all that it said is read; the process must have ended."""
        self._reader.join(DEADLINE)


@contextmanager
def narrator(runtime: Path, name: str, *words: str) -> Iterator[Narrator]:
    """Run `overlay peer` in zone west."""
    place = ("--zone", "west", "--set", NO_DELEGATES)
    with peer(runtime, "--name", name, *place, "--events", *words) as running:
        one = Narrator(running)
        yield one
        running.process.kill()
        one.end()
