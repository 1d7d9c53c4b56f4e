"""Zones over ZeroMQ: the scenarios of the simulator, unchanged."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from nodes.scenarios.registry import find
from nodes.stage import play


@pytest.mark.parametrize(
    ("name", "secure"),
    [
        ("zones-forming", False),
        ("zones-delegate-crash", True),
        ("zones-all-delegates-crash", False),
    ],
)
def test_zones_hold_over_zeromq(name: str, secure: bool) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=9, seed=1, secure=secure))
