"""The hash table from plain threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from nodes import blocking
from nodes.dht import OperationRefused
from overlay.errors import LocalProtocolError

WITHIN = 20.0
OPTIONS: dict[str, Any] = {
    "zone": "lab",
    "insecure": True,
    "bind": ["127.0.0.1:0"],
    "sets": ["dht.serve=true", "dht.shard_bits=4", "dht.found_after=0.2"],
    "control": False,
}


def test_threads_share_a_table() -> None:
    with (
        blocking.Peer(name="ada", **OPTIONS) as ada,
        blocking.Peer(name="bob", seeds=ada.endpoints, **OPTIONS) as bob,
    ):
        bob.joined(count=2, timeout=WITHIN)
        for peer in (ada, bob):
            peer.dht.ready(timeout=WITHIN)
        table = ada.dht
        assert table.put("k", {"n": 1}, timeout=WITHIN)
        assert bob.dht.get("k") == {"n": 1}
        assert bob.dht.get("k", stale_ok=True) in (None, {"n": 1})
        assert table.contains("k")
        assert not table.put_if_absent("k", 2)
        assert table.put_and_retrieve("k", 2) == {"n": 1}
        assert table.replace("k", 3) == 2
        assert table.replace("k", 3, 4)
        assert not table.replace("k", 3, 5)
        assert not table.remove("k", 3)
        assert table.remove("k")
        table.put_many({f"k{at}": at for at in range(100)})
        assert bob.dht.get_many([f"k{at}" for at in range(100)]) == list(range(100))
        assert table.where("k").shard < 16
        with pytest.raises(LocalProtocolError, match="None stands for no value"):
            table.put("k", None)
        done: list[int] = []

        def add(peer: blocking.Peer) -> None:
            for _ in range(20):
                while True:
                    now = peer.dht.get("sum") or 0
                    if peer.dht.replace("sum", now, now + 1) or (
                        not now and peer.dht.put_if_absent("sum", 1)
                    ):
                        break
                done.append(1)

        adders = [threading.Thread(target=add, args=(peer,)) for peer in (ada, bob)]
        for one in adders:
            one.start()
        for one in adders:
            one.join(WITHIN)
        assert len(done) == 40
        assert table.get("sum") == 40


def test_a_watch_in_a_thread() -> None:
    with blocking.Peer(name="ada", **OPTIONS) as ada:
        ada.dht.ready(timeout=WITHIN)
        with ada.dht.watch("k", timeout=WITHIN) as values:
            assert next(values) is None
            ada.dht.put("k", 1)
            assert next(values) == 1
        assert list(values) == []  # it is closed
        with ada.dht.watch("k", timeout=0.05) as values:
            assert next(values) == 1
            with pytest.raises(TimeoutError):
                next(values)


def test_who_finds_no_server_is_refused() -> None:
    sets = ["dht.operation_timeout=0.5"]
    with blocking.Peer(name="ada", **{**OPTIONS, "sets": sets}) as ada:
        with pytest.raises(OperationRefused, match="nothing was done"):
            ada.dht.get("k", timeout=WITHIN)
    with pytest.raises(LocalProtocolError, match="stopped"):
        ada.dht.get("k")
