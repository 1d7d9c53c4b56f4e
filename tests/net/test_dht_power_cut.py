"""A power cut: all servers are killed under load, and come back with all that was acknowledged."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import trio

from nodes.dht import TableError
from nodes.peer import Peer
from tests.net.processes import RunningPeer, peer
from tests.net.zone import DEADLINE, FEDERATE

T = TypeVar("T")

SERVERS = ("ada", "bob", "eve")
SETS = ("dht.found_after=0.2", "dht.shard_bits=5", "dht.operation_timeout=20", FEDERATE)
ACKNOWLEDGED = 2_000  # writes before the power goes


def start(stack: ExitStack, runtime: Path, folder: Path) -> list[RunningPeer]:
    running: list[RunningPeer] = []
    sets = (*SETS, "dht.serve=true", "dht.storage=sqlite", "dht.founders=3")
    for name in SERVERS:
        words = ["--name", name, "--insecure", "--zone", "west", "--state", str(folder / name)]
        words += [word for one in sets for word in ("--set", one)]
        words += ["--seed", running[0].address] if running else []
        running.append(stack.enter_context(peer(runtime, *words)))
    return running


def client(seed: str) -> Peer:
    options: dict[str, Any] = {
        "zone": "west",
        "insecure": True,
        "control": False,
        "profile": "local",
    }
    return Peer.join(name="client", seeds=[seed], sets=list(SETS), bind=["127.0.0.1:0"], **options)


async def write_until_the_cut(servers: list[RunningPeer]) -> tuple[dict[str, int], dict[str, int]]:
    """Each task counts in a key of its own; what was acknowledged last, and what was tried."""
    acknowledged: dict[str, int] = {}
    tried: dict[str, int] = {}
    async with client(servers[0].address) as one:
        await one.dht.ready()

        async def write(key: str) -> None:
            number = 0
            while True:
                number += 1
                tried[key] = number
                try:
                    await one.dht.put(key, number)
                except TableError:
                    return
                acknowledged[key] = number

        async def cut() -> None:
            while sum(acknowledged.values()) < ACKNOWLEDGED:  # noqa: ASYNC110 (load goes on)
                await trio.sleep(0.01)
            for server in servers:
                server.signal(signal.SIGKILL)
            with trio.move_on_after(1.0):
                await trio.sleep_forever()
            one.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut)
            for task in range(50):
                nursery.start_soon(write, f"key {task}")
    return acknowledged, tried


async def read(servers: list[RunningPeer], keys: list[str]) -> list[int]:
    async with client(servers[0].address) as one:
        while True:
            try:
                values: list[int] = await one.dht.get_many(keys)
            except TableError:  # refused, while they find each other again
                continue
            return values


def test_every_acknowledged_write_is_there_after_all_were_killed(tmp_path: Path) -> None:
    runtime = tmp_path / "r"
    runtime.mkdir()
    with ExitStack() as stack:
        acknowledged, tried = trio.run(
            _within, write_until_the_cut, start(stack, runtime, tmp_path)
        )
    assert sum(acknowledged.values()) >= ACKNOWLEDGED
    with ExitStack() as stack:
        servers = start(stack, runtime, tmp_path)
        values = trio.run(_within, read, servers, list(tried))
    for key, value in zip(tried, values, strict=True):
        assert acknowledged.get(key, 0) <= (value or 0) <= tried[key], key


async def _within(work: Callable[..., Awaitable[T]], *args: object) -> T:
    with trio.fail_after(2 * DEADLINE):
        return await work(*args)
