"""Redis pub/sub with redis-py and hiredis: a server that forwards at most once and keeps nothing.

The server's limit for subscribers that fall behind is lifted: by default it disconnects them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bench.peers.carrier import TOPIC, Carrier, Load

if TYPE_CHECKING:
    import redis

AT_ONCE = 1000  # commands in a pipeline, as many as ours publishes in one call


class RedisServed(Carrier):
    """Whoever uses a Redis server in memory."""

    packages: ClassVar[Mapping[str, str]] = {"redis": "redis", "hiredis": "hiredis"}
    program: ClassVar[str] = "redis-server"

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """Nothing is written to disk, no subscriber is too slow."""
        words = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
        return [*words, "--client-output-buffer-limit", "pubsub", "0", "0", "0"]

    def send(self, port: int, load: Load) -> None:
        """Each alone at a rate, else by pipelines."""
        with client(port) as server:
            messages = load.messages()
            if load.rate:
                for message in messages:
                    self.put(server, message)
                return
            for batch in _batches(messages):
                with server.pipeline(transaction=False) as pipeline:
                    for message in batch:
                        self.put(pipeline, message)
                    pipeline.execute()

    @abstractmethod
    def put(self, server: redis.Redis, message: bytes) -> None:
        """Publish one, or add it to a pipeline."""


class RedisTopics(RedisServed):
    """A channel."""

    name: ClassVar[str] = "redis"
    messages: ClassVar[int] = 100_000

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Read the channel."""
        with client(port) as server, server.pubsub() as channel:
            channel.subscribe(TOPIC)
            for message in channel.listen():
                if message["type"] == "subscribe":
                    ready()
                elif not take(message["data"]):
                    return

    def put(self, server: redis.Redis, message: bytes) -> None:
        """Publish one."""
        server.publish(TOPIC, message)


def client(port: int) -> redis.Redis:
    """A connection."""
    import redis

    return redis.Redis("127.0.0.1", port)


def _batches(messages: Iterator[bytes]) -> Iterator[list[bytes]]:
    while batch := list(islice(messages, AT_ONCE)):
        yield batch
