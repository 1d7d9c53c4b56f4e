"""One end of a topics measurement, a process of its own: `python -m bench.topics_ends JSON`.

A receiving end prints where it listens as its first line and what it found as its second; a
publishing end prints nothing but errors. Raw ends are in `raw_ends`, those of others in
`peers/carrier_end`.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import trio

from bench.peers.carrier_end import carrier_end
from bench.raw_ends import ALONE, WARM_UP, emit, raw_end
from nodes.peer import Peer
from nodes.topics import Message, TopicPublisher, TopicSubscription, WouldWait
from protocols.topics.events import Gap

TOPIC = "bench/load"
ZONE = "bench"
AT_ONCE = 1000  # messages in one call of publish_many
STAMP = 8  # bytes at the start of a message whose delay counts


@asynccontextmanager
async def joined(options: dict[str, Any], seeds: list[str]) -> AsyncIterator[Peer]:
    """A peer as applications have it, with nothing but its address and keys set."""
    keys = {"keys": Path(options["keys"])} if options["curve"] else {"insecure": True}
    bind = [f"127.0.0.1:{options.get('bind', 0)}"]
    advertise = [f"127.0.0.1:{options['hop']}"] if options.get("hop") else []
    async with Peer.join(
        name=options["name"],
        zone=ZONE,
        seeds=seeds,
        bind=bind,
        advertise=advertise,
        control=False,
        sets=options.get("sets", ()),
        **keys,
    ) as peer:
        if peer.node.traces.recorder is not None:
            await trio.to_thread.run_sync(peer.node.traces.recorder.ready.wait)
        yield peer


# -- receiving ----------------------------------------------------------------------------------


class Tally:
    """Counts what arrives, and sees that nothing is missing, twice or out of order."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.next = 1
        self.began = 0
        self.delays: list[int] = []
        self.gaps: list[Gap] = []

    def batch(self, first: int, items: list[Any]) -> bool:
        """Take in some; False when all are here."""
        if not self.began:
            self.began = time.monotonic_ns()
        if first != self.next:
            raise RuntimeError(f"message {first} came instead of {self.next}")
        self.next += len(items)
        return self.next <= self.count

    def stamped(self, data: bytes) -> None:
        """Note how long one was on its way."""
        self.delays.append(time.monotonic_ns() - int.from_bytes(data[:STAMP], "big"))

    def tell(self, peer: Peer) -> None:
        """Print what was found; a Gap is a failure of the measurement."""
        if self.gaps:
            raise RuntimeError(f"messages were lost: {self.gaps[0]}")
        counts = peer.node.status().protocols["topics"]
        seconds = (time.monotonic_ns() - self.began) / 1e9
        cpu = time.process_time()
        emit(seconds=seconds, delays=self.delays[WARM_UP:], counts=counts, cpu=cpu)


async def by_batches(messages: TopicSubscription, tally: Tally) -> None:
    """The fastest way."""
    async for batch in messages.batches():
        if not tally.batch(batch.first, batch.items):
            return


async def one_by_one(messages: TopicSubscription, tally: Tally) -> None:
    """What most people write."""
    tally_next, count = 1, tally.count
    async for message in messages:
        if tally_next == 1:
            tally.began = time.monotonic_ns()
        if message.sequence != tally_next:
            raise RuntimeError(f"message {message.sequence} came instead of {tally_next}")
        tally_next += 1
        if tally_next > count:
            return


async def delays_by_loop(messages: TopicSubscription, tally: Tally) -> None:
    """When a task gets each message."""
    async for message in messages:
        tally.stamped(message.data)
        if not tally.batch(message.sequence, [message.data]):
            return


async def delays_by_callback(peer: Peer, tally: Tally) -> None:
    """When a callback gets each message."""
    done = trio.Event()

    def arrived(message: Message) -> None:
        tally.stamped(message.data)
        if not tally.batch(message.sequence, [message.data]):
            done.set()

    with peer.on_message(TOPIC, arrived):
        tell_where(peer)
        await done.wait()


READERS: dict[str, Callable[[TopicSubscription, Tally], Any]] = {
    "batches": by_batches,
    "one by one": one_by_one,
    "async for": delays_by_loop,
}


async def subscriber(options: dict[str, Any]) -> None:
    """Take in all messages, and stay until the publisher is done."""
    tally = Tally(options["count"])
    async with joined(options, []) as peer:
        peer.node.driver.host.listen(Gap, tally.gaps.append)
        if options["read"] == "callback":
            await delays_by_callback(peer, tally)
            tally.tell(peer)
            await trio.to_thread.run_sync(sys.stdin.read)
            return
        async with peer.subscribe(TOPIC) as messages:
            tell_where(peer)
            await READERS[options["read"]](messages, tally)
            tally.tell(peer)
            await trio.to_thread.run_sync(sys.stdin.read)


def tell_where(peer: Peer) -> None:
    """The first line: it listens, and is subscribed."""
    emit(port=int(peer.node.endpoints[0].rpartition(":")[2]), key="")


# -- publishing ---------------------------------------------------------------------------------


async def put_batches(out: TopicPublisher, payload: bytes, count: int) -> None:
    """The fastest way."""
    batch = [payload] * min(AT_ONCE, max(1, (1 << 20) // len(payload)))
    for _ in range(count // len(batch)):
        await out.publish_many(batch)
    await out.publish_many([payload] * (count % len(batch)))


async def put_each(out: TopicPublisher, payload: bytes, count: int) -> None:
    """What most people write."""
    publish = out.publish
    for _ in repeat(None, count):
        await publish(payload)


async def put_nowait(out: TopicPublisher, payload: bytes, count: int) -> None:
    """From code that cannot await, as long as nobody is behind."""
    publish = out.publish_nowait
    for _ in repeat(None, count):
        try:
            publish(payload)
        except WouldWait:
            await out.publish(payload)


async def put_at_rate(out: TopicPublisher, size: int, count: int, rate: float) -> None:
    """One at a time, each with the time when it was published."""
    rest = bytes(size - STAMP)
    due = trio.current_time()
    for _ in range(count):
        due += 1 / rate
        await trio.sleep_until(due)
        out.publish_nowait(time.monotonic_ns().to_bytes(STAMP, "big") + rest)


WRITERS: dict[str, Callable[[TopicPublisher, bytes, int], Any]] = {
    "publish_many": put_batches,
    "publish": put_each,
    "publish_nowait": put_nowait,
}


async def publisher(options: dict[str, Any]) -> None:
    """Publish all messages once everybody listens; return when all have them."""
    async with joined(options, [f"127.0.0.1:{port}" for port in options["ports"]]) as peer:
        async with peer.publisher(
            TOPIC, reliability=options["mode"], **options.get("config", {})
        ) as out:
            while len(out.subscribers) < len(options["ports"]):  # noqa: ASYNC110 (once, at the start)
                await trio.sleep(0.01)
            if options["write"] == "rate":
                await put_at_rate(out, options["size"], options["count"], options["rate"])
            else:
                await WRITERS[options["write"]](out, bytes(options["size"]), options["count"])
            await out.flush()
            await trio.to_thread.run_sync(sys.stdin.read)


def main() -> None:
    """Play the end that the JSON on the command line describes."""
    options = json.loads(sys.argv[1])
    signal.alarm(ALONE)  # a benchmark that was killed leaves nobody behind for long
    if options["side"] == "raw":
        raw_end(options)
    elif options["side"] == "peer":
        carrier_end(options)
    else:
        trio.run(subscriber if options["role"] == "receiver" else publisher, options)


if __name__ == "__main__":
    main()
