"""Scenarios of the hash table that the simulator plays, unchanged, over ZeroMQ."""

from functools import partial

import pytest
import trio

from nodes.scenarios.registry import find
from nodes.stage import play


@pytest.mark.parametrize(
    ("name", "secure"), [("dht-one-zone", True), ("dht-crash", False)], ids=["secure", "crash"]
)
def test_keys_are_linearizable_over_zeromq(name: str, secure: bool) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=1, secure=secure))
