"""How links, hops and depth grow with a zone: as log n, with a state that stays small."""

from __future__ import annotations

import tracemalloc
from math import log2
from statistics import mean

import pytest

from overlay.ids import key_of
from protocols.routing import AggregateDone, BroadcastArrived, BroadcastDone, Routed
from tests.sim.zone import Zone

ROUTES = 300
BROADCASTS = 4


@pytest.mark.parametrize("size", [30, 200, pytest.param(1000, marks=pytest.mark.slow)])
def test_hops_and_depth_grow_as_the_logarithm(size: int) -> None:
    zone = Zone(size)
    zone.settle_links()
    expected = 2 * 2 + 2 * 2 + log2(size)  # ring, random and structured links, of either end
    assert zone.mean_degree() <= expected + 1
    assert max(zone.degrees()) <= 2 * expected
    for at in range(ROUTES):
        name = zone.members[at % size]
        zone.call(name, zone.router(name).route, key_of(f"{at}"), b"")
    for at in range(BROADCASTS):
        name = zone.members[at * size // BROADCASTS]
        zone.call(name, zone.router(name).broadcast, b"")
    zone.run_for(1.0)
    routed = [(name, event) for name, event in zone.heard if isinstance(event, Routed)]
    assert len(routed) == ROUTES
    assert mean(event.hops for _, event in routed) <= log2(size)
    assert max(event.hops for _, event in routed) <= 2 * log2(size)
    arrived = [
        (name, event.id) for name, event in zone.heard if isinstance(event, BroadcastArrived)
    ]
    assert len(arrived) == len(set(arrived)) == BROADCASTS * size
    done = [event for _, event in zone.heard if isinstance(event, BroadcastDone)]
    assert [(event.reached, event.missing) for event in done] == [(size, 0)] * BROADCASTS
    assert max(event.depth for event in done) <= 2 * log2(size)


def test_each_member_gets_one_copy_and_two_messages_answer_it() -> None:
    size = 100
    zone = Zone(size)
    zone.settle_links()
    before = zone.traffic.messages
    zone.call("n0", zone.router("n0").broadcast, b"")
    zone.run_for(0.1)  # shorter than any timeout, and no LinkCheck falls into it
    forwarded = sum(zone.router(name).counts.forwarded for name in zone.members)
    assert forwarded == size - 1
    assert zone.traffic.messages - before <= 3 * (size - 1) + size


def test_a_sum_over_a_zone_asks_each_member_once() -> None:
    zone = Zone(100)
    for index, name in enumerate(zone.members):
        zone.roster.set(name, "load", index % 10)
    zone.settle_links()
    zone.call("n7", zone.router("n7").aggregate, "load")
    zone.run_for(0.1)
    ((name, done),) = zone.heard
    assert name == "n7"
    assert isinstance(done, AggregateDone)
    total = done.aggregate
    assert (done.reached, total.count, total.total) == (100, 100, 450.0)
    assert (total.least, total.greatest, total.distinct) == (0.0, 9.0, 10)


def test_what_a_member_keeps_grows_as_the_logarithm() -> None:
    kept = {}
    for size in (40, 200):
        zone = Zone(1)  # caches that all runs share are filled before
        tracemalloc.start()
        zone = Zone(size)
        zone.settle_links()
        zone.call("n0", zone.router("n0").broadcast, b"")
        zone.run_for(1.0)
        kept[size] = tracemalloc.get_traced_memory()[0] / size
        tracemalloc.stop()
    assert kept[200] <= 1.3 * kept[40], kept
    assert kept[200] <= 60_000, kept
