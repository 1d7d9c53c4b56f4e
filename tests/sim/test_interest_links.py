"""The overlay that `bench interest-links` builds in turns is the one that peers agree on."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from bench.interest_overlays import Ours, one_order, own_order, ring_per_topic
from bench.interest_workload import Subscriptions, judge, link, no_links, subscriptions, views
from overlay.host import Host
from overlay.ids import NodeId
from overlay.sim import Simulator
from protocols.topology import Topology, TopologySettings
from tests.unit.topology.fixed_view import ZONE, FixedMembership, Roster

SETTLING = 300.0  # s of the world: redundant links go one by one


def agreed_degree(interest: Subscriptions, settings: TopologySettings) -> float:
    """What members reach in the simulator, all of whom know all from the start."""
    sim = Simulator(1)
    topics = {name: ",".join(sorted(words)) for name, words in interest.items()}
    roster = Roster(interest, topics)

    def member(host: Host) -> None:
        known = host.add(FixedMembership, roster, ZONE)
        host.add(Topology, settings, ZONE, members=known.view)

    for name in interest:
        sim.add_node(name, member)
    sim.run_for(SETTLING)
    return mean(sim.protocol(name, Topology, ZONE).degree for name in interest)


@pytest.mark.parametrize("max_degree", [1024, 6])
def test_turns_build_what_the_protocol_agrees_on(max_degree: int) -> None:
    settings = TopologySettings(
        ring_links=1, structured_links=0, random_links=0, max_degree=max_degree
    )
    interest = subscriptions(60, 60, 12, 0.5, Random(1))
    built = judge(Ours(views(interest, 1.0, 1, Random(2)), settings, Random(3)).build(), interest)
    assert built.degree == pytest.approx(agreed_degree(interest, settings), rel=0.05)
    assert built.largest <= max_degree + 2


def test_rings_connect_every_topic_and_share_links_in_one_order() -> None:
    interest = subscriptions(60, 30, 10, 0.5, Random(1))
    own, one = (
        judge(ring_per_topic(interest, order), interest) for order in (own_order, one_order)
    )
    assert own.connected == one.connected == 1.0
    assert one.degree < own.degree <= 20


def test_who_is_linked_over_others_only_is_apart() -> None:
    x, y = frozenset({"x"}), frozenset({"y"})
    interest: Subscriptions = {"a": x, "b": y, "c": x, "d": x, "e": y}
    links = no_links(interest)
    pairs: list[tuple[NodeId, NodeId]] = [("a", "b"), ("b", "c"), ("c", "d"), ("b", "e")]
    for one, other in pairs:
        link(links, one, other)
    found = judge(links, interest)
    assert found.connected == 0.5  # a reaches c and d only over b, who wants something else
    assert found.apart == pytest.approx(1 / 5)
    assert (found.degree, found.largest) == (1.6, 3)
