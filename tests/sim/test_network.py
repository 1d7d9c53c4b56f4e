"""Links keep their order, datagrams do not; latency, bandwidth, LANs and contacts."""

from __future__ import annotations

import pytest

from overlay.sim import Constant, Exponential, Latency, LogNormal, NetworkModel, Uniform
from tests.sim.world import World


@pytest.mark.parametrize(
    "latency", [Constant(0.01), Uniform(0.001, 0.1), Exponential(0.05), LogNormal(0.02, 1.0)]
)
def test_a_link_keeps_its_order_under_every_latency(latency: Latency) -> None:
    world = World("a", "b", network=NetworkModel(latency=latency))
    world.tell("a", "b", *range(200))
    world.run_for(60)
    assert world.at_node("b").notes == list(range(200))


def test_messages_of_one_tick_to_one_peer_are_one_frame() -> None:
    world = World("a", "b")
    node = world.at_node("a")

    def tell_three(now: float) -> None:
        for number in range(3):
            node.tell("b", number, now)

    world.call("a", tell_three)
    world.run_for(1)
    assert world.at_node("b").notes == [0, 1, 2]
    assert (world.traffic.frames, world.traffic.messages) == (1, 3)


def test_latency_is_what_the_model_says() -> None:
    world = World("a", "b", network=NetworkModel(latency=Constant(0.25)))
    world.tell("a", "b", 1)
    world.run_for(1)
    assert world.at_node("b").heard == [(0.25, "a", 1)]


def test_between_lans_it_takes_longer() -> None:
    from tests.sim.actors import witness

    model = NetworkModel(latency=Constant(0.001), between_lans=Constant(0.1))
    world = World("a", "b", network=model)
    world.add_node("c", witness, lan="far")
    world.tell("a", "b", 1)
    world.tell("a", "c", 2)
    world.run_for(1)
    assert world.at_node("b").heard[0][0] == 0.001
    assert world.at_node("c").heard[0][0] == 0.1


def test_a_bandwidth_makes_frames_queue_and_a_full_queue_drops() -> None:
    model = NetworkModel(latency=Constant(0), bandwidth=1000.0, queue_bytes=2500)
    world = World("a", "b", network=model)
    for _ in range(5):
        world.call("a", world.at_node("a").tell_much, "b", 1000)
    world.run_for(60)
    times = [at for at, _, _ in world.at_node("b").heard]
    assert [round(at) for at in times] == [1, 2, 3]
    assert world.counts["queue-full"] == 2


def test_links_have_a_bandwidth_of_their_own_and_frames_the_weight_that_is_given() -> None:
    model = NetworkModel(
        latency=Constant(0.5),
        bandwidth=lambda source, target: 1000.0 if target == "b" else 500.0,
        weigh=lambda _source, _target, sections: 2000 * len(sections[1]),
    )
    world = World("a", "b", "c", network=model)
    for _ in range(2):
        world.tell("a", "b", 1)
        world.tell("a", "c", 1)
    world.run_for(60)
    assert [at for at, _, _ in world.at_node("b").heard] == [2.5, 4.5]
    assert [at for at, _, _ in world.at_node("c").heard] == [4.5, 8.5]


def test_multicast_reaches_the_others_of_a_lan() -> None:
    from tests.sim.actors import witness

    world = World("a", "b", "c")
    world.add_node("d", witness, lan="other")
    world.call("a", world.at_node("a").shout, 7)
    world.run_for(1)
    assert [world.at_node(name).beacons for name in "abcd"] == [[], [("a", 7)], [("a", 7)], []]


def test_datagrams_overtake_each_other_and_get_lost() -> None:
    model = NetworkModel(latency=Uniform(0.001, 0.1), datagram_loss=0.5)
    world = World("a", "b", network=model)
    for number in range(400):
        world.call("a", world.at_node("a").whisper, "b", number)
    world.run_for(1)
    numbers = [number for _, number in world.at_node("b").beacons]
    assert 140 < len(numbers) < 260
    assert numbers != sorted(numbers)


def test_strict_contacts_let_only_known_peers_and_answers_through() -> None:
    world = World("a", "b", network=NetworkModel(strict_contacts=True))
    world.tell("a", "b", 1)
    world.run_for(1)
    assert world.at_node("b").notes == []
    assert world.counts["no-contact"] == 1
    world.call("a", world.at_node("a").learn, "b")
    world.tell("a", "b", 2)
    world.run_for(1)
    world.tell("b", "a", 3)  # never learned, but it was a who called
    world.run_for(1)
    assert (world.at_node("b").notes, world.at_node("a").notes) == ([2], [3])


def test_who_is_not_there_is_counted() -> None:
    world = World("a")
    world.tell("a", "nobody", 1)
    assert world.counts["no-contact"] == 1
