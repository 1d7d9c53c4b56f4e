"""One end of a measurement of the hash table, a process: `python -m bench.dht_ends JSON`.

A server prints where it listens and lives until its input ends. A client prints what it found: how
long each sequential operation took, and the seconds for many with several under way.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from random import Random
from typing import Any

import trio
import zmq

from bench.raw_ends import emit
from nodes.dht import PeerTable
from nodes.peer import Peer

ALONE = 180  # s; longer than any measurement takes
ZONE = "bench"
WARM_UP = 200  # operations that are not counted
SETTLED = 0.5  # s that all shards have their leaders before it begins


class Load:
    """Which keys and values, and how many operations."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.keys = [f"key {number}".encode() for number in range(options["keys"])]
        self.value = bytes(options["size"])
        self.sequential: int = options["sequential"]
        self.many: int = options["many"]
        self.under_way: int = options["under_way"]

    def some(self, number: int) -> list[bytes]:
        """So many keys, each time others, the same ones in each run."""
        return Random(number).choices(self.keys, k=number)


# -- a dict behind REQ and REP --------------------------------------------------------------------


def raw_server() -> None:
    """Answer as fast as one blocking loop does, until the input ends."""
    context = zmq.Context()
    replier = context.socket(zmq.REP)
    port = replier.bind_to_random_port("tcp://127.0.0.1")
    emit(port=port)
    kept: dict[bytes, bytes] = {}
    while True:
        key, *value = replier.recv_multipart()
        if value:
            kept[key] = value[0]
            replier.send(b"")
        elif key:
            replier.send(kept.get(key, b""))
        else:
            replier.send(b"")
            return


def raw_client(options: dict[str, Any]) -> None:
    """One question after the other."""
    load = Load(options)
    context = zmq.Context()
    asker = context.socket(zmq.REQ)
    asker.connect(f"tcp://127.0.0.1:{options['ports'][0]}")
    for key in load.keys:
        asker.send_multipart((key, load.value))
        asker.recv()
    send, receive, now = asker.send, asker.recv, time.perf_counter_ns
    delays = []
    for key in load.some(load.sequential + WARM_UP):
        began = now()
        send(key)
        if receive() != load.value:
            raise RuntimeError(f"{key!r} was lost")
        delays.append(now() - began)
    emit(get=delays[WARM_UP:])
    asker.send(b"")
    asker.recv()
    context.destroy(linger=0)


# -- ours -----------------------------------------------------------------------------------------


def member(options: dict[str, Any]) -> Peer:
    """A server of the zone, with nothing but its address, and what the bench is about, set."""
    return Peer.join(
        name=options["name"],
        zone=ZONE,
        seeds=[f"127.0.0.1:{port}" for port in options["ports"][:1]],
        bind=["127.0.0.1:0"],
        control=False,
        insecure=True,
        state=options.get("state"),
        sets=options["sets"],
    )


async def server(options: dict[str, Any]) -> None:
    """Serve until the input ends."""
    async with member(options) as peer:
        emit(port=int(peer.node.endpoints[0].rpartition(":")[2]))
        await trio.to_thread.run_sync(sys.stdin.read)


async def client(options: dict[str, Any]) -> None:
    """Use the table as a member that keeps its part of it."""
    load = Load(options)
    async with member(options) as peer:
        await peer.joined(count=options["members"])
        await peer.dht.ready()
        await fill(peer.dht, load)
        await trio.sleep(SETTLED)
        found: dict[str, Any] = {
            "get": await sequential(peer.dht.get, load),
            "put": await sequential(lambda key: peer.dht.put(key, load.value), load),
        }
        found["gets"] = await by_tasks(peer.dht.get, load)
        found["puts"] = await by_tasks(lambda key: peer.dht.put(key, load.value), load)
        found["get_many"] = await by_batches(peer.dht.get_many, load)
        found["put_many"] = await by_batches(
            lambda keys: peer.dht.put_many(dict.fromkeys(keys, load.value)), load
        )
        kept = await peer.dht.get_many(load.keys)
        if kept.count(load.value) != len(load.keys):
            raise RuntimeError(f"{len(load.keys) - kept.count(load.value)} keys were lost")
        emit(**found)
        await trio.to_thread.run_sync(sys.stdin.read)


async def fill(table: PeerTable, load: Load) -> None:
    """Give each key its value."""
    await table.put_many(dict.fromkeys(load.keys, load.value))


async def sequential(operation: Callable[[bytes], Awaitable[Any]], load: Load) -> list[int]:
    """One after the other; nanoseconds of each."""
    now, delays = time.perf_counter_ns, []
    for key in load.some(load.sequential + WARM_UP):
        began = now()
        await operation(key)
        delays.append(now() - began)
    return delays[WARM_UP:]


async def by_tasks(operation: Callable[[bytes], Awaitable[Any]], load: Load) -> float:
    """Several tasks, each one after the other; seconds for all."""
    left = iter(load.some(load.many))

    async def work(keys: Iterator[bytes]) -> None:
        for key in keys:
            await operation(key)

    began = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(load.under_way):
            nursery.start_soon(work, left)
    return time.perf_counter() - began


async def by_batches(operation: Callable[[list[bytes]], Awaitable[Any]], load: Load) -> float:
    """One task, as many in one call; seconds for all."""
    left = iter(load.some(load.many))
    began = time.perf_counter()
    for _ in count():
        keys = list(islice(left, load.under_way))
        if not keys:
            break
        await operation(keys)
    return time.perf_counter() - began


def main() -> None:
    """Play the end that the JSON on the command line describes."""
    options = json.loads(sys.argv[1])
    signal.alarm(ALONE)  # a benchmark that was killed leaves nobody behind for long
    match options["role"]:
        case "raw server":
            raw_server()
        case "raw client":
            raw_client(options)
        case "server":
            trio.run(server, options)
        case _:
            trio.run(client, options)


if __name__ == "__main__":
    main()
