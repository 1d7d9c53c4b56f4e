"""A publisher in a process of its own that moves from broker to broker, for `bench mobility`.

`python -m bench.mobility_mover` reads orders, a line of JSON, from its standard input; tells when
it advertises; on the next line it publishes and moves, without a pause in its publications; and on
the line after that it ends, and reads further orders.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

import msgspec
import trio

from nodes.peer import Peer

TICK = 0.01  # s between two batches of publications


class Orders(msgspec.Struct, frozen=True):
    """What a publisher does."""

    name: str  # its own, and the kind of what it publishes
    brokers: list[str]  # HOST:PORT, in the order of its way
    sets: list[str]
    rate: float  # publications/s
    stay: float  # s at each broker
    away: float  # s without one, between two


async def main() -> None:
    """Publishers, one after the other."""
    while line := await trio.to_thread.run_sync(sys.stdin.buffer.readline):
        await obey(msgspec.json.decode(line, type=Orders))


async def obey(orders: Orders) -> None:
    """Be there, and move when told."""
    peer = Peer.join(
        name=orders.name,
        insecure=True,
        profile="local",
        bind=["127.0.0.1:0"],
        seeds=orders.brokers[:1],
        sets=orders.sets,
        control=False,
    )
    async with peer:
        await peer.move_to(orders.brokers[0])
        peer.content.advertise(f'n >= 0, kind = "{orders.name}"', name="load")
        await peer.mobile.stands()
        tell({"advertises": True})
        await trio.to_thread.run_sync(sys.stdin.buffer.readline)
        tell(await travel(peer, orders))
        await trio.to_thread.run_sync(sys.stdin.buffer.readline)  # until all have read


async def travel(peer: Peer, orders: Orders) -> dict[str, Any]:
    """Publish all the time, at one broker after the other."""
    published = 0
    waits: list[float] = []
    with trio.CancelScope() as publishing:
        async with trio.open_nursery() as nursery:

            async def publish() -> None:
                nonlocal published
                began = trio.current_time()
                while True:
                    due = int((trio.current_time() - began) * orders.rate)
                    while published < due:
                        peer.content.publish("load", {"n": published, "kind": orders.name})
                        published += 1
                    await trio.sleep(TICK)

            nursery.start_soon(publish)
            for broker in orders.brokers[1:]:
                await trio.sleep(orders.stay)
                peer.mobile.leave()
                await trio.sleep(orders.away)
                began = trio.current_time()
                await peer.move_to(broker)
                await peer.mobile.stands()
                waits.append(trio.current_time() - began)
            await trio.sleep(orders.stay)
            publishing.cancel()
    counts = msgspec.to_builtins(peer.content.machine.counts)
    return {"published": published, "waits": waits, "counts": counts}


def tell(facts: dict[str, Any]) -> None:
    """One line."""
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    signal.alarm(600)  # a benchmark that was killed leaves nobody behind for long
    trio.run(main)
