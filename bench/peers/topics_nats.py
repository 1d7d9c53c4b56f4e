"""NATS core with nats-py: a server that forwards at most once.

The subscriber's limits are lifted: by default it drops what it cannot read in time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bench.peers.carrier import TOPIC, Carrier, Load

if TYPE_CHECKING:
    from nats.aio.msg import Msg

SUBJECT = TOPIC.replace("/", ".")


class NatsTopics(Carrier):
    """A callback gets each message."""

    name: ClassVar[str] = "nats"
    packages: ClassVar[Mapping[str, str]] = {"nats": "nats-py"}
    program: ClassVar[str] = "nats-server"
    messages: ClassVar[int] = 200_000  # fewer than the server's 64 MB hold for one subscriber

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """Its defaults, on loopback."""
        return ["--addr", "127.0.0.1", "--port", str(port)]

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Until the callback has them all."""
        asyncio.run(_receive(port, ready, take))

    def send(self, port: int, load: Load) -> None:
        """Until the server has answered."""
        asyncio.run(_send(port, load))


async def _receive(port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
    import nats

    done = asyncio.Event()

    async def arrived(message: Msg) -> None:
        if not take(message.data):
            done.set()

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    await client.subscribe(SUBJECT, cb=arrived, pending_msgs_limit=0, pending_bytes_limit=0)
    await client.flush()
    ready()
    await done.wait()
    await client.close()


async def _send(port: int, load: Load) -> None:
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    publish = client.publish
    if load.rate:
        for due in load.times():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            await publish(SUBJECT, load.stamped())
    else:
        for message in load.messages():
            await publish(SUBJECT, message)
    await client.flush(timeout=30)
    await client.close()
