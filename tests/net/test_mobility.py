"""A publisher that moves between brokers over real sockets: everything arrives, once, in order."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from nodes.scenarios.mobility_world import MobileWorld
from nodes.scenarios.registry import find
from nodes.stage import play
from overlay.predicates import Constraint
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.content import Content
from protocols.mobility import Mobility

WANTED = Constraint.parse("x >= 0")
MOVES = ("b1", "b2", "b0", "b2")


def around(stage: Stage) -> Scenario:
    """A publisher goes around three brokers, and publishes all the time."""
    world = MobileWorld(stage, [("b0", "b1"), ("b1", "b2")])
    world.start_mover("m", "b0", algorithm="delayed", handover="lossless")
    content, mobility = stage.protocol("m", Content), stage.protocol("m", Mobility)
    yield Until(lambda: content.broker == "b0", 20, "a broker")
    world.advertise("m", "p", WANTED)
    for name in world.brokers:
        world.subscribe(name, "s", WANTED)
    ways = [(stage.protocol("b0", Content), "b1"), (stage.protocol("b1", Content), "b2")]
    yield Until(
        lambda: all(any(here.subscriptions(hop)) for here, hop in ways), 20, "subscriptions"
    )
    published = []
    for broker in MOVES:
        world.movein("m", broker)
        for _ in range(20):
            published.append(world.publish("m", "p", {"x": 1}))
            yield Pause(0.01)
        yield Until(lambda: not mobility.is_moving, 20, f"a tree that stands at {broker}")
    due = len(published) * len(world.brokers)
    yield Until(lambda: len(world.delivered) >= due, 20, f"{due} deliveries")
    assert world.arrived() == {f"{name}/s": {"m/p": published} for name in world.brokers}


def test_a_publisher_moves_around_under_load() -> None:
    trio.run(partial(play, around, size=3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobility-lossless", "mobility-silent", "mobility"])
def test_a_scenario_holds_over_zeromq(name: str) -> None:
    entry = find(name)
    trio.run(partial(play, entry.script, size=entry.nodes, seed=1))
