"""Crashes, stops, restarts, pauses; what disks keep, and what peers' drivers notice."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.sim import Loss, NetworkModel, Partition, Uniform
from tests.sim.world import World


def store(world: World, name: str, key: bytes, value: bytes | None = b"v") -> None:
    world.call(name, world.at_node(name).keep, key, value)


def kept_after(world: World, keep: str) -> dict[bytes, bytes]:
    world.crash("a", keep)  # type: ignore[arg-type]
    world.restart("a")
    return dict(world.at_node("a").kept)


def test_a_write_is_acknowledged_after_the_storage_delay() -> None:
    world = World("a", network=NetworkModel(storage_delay=0.5))
    store(world, "a", b"k")
    world.run_for(0.49)
    assert world.at_node("a").stored == []
    world.run_for(0.02)
    assert world.at_node("a").stored == [b"k"]


def test_a_crash_of_the_process_keeps_even_what_was_not_acknowledged() -> None:
    world = World("a")
    store(world, "a", b"k")
    assert kept_after(world, "all") == {b"k": b"v"}


def test_a_lost_disk_keeps_nothing() -> None:
    world = World("a")
    store(world, "a", b"k")
    world.run_for(1)
    assert kept_after(world, "none") == {}


def test_a_power_cut_keeps_what_was_acknowledged_and_some_of_the_rest_in_order() -> None:
    survivors = set()
    for seed in range(40):
        world = World("a", seed=seed)
        store(world, "a", b"acknowledged")
        world.run_for(1)
        for number in range(3):
            store(world, "a", b"%d" % number)
        kept = list(kept_after(world, "power-cut"))
        assert kept == [b"acknowledged", b"0", b"1", b"2"][: len(kept)]
        assert kept
        survivors.add(len(kept))
    assert survivors == {1, 2, 3, 4}


def test_forgetting_is_durable_too() -> None:
    world = World("a")
    store(world, "a", b"k")
    store(world, "a", b"k", None)
    world.run_for(1)
    assert kept_after(world, "power-cut") == {}


def test_a_power_cut_can_be_aimed_between_a_write_and_its_acknowledgement() -> None:
    for seed in range(10):
        world = World("a", seed=seed)
        world.cut_power_in_next_write("a")
        witness = world.at_node("a")
        store(world, "a", b"k")
        world.run_for(1)
        assert not world.is_running("a")
        assert witness.stored == []


def test_a_dead_node_hears_nothing_and_its_timers_are_gone() -> None:
    world = World("a", "b")
    dead = world.at_node("b")
    world.call("b", dead.remind, "soon", 1.0)
    world.tell("a", "b", 1)
    world.crash("b")
    world.run_for(5)
    assert (dead.notes, dead.fired) == ([], [])
    assert world.counts["dead-target"] == 1
    world.restart("b")
    world.run_for(5)
    assert world.at_node("b") is not dead
    assert world.at_node("b").fired == []


def test_another_life_has_other_random_numbers() -> None:
    world = World("a")
    first = world.at_node("a").rng.random()
    world.crash("a")
    world.restart("a")
    assert world.at_node("a").rng.random() != first


def test_a_graceful_stop_still_says_goodbye() -> None:
    world = World("a", "b")
    world.at_node("b").stopped_with = "a"
    world.stop("b")
    world.run_for(1)
    assert world.at_node("a").notes == [-1]


def test_links_come_up_with_the_first_message_and_break_with_a_crash() -> None:
    world = World("a", "b", "c")
    world.tell("a", "b", 1, 2)
    world.run_for(1)
    assert world.at_node("a").links == [("up", "b")]
    world.crash("b")
    world.run_for(0.01)
    assert world.at_node("a").links == [("up", "b"), ("lost", "b")]
    assert world.at_node("c").links == []
    world.restart("b")
    world.tell("a", "b", 3)
    world.run_for(1)
    assert world.at_node("a").links[2:] == [("up", "b")]


def test_who_only_received_notices_a_crash_too() -> None:
    world = World("a", "b")
    world.tell("a", "b", 1)
    world.run_for(1)
    world.crash("a")
    world.run_for(0.01)
    assert world.at_node("b").links == [("lost", "a")]


def test_a_partition_is_noticed_by_heartbeat_only_if_it_stays() -> None:
    world = World("a", "b", network=NetworkModel(heartbeat_timeout=5.0))
    world.tell("a", "b", 1)
    world.run_for(1)
    short = world.faults.add(Partition([["a"], ["b"]]))
    world.run_for(4)
    world.faults.remove(short)
    world.run_for(10)
    assert world.at_node("a").links == [("up", "b")]
    world.faults.add(Partition([["a"], ["b"]]))
    world.run_for(6)
    assert world.at_node("a").links == [("up", "b"), ("lost", "b")]
    assert world.at_node("b").links == [("lost", "a")]


def test_each_end_notices_a_broken_link_once_though_both_spoke() -> None:
    world = World("a", "b", network=NetworkModel(heartbeat_timeout=5.0))
    world.tell("a", "b", 1)
    world.tell("b", "a", 2)
    world.run_for(1)
    world.faults.add(Partition([["a"], ["b"]]))
    world.run_for(6)
    for here, there in (("a", "b"), ("b", "a")):
        assert world.at_node(here).links == [("up", there), ("lost", there)]


def test_a_crash_behind_a_partition_is_noticed_late() -> None:
    world = World("a", "b", network=NetworkModel(heartbeat_timeout=5.0))
    world.tell("a", "b", 1)
    world.run_for(1)
    world.faults.add(Partition([["a"], ["b"]]))
    world.crash("b")
    world.run_for(1)
    assert world.at_node("a").links == [("up", "b")]
    world.run_for(10)
    assert world.at_node("a").links == [("up", "b"), ("lost", "b")]


def test_a_paused_node_loses_nothing_but_time() -> None:
    world = World("a", "b", network=NetworkModel(heartbeat_timeout=5.0))
    world.tell("a", "b", 1)
    world.run_for(1)
    world.call("b", world.at_node("b").remind, "soon", 1.0)
    world.pause("b")
    world.tell("a", "b", 2)
    world.run_for(3)
    assert world.at_node("b").notes == [1]
    assert world.at_node("a").links == [("up", "b")]
    world.run_for(3)
    assert world.at_node("a").links == [("up", "b"), ("lost", "b")]
    world.resume("b")
    world.run_for(1)
    assert world.at_node("b").notes == [1, 2]
    assert [key for key, _ in world.at_node("b").fired] == ["soon"]


def test_wrong_calls_are_refused_in_words() -> None:
    world = World("a")
    with pytest.raises(LocalProtocolError, match="runs; crash or stop it first"):
        world.restart("a")
    with pytest.raises(LocalProtocolError, match="there is no node z"):
        world.crash("z")
    world.crash("a")
    world.crash("a")  # a second time without harm
    with pytest.raises(LocalProtocolError, match="does not run"):
        world.at_node("a")


def test_frames_of_a_dead_sender_still_arrive() -> None:
    world = World("a", "b", network=NetworkModel(latency=Uniform(0.1, 0.2)))
    world.tell("a", "b", 1)
    world.crash("a")
    world.run_for(1)
    assert world.at_node("b").notes == [1]


def test_loss_of_everything_brings_no_link_up() -> None:
    world = World("a", "b")
    world.faults.add(Loss(1.0))
    world.tell("a", "b", 1)
    world.run_for(1)
    assert world.at_node("a").links == []
