"""PyPI's kademlia: three nodes in a process of their own, and one that asks in this one.

`python -m bench.peers.keeper_kademlia PORT…` runs the three until its input ends.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

from bench.connections import free_ports
from bench.peers.keeper import WARM_UP, Keeper

NODES = 3


class KademliaKeeper(Keeper):
    """Iterative lookups over UDP, eventually consistent."""

    name: ClassVar[str] = "kademlia"
    how: ClassVar[str] = "a copy on each of three nodes in memory, without consensus"
    packages: ClassVar[Mapping[str, str]] = {"kademlia": "kademlia"}
    share: ClassVar[float] = 0.1

    def measure(self, port: int, load: Any) -> dict[str, Any]:
        """One after the other."""
        ports = free_ports(NODES)
        words = [sys.executable, "-m", "bench.peers.keeper_kademlia", *map(str, ports)]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as others:
            try:
                assert others.stdout is not None
                others.stdout.readline()  # all of them listen
                return asyncio.run(_ask(port, ports, load))
            finally:
                others.communicate()


async def _ask(port: int, ports: list[int], load: Any) -> dict[str, Any]:
    from kademlia.network import Server
    from kademlia.storage import ForgetfulStorage

    class Nothing(ForgetfulStorage):  # type: ignore[misc, unused-ignore]
        """The one who asks keeps no copy, or a get would be a look into its own memory."""

        def __setitem__(self, key: bytes, value: bytes) -> None:
            """Keep nothing."""

    node = Server(storage=Nothing())
    await node.listen(port, interface="127.0.0.1")
    try:
        await node.bootstrap([("127.0.0.1", one) for one in ports])
        keys = [key.decode() for key in load.some(load.sequential + WARM_UP)]
        for key in dict.fromkeys(keys):
            await node.set(key, load.value)

        async def get(key: str) -> None:
            if await node.get(key) != load.value:
                raise RuntimeError(f"{key!r} was lost")

        return {
            "get": await _timed(get, keys),
            "put": await _timed(lambda key: node.set(key, load.value), keys),
        }
    finally:
        node.stop()


async def _timed(operation: Callable[[str], Awaitable[object]], keys: list[str]) -> list[int]:
    now, delays = time.perf_counter_ns, []
    for key in keys:
        began = now()
        await operation(key)
        delays.append(now() - began)
    return delays[WARM_UP:]


async def _serve(ports: list[int]) -> None:
    from kademlia.network import Server

    nodes = [Server() for _ in ports]
    for node, port in zip(nodes, ports, strict=True):
        await node.listen(port, interface="127.0.0.1")
        await node.bootstrap([("127.0.0.1", one) for one in ports if one != port])
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for node in nodes:
        node.stop()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(_serve([int(word) for word in sys.argv[1:]]))
