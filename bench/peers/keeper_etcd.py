"""One etcd server through its JSON gateway, over one connection that stays open."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar

from bench.connections import free_ports
from bench.peers.keeper import WARM_UP, Keeper, timed


class EtcdKeeper(Keeper):
    """Linearizable `range` and `put` of version 3."""

    name: ClassVar[str] = "etcd"
    how: ClassVar[str] = "one copy, on disk before it is acknowledged, one server"
    program: ClassVar[str] = "etcd"
    debian: ClassVar[str] = "etcd-server"
    share: ClassVar[float] = 0.3

    def arguments(self, folder: Path, port: int) -> Sequence[str]:
        """A cluster of one."""
        (among_servers,) = free_ports(1)
        clients, servers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{among_servers}"
        return [
            *("--name", "bench", "--data-dir", str(folder / "data")),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", servers, "--initial-advertise-peer-urls", servers),
            *("--initial-cluster", f"bench={servers}"),
        ]

    def measure(self, port: int, load: Any) -> dict[str, Any]:
        """One after the other."""
        connection = HTTPConnection("127.0.0.1", port, timeout=10.0)
        value = b64encode(load.value).decode()

        def ask(path: str, **words: str) -> dict[str, Any]:
            connection.request("POST", f"/v3/kv/{path}", json.dumps(words))
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
            return answer

        def get(key: bytes) -> None:
            if ask("range", key=b64encode(key).decode()).get("count") != "1":
                raise RuntimeError(f"{key!r} was lost")

        def put(key: bytes) -> None:
            ask("put", key=b64encode(key).decode(), value=value)

        keys = load.some(load.sequential + WARM_UP)
        for key in dict.fromkeys(keys):
            put(key)
        try:
            return {"get": timed(get, keys), "put": timed(put, keys)}
        finally:
            connection.close()
