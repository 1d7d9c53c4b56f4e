"""One Redis server, in memory and without replicas, with redis-py and hiredis."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bench.peers.keeper import WARM_UP, Keeper, timed


class RedisKeeper(Keeper):
    """GET and SET."""

    name: ClassVar[str] = "redis"
    how: ClassVar[str] = "one copy in memory, one server"
    packages: ClassVar[Mapping[str, str]] = {"redis": "redis", "hiredis": "hiredis"}
    program: ClassVar[str] = "redis-server"

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """Nothing is written to disk."""
        words = ["--bind", "127.0.0.1", "--port", str(port)]
        return [*words, "--save", "", "--appendonly", "no"]

    def measure(self, port: int, load: Any) -> dict[str, Any]:
        """One after the other, then in pipelines of as many as are under way with ours."""
        import redis

        with redis.Redis("127.0.0.1", port) as server:
            for key in load.keys:
                server.set(key, load.value)
            keys = load.some(load.sequential + WARM_UP)
            found: dict[str, Any] = {
                "get": timed(server.get, keys),
                "put": timed(lambda key: server.set(key, load.value), keys),
            }
            for what in ("gets", "puts"):
                began = time.perf_counter()
                left = load.some(load.many)
                for start in range(0, len(left), load.under_way):
                    with server.pipeline(transaction=False) as pipeline:
                        for key in left[start : start + load.under_way]:
                            pipeline.get(key) if what == "gets" else pipeline.set(key, load.value)
                        pipeline.execute()
                found[what] = time.perf_counter() - began
            return found
