"""The demo's stream: a publisher in one zone, subscribers in all, a gateway killed in mid-stream.

Messages cross the control sockets of the peers, as for `overlay pub` and `overlay sub`. Each says
its own number, so the history is judged by what arrived, not by what the protocol says about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec
import trio

from nodes.control import Talk, follow
from overlay.ids import Ring
from protocols.gateways import gateway_key

TOPIC = "demo/ticks"
BATCH = 50  # messages
PAUSE = 0.05  # s between two batches
BATCHES = 80  # so the stream takes four seconds
KILL_AT = 20  # batches
PATIENCE = 60.0  # s for whatever must happen
LINE_BYTES = 1 << 24

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[int]).decode


class StreamReport(msgspec.Struct):
    """What subscribers got of what was published while all of them took part."""

    topic: str
    publisher: str
    victim: str  # the gateway that was killed, and its successor
    successor: str
    published: int
    subscribers: list[str]
    delivered: int
    lost: int
    duplicates: int
    out_of_order: int

    def told(self) -> str:
        """The outcome in a line."""
        share = 100 * self.delivered / (self.published * len(self.subscribers))
        return (
            f"delivered {share:.4g} %, duplicates {self.duplicates},"
            f" out of order {self.out_of_order}"
        )

    def faults(self) -> list[str]:
        """What must not be."""
        fine = not (self.lost or self.duplicates or self.out_of_order)
        return [] if fine else [f"the stream: {self.told()}"]


class Reader:
    """One subscriber, read in a thread of its own."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.numbers: list[int] = []
        self._path = path

    def read(self, last: Callable[[], int | None]) -> None:
        """Take in what comes, until the last message is here or nothing comes any more."""
        told = follow(
            self._path,
            "sub",
            timeout=PATIENCE,
            silence=PATIENCE,
            most=LINE_BYTES,
            pattern=TOPIC,
        )
        try:
            next(told)
            for batch in told:
                if "items" in batch:
                    self.numbers += _decode(msgspec.json.decode(f'"{batch["items"]}"', type=bytes))
                if self.numbers and last() == self.numbers[-1]:
                    return
        except TimeoutError:
            return  # what is missing is counted as lost
        finally:
            told.close()


class Stream:
    """Publishes until everybody takes part, then in earnest."""

    def __init__(self, publisher: str, paths: Mapping[str, Path], doomed: str) -> None:
        self.readers = [Reader(name, path) for name, path in paths.items() if name != publisher]
        self.topic = TOPIC
        self._publisher = publisher
        self._path = paths[publisher]
        self._doomed = doomed
        self._first = 0  # that counts
        self._last: int | None = None
        self._number = 0

    async def play(self, kill: Callable[[], None]) -> StreamReport:
        """Publish, and call `kill` in the midst of it."""
        async with trio.open_nursery() as nursery:
            for reader in self.readers:
                nursery.start_soon(self._read, reader)
            talk = await trio.to_thread.run_sync(self._open)
            try:
                while not all(reader.numbers for reader in self.readers):
                    await self._publish(talk, 1)
                self._first = self._number + 1
                for batch in range(BATCHES):
                    if batch == KILL_AT:
                        kill()
                    await self._publish(talk, BATCH)
                self._last = self._number
                await self._publish(talk, 0)
                await trio.to_thread.run_sync(self._finish, talk)
            finally:
                talk.close()
        return self._judge()

    async def _read(self, reader: Reader) -> None:
        try:
            await trio.to_thread.run_sync(reader.read, lambda: self._last)
        except Exception:
            if reader.name != self._doomed:  # it goes down with its peer
                raise

    def _open(self) -> Talk:
        config = {"reliability": "ack", "linger": 20.0}
        return Talk(self._path, "pub", timeout=PATIENCE, topic=TOPIC, config=config)

    async def _publish(self, talk: Talk, count: int) -> None:
        began = time.monotonic()
        numbers = list(range(self._number + 1, self._number + count + 1))
        self._number += count
        if numbers:
            line = msgspec.json.encode(_encode(numbers))
            await trio.to_thread.run_sync(talk.send, line)
        await trio.sleep(max(0.0, PAUSE - (time.monotonic() - began)))

    def _finish(self, talk: Talk) -> None:
        talk.finish()
        for _ in talk.values():  # the last word comes when all have acknowledged
            pass

    def _judge(self) -> StreamReport:
        assert self._last is not None
        published = self._last - self._first + 1
        wanted = range(self._first, self._last + 1)
        survivors = [reader for reader in self.readers if reader.name != self._doomed]
        delivered = lost = duplicates = out_of_order = 0
        for reader in survivors:
            got = [number for number in reader.numbers if number in wanted]
            delivered += len(set(got))
            lost += published - len(set(got))
            duplicates += len(got) - len(set(got))
            out_of_order += sum(a >= b for a, b in pairwise(got))
        return StreamReport(
            topic=TOPIC,
            publisher=self._publisher,
            victim=self._doomed,
            successor="",
            published=published,
            subscribers=[reader.name for reader in survivors],
            delivered=delivered,
            lost=lost,
            duplicates=duplicates,
            out_of_order=out_of_order,
        )


def gateway_among(members: list[str]) -> str:
    """Who stands for a zone of these members."""
    return Ring(members).responsible_for(gateway_key(TOPIC))
