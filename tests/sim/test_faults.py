"""Each rule does what it says, only where and when it says so, and rules compose."""

from __future__ import annotations

from overlay.sim import (
    Constant,
    Delay,
    Duplicate,
    Loss,
    NetworkModel,
    OneWay,
    Partition,
    Reorder,
    Rule,
    Slow,
)
from tests.sim.world import World

MANY = 1000


def world_with(*rules: Rule) -> World:
    world = World("a", "b", "c", network=NetworkModel(latency=Constant(0.001)))
    for rule in rules:
        world.faults.add(rule)
    return world


def heard_by_b(world: World, count: int = MANY) -> list[int]:
    world.tell("a", "b", *range(count))
    world.run_for(10)
    return world.at_node("b").notes


def test_loss_loses_its_share() -> None:
    world = world_with(Loss(0.2))
    heard = heard_by_b(world)
    assert 740 < len(heard) < 860
    assert len(heard) + world.counts["lost"] == MANY
    assert heard == sorted(heard)


def test_duplication_sends_its_share_twice() -> None:
    heard = heard_by_b(world_with(Duplicate(0.2)))
    assert 1140 < len(heard) < 1260
    assert set(heard) == set(range(MANY))


def test_reordering_lets_others_overtake() -> None:
    world = world_with(Reorder(0.1, by=0.5))
    heard = heard_by_b(world)
    late = [number for at, _, number in world.at_node("b").heard if at > 0.4]
    assert sorted(heard) == list(range(MANY))
    assert heard != sorted(heard)
    assert 60 < len(late) < 140


def test_delay_keeps_the_order() -> None:
    world = world_with(Delay(0.5, jitter=0.5))
    assert heard_by_b(world) == list(range(MANY))
    times = [at for at, _, _ in world.at_node("b").heard]
    assert times[0] >= 0.501
    assert times[-1] <= 1.001


def test_a_slow_node_works_off_its_queue() -> None:
    world = world_with(Slow(["b"], 0.1))
    heard_by_b(world, 5)
    times = [round(at, 3) for at, _, _ in world.at_node("b").heard]
    assert times == [0.101, 0.201, 0.301, 0.401, 0.501]
    world.tell("b", "a", 9)
    began = world.now
    world.run_for(1)
    assert round(world.at_node("a").heard[0][0] - began, 6) == 0.001


def test_a_partition_cuts_both_ways_until_it_is_removed() -> None:
    world = world_with()
    cut = world.faults.add(Partition([["a"], ["b"]]))
    world.tell("a", "b", 1)
    world.tell("b", "a", 2)
    world.tell("c", "a", 3)  # in no group: it reaches everybody
    world.run_for(1)
    assert world.at_node("b").notes == []
    assert world.at_node("a").notes == [3]
    world.faults.remove(cut)
    world.tell("a", "b", 4)
    world.run_for(1)
    assert world.at_node("b").notes == [4]


def test_one_way_leaves_the_other_direction() -> None:
    world = world_with(OneWay("a", "b"))
    world.tell("a", "b", 1)
    world.tell("b", "a", 2)
    world.run_for(1)
    assert (world.at_node("a").notes, world.at_node("b").notes) == ([2], [])


def test_a_rule_keeps_to_its_nodes_its_time_and_its_traffic() -> None:
    world = world_with(
        Loss(1.0, nodes=["c"]), Loss(1.0, start=5.0, end=6.0), Loss(1.0, traffic="datagrams")
    )
    world.tell("a", "b", 1)
    world.tell("a", "c", 2)
    world.call("a", world.at_node("a").whisper, "b", 3)
    world.run_for(5.5)
    world.tell("a", "b", 4)
    world.run_for(1)
    world.tell("a", "b", 5)
    world.run_for(1)
    assert world.at_node("b").notes == [1, 5]
    assert world.at_node("c").notes == []
    assert world.at_node("b").beacons == []


def test_rules_compose() -> None:
    heard = heard_by_b(world_with(Duplicate(1.0), Loss(0.5), Delay(0.1)))
    assert 900 < len(heard) < 1100  # twice as many, half of them lost
    assert 700 < len(set(heard)) < 800  # a quarter lost both copies


def test_rules_apply_to_datagrams_too() -> None:
    world = world_with(Duplicate(1.0), Partition([["a", "b"], ["c"]]))
    world.call("a", world.at_node("a").shout, 1)
    world.run_for(1)
    assert world.at_node("b").beacons == [("a", 1), ("a", 1)]
    assert world.at_node("c").beacons == []
