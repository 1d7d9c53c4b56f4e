"""A publisher that has to wait says so, and goes on when it can."""

import pytest

from bench.topics_memory import MESSAGE, World, history_bound
from protocols.topics.config import TopicConfig
from protocols.topics.publishing import ITEM_BYTES, Publisher

SIZE = len(MESSAGE) + ITEM_BYTES


@pytest.mark.parametrize("mode", ["ack", "nack"])
def test_history_never_passes_its_bounds(mode: str) -> None:
    over, fullest = history_bound(mode, 3000)
    assert over == 0
    assert fullest > 0.9


def test_room_that_is_too_small_for_what_was_refused_is_no_room() -> None:
    world = World(2)
    sim = world.sim
    world.subscribe("n1", "load")
    sim.run_for(5)
    config = TopicConfig(history_bytes=2000, history_messages=1000)
    out: Publisher = sim.call("n0", world.topics("n0").publish, "load", config)
    sim.run_for(1)
    while sim.call("n0", out.put, MESSAGE, SIZE):
        pass
    assert config.history_bytes - out.history.bytes > ITEM_BYTES  # a smaller one would fit
    before = out.has_room
    sim.run_for(1)
    assert (before, out.has_room) == (False, True)
    assert sim.call("n0", out.put, MESSAGE, SIZE)
