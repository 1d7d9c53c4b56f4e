"""Two lanes for each link: each keeps its order, and between them there is none."""

from __future__ import annotations

import pytest

from overlay.sim import Constant, Delay, Loss, NetworkModel, Partition, Uniform
from tests.sim.world import World

MANY = 300


def both(world: World, count: int = MANY) -> World:
    """Tell the even numbers, and heave the odd ones, each in a tick of its own."""
    for number in range(0, count, 2):
        world.tell("a", "b", number)
        world.call("a", world.at_node("a").heave, "b", number + 1, 0)
    world.run_for(60)
    return world


def test_each_lane_keeps_its_order_and_either_may_overtake() -> None:
    world = both(World("a", "b", network=NetworkModel(latency=Uniform(0.001, 0.1))))
    b = world.at_node("b")
    assert b.notes == list(range(0, MANY, 2))
    assert b.heaps == list(range(1, MANY, 2))
    assert b.order != sorted(b.order)


def test_in_one_tick_a_lane_is_a_frame_and_bulk_is_the_later_one() -> None:
    world = World("a", "b", network=NetworkModel(latency=Constant(0.01)))
    node = world.at_node("a")

    def mixed(now: float) -> None:
        for number in range(4):
            node.heave("b", number, 0, now)
            node.tell("b", number + 10, now)

    world.call("a", mixed)
    world.run_for(1)
    assert world.at_node("b").order == [10, 11, 12, 13, 0, 1, 2, 3]
    assert (world.traffic.frames, world.traffic.messages) == (2, 8)


def test_bulk_alone_opens_a_link() -> None:
    world = World("a", "b")
    world.call("a", world.at_node("a").heave, "b", 1, 0)
    world.run_for(1)
    assert world.at_node("b").heaps == [1]
    assert world.at_node("a").links == [("up", "b")]


def test_loss_meets_the_lanes_independently() -> None:
    world = World("a", "b")
    world.faults.add(Loss(0.3))
    b = both(world, 2000).at_node("b")
    assert 620 < len(b.notes) < 780
    assert 620 < len(b.heaps) < 780
    assert {number // 2 for number in b.notes} != {number // 2 for number in b.heaps}


def test_a_delay_with_jitter_lets_one_lane_overtake_the_other() -> None:
    world = World("a", "b", network=NetworkModel(latency=Constant(0.001)))
    world.faults.add(Delay(0.0, jitter=0.5))
    b = both(world).at_node("b")
    assert b.heaps == sorted(b.heaps)
    assert b.notes == sorted(b.notes)
    assert b.order != sorted(b.order)


def test_a_partition_cuts_both() -> None:
    world = World("a", "b")
    world.faults.add(Partition((("a",), ("b",))))
    assert both(world).at_node("b").order == []
    assert world.counts["lost"] == MANY


def test_on_a_narrow_line_bulk_waits_and_the_rest_does_not() -> None:
    model = NetworkModel(latency=Constant(0), bandwidth=1000.0, queue_bytes=2500)
    world = World("a", "b", network=model)
    for number in range(5):
        world.call("a", world.at_node("a").heave, "b", number, 1000)
    world.tell("a", "b", 99)
    world.run_for(60)
    b = world.at_node("b")
    assert b.order == [99, 0, 1, 2]
    assert b.heard[0][0] < 0.1
    assert world.counts["queue-full"] == 2


@pytest.mark.parametrize("wire", [False, True])
def test_the_same_seed_gives_the_same_order(wire: bool) -> None:
    def order(seed: int) -> list[int]:
        model = NetworkModel(latency=Uniform(0.001, 0.1))
        return both(World("a", "b", network=model, seed=seed, wire=wire)).at_node("b").order

    assert order(1) == order(1)
    assert order(1) != order(2)
