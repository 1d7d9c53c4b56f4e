"""An idle node is small: thousands of them fit."""

from __future__ import annotations

import tracemalloc

from overlay.host import Host
from overlay.sim import Simulator

NODES = 500
MOST_BYTES = 12_000


def nothing(host: Host) -> None:
    """A node without protocols: all that is measured is the framework's own."""


def test_an_idle_node_needs_less_than_its_bar() -> None:
    sim = Simulator(1)
    sim.add_node("first", nothing)
    tracemalloc.start()
    try:
        for index in range(NODES):
            sim.add_node(f"n{index}", nothing)
        per_node = tracemalloc.get_traced_memory()[0] / NODES
    finally:
        tracemalloc.stop()
    assert per_node < MOST_BYTES
