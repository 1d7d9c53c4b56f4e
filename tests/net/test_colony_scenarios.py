"""Scenarios of colonies that the simulator plays, unchanged, over ZeroMQ."""

from functools import partial

import pytest
import trio

from nodes.scenarios.registry import find
from nodes.stage import play


@pytest.mark.parametrize("secure", [False, True], ids=["insecure", "secure"])
@pytest.mark.parametrize("name", ["colony-basic", "colony-figure-1"])
def test_a_scenario_holds_over_zeromq(name: str, secure: bool) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=1, secure=secure))
