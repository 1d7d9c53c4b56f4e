"""Redis streams: a server keeps what was added, and readers ask for what comes after their last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from bench.peers.carrier import TOPIC
from bench.peers.topics_redis import AT_ONCE, RedisServed, client

if TYPE_CHECKING:
    import redis

FIELD = b"d"


class RedisStreams(RedisServed):
    """XADD and a blocking XREAD."""

    name: ClassVar[str] = "redis-streams"
    messages: ClassVar[int] = 100_000

    def receive(self, port: int, ready: Callable[[], None], take: Callable[[bytes], bool]) -> None:
        """Read from the stream's beginning, as many at once as there are."""
        last = b"0"
        with client(port) as server:
            ready()
            while True:
                for _, entries in server.xread({TOPIC: last}, count=AT_ONCE, block=1000):
                    last = entries[-1][0]
                    for _, fields in entries:
                        if not take(fields[FIELD]):
                            return

    def put(self, server: redis.Redis, message: bytes) -> None:
        """Add one."""
        server.xadd(TOPIC, {FIELD: message})
