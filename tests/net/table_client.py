"""A program: a peer that uses the hash table under load, and tells every operation as it saw it.

    table_client.py SECONDS KEYS TASKS -- OPTIONS OF `overlay peer`

It prints `{"ready": true}` once the table answers, and at the end a line for each operation, as
`overlay.sim.linearizable` reads it. Times are those of the machine's monotonic clock, which
all its processes share.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import msgspec
import trio

from nodes.dht import OperationRefused, OutcomeUnknown, PeerTable
from nodes.peer import Peer
from nodes.peer_options import parse
from nodes.peer_process import config_of
from overlay.sim.linearizable import Kind, Operation

PAUSE = 0.02  # s between two operations of a task: the history has thousands, not millions
KINDS: tuple[Kind, ...] = (
    *("get", "get", "get", "put", "put", "replace_if", "replace_if"),
    *("put_if_absent", "remove", "remove_if", "put_and_retrieve", "contains", "replace"),
)


class Client:
    """Works on a few keys with some tasks; each write has a value of its own."""

    def __init__(self, name: str, table: PeerTable, keys: int) -> None:
        self.done: list[Operation] = []
        self._name = name
        self._table = table
        self._keys = [f"key {number}".encode() for number in range(keys)]
        self._known: dict[bytes, Any] = {}  # what a key had, for conditions that may hold
        self._number = 0

    async def work(self) -> None:
        """One operation after the other."""
        while True:
            await self._one()
            await trio.sleep(PAUSE)

    async def _one(self) -> None:
        key, kind = random.choice(self._keys), random.choice(KINDS)
        self._number += 1
        value = f"{self._name} {self._number}"
        expected = self._known.get(key, "never written")
        writes = kind not in ("get", "contains", "remove", "remove_if")
        operation = Operation(kind, key, value if writes else None, expected, self._name)
        operation.called = time.monotonic()
        try:
            operation.result = await self._call(kind, key, value, expected)
        except OperationRefused:
            return
        except OutcomeUnknown:
            self.done.append(operation)
            return
        operation.returned = time.monotonic()
        self.done.append(operation)
        if kind in ("get", "put_and_retrieve", "replace") and operation.result is not None:
            self._known[key] = operation.result

    async def _call(self, kind: Kind, key: bytes, value: str, expected: Any) -> Any:
        table = self._table
        match kind:
            case "replace_if":
                return await table.replace(key, expected, value)
            case "remove_if":
                return await table.remove(key, expected)
            case "get" | "contains" | "remove":
                return await getattr(table, kind)(key)
            case _:
                return await getattr(table, kind)(key, value)


async def main(seconds: float, keys: int, tasks: int, words: list[str]) -> None:
    """Join, work, tell."""
    options = parse(words)
    assert options is not None
    async with Peer(config_of(options)) as peer:
        await peer.joined()
        await peer.dht.ready()
        client = Client(peer.name, peer.dht, keys)
        print('{"ready": true}', flush=True)
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for _ in range(tasks):
                    nursery.start_soon(client.work)
        for operation in client.done:
            print(msgspec.json.encode(operation).decode())
        print('{"finished": true}', flush=True)


if __name__ == "__main__":
    trio.run(main, float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[5:])
