"""A publisher, or all its subscribers in one process: `python -m bench.topics_crowd JSON`.

The publisher measures its own CPU time: while it publishes, and before that while it is idle.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import trio

from bench.raw_ends import emit
from nodes.peer import Peer
from protocols.membership import Membership

TOPIC = "bench/crowd"
ZONE = "bench"
ALONE = 240  # s
SEEDS = 3


async def joined(stack: AsyncExitStack, name: str, seeds: list[str], sets: list[str]) -> Peer:
    """A peer that stays until the stack is closed."""
    return await stack.enter_async_context(
        Peer.join(
            name=name,
            zone=ZONE,
            seeds=seeds,
            insecure=True,
            bind=["127.0.0.1:0"],
            control=False,
            profile="local",
            sets=sets,
        )
    )


async def crowd(options: dict[str, Any]) -> None:
    """Subscribers who count what they get."""
    sets, got = options["sets"], [0] * options["members"]

    async def read(number: int, peer: Peer) -> None:
        messages = peer.subscribe(TOPIC)
        messages.open()
        async for batch in messages.batches():
            got[number] += len(batch.items)

    async with trio.open_nursery() as readers, AsyncExitStack() as stack:
        addresses: list[str] = []
        for number in range(options["members"]):
            peer = await joined(stack, f"member-{number}", addresses[:SEEDS], sets)
            addresses += peer.node.endpoints
            readers.start_soon(read, number, peer)
        emit(seeds=addresses[:SEEDS])
        with trio.move_on_after(options["within"]):
            while min(got) < options["count"]:  # noqa: ASYNC110 (once, at the end)
                await trio.sleep(0.1)
        emit(least=min(got), most=max(got))
        await trio.sleep_forever()  # until it is killed


async def publisher(options: dict[str, Any]) -> None:
    """Publish at a steady rate, each message by itself, once all subscribe."""
    payload = bytes(options["size"])
    async with AsyncExitStack() as stack:
        peer = await joined(stack, "publisher", options["seeds"], options["sets"])
        out = peer.publisher(TOPIC, reliability=options["mode"])
        await stack.enter_async_context(out)
        topology = peer.node.protocol(Membership, ZONE)
        while len(out.subscribers) < options["members"] or len(topology.view) <= options["members"]:  # noqa: ASYNC110
            await trio.sleep(0.1)
        if options["mode"] == "nack":  # a first message opens links
            await out.publish(payload)
        await trio.sleep(options["settling"])
        idle = await _cpu(options["seconds"])
        began = time.process_time()
        due = trio.current_time()
        for _ in range(options["count"] - (options["mode"] == "nack")):
            due += 1 / options["rate"]
            await trio.sleep_until(due)
            await out.publish(payload)
        await trio.sleep(0.5)
        busy = time.process_time() - began
        emit(idle=idle, busy=busy)
        await trio.sleep_forever()  # until it is killed


async def _cpu(seconds: float) -> float:
    began = time.process_time()
    await trio.sleep(seconds)
    return time.process_time() - began


def main() -> None:
    """Play the part that the JSON on the command line describes."""
    options = json.loads(sys.argv[1])
    signal.alarm(ALONE)  # a benchmark that was killed leaves nobody behind for long
    trio.run(publisher if options["role"] == "publisher" else crowd, options)


if __name__ == "__main__":
    main()
