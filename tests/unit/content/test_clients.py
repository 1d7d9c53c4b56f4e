"""Clients: one broker, a lease, and a move to another one."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint
from protocols.content import (
    BrokerAttached,
    BrokerLost,
    ClientAttached,
    ClientGone,
    ContentSettings,
)
from tests.recording import Store
from tests.unit.content.node import Node
from tests.unit.content.world import World, linked

X = Constraint.parse("x > 0")


def line_of_three() -> World:
    world = World()
    linked(world, [("b1", "b2"), ("b2", "b3")])
    world.client("ann", "b1")
    world.client("bob", "b3")
    world.pass_time(1.5)
    return world


def heard(world: World, kind: type) -> list[str]:
    return [name for name, event in world.heard if isinstance(event, kind)]


def test_clients_publish_and_subscribe_through_their_brokers() -> None:
    world = line_of_three()
    assert heard(world, BrokerAttached) == ["ann", "bob"]
    assert heard(world, ClientAttached) == ["b1", "b3"]
    assert world.machines["ann"].broker == "b1"
    world.call("ann", "advertise", "p", X)
    world.call("bob", "subscribe", "s", Constraint.parse("x > 5"))
    world.call("ann", "subscribe", "own", Constraint.parse("x > 7"))
    world.drain()
    world.heard.clear()
    for value in (3, 6, 9):
        world.call("ann", "publish", "p", {"x": value})
    world.drain()
    assert sorted(world.delivered()) == [
        ("ann/own", "ann/p", 3),
        ("bob/s", "ann/p", 2),
        ("bob/s", "ann/p", 3),
    ]


def test_what_a_dead_client_left_goes_with_its_lease() -> None:
    world = line_of_three()
    world.call("ann", "advertise", "p", X)
    world.call("bob", "subscribe", "s", X)
    world.drain()
    assert [one.id for one in world.machines["b3"].advertisements()] == ["ann/p"]
    assert [row.id for row in world.machines["b1"].subscriptions()] == ["bob/s"]
    world.kill("ann")
    world.pass_time(2.0)
    assert [one.id for one in world.machines["b3"].advertisements()] == ["ann/p"]
    world.pass_time(4.0)
    assert heard(world, ClientGone) == ["b1"]
    assert not list(world.machines["b3"].advertisements())
    assert not list(world.machines["b1"].subscriptions())


def test_a_client_that_moved_is_found_at_its_new_broker() -> None:
    world = line_of_three()
    world.call("ann", "advertise", "p", X)
    world.call("bob", "subscribe", "s", X)
    world.drain()
    before = world.machines["b2"].advertisement("ann/p")
    world.call("ann", "attach", "b3")
    world.drain()
    after = world.machines["b2"].advertisement("ann/p")
    assert before is not None
    assert after is not None
    assert (before.hop, after.hop) == ("b1", "b3")
    assert after.epoch > before.epoch
    world.delivered()
    world.call("ann", "publish", "p", {"x": 1})
    world.drain()
    assert world.delivered() == [("bob/s", "ann/p", 1)]
    assert world.machines["b1"].clients() == ()


def test_one_that_moved_without_a_word_wins_over_what_it_left() -> None:
    world = line_of_three()
    world.call("ann", "advertise", "p", X)
    world.drain()
    world.cut.add(frozenset(("ann", "b1")))
    world.call("ann", "attach", "b3")
    world.drain()
    assert world.machines["b1"].clients() == ("ann",), "its lease runs"
    assert world.machines["b1"].advertisement("ann/p").hop == "b2"  # type: ignore[union-attr]


def test_a_broker_that_returns_is_told_everything_again() -> None:
    world = line_of_three()
    world.call("ann", "advertise", "p", X)
    world.call("bob", "subscribe", "s", X)
    world.drain()
    world.kill("b1")
    world.pass_time(6.0)
    assert heard(world, BrokerLost) == ["ann"]
    assert world.machines["ann"].broker is None
    assert world.call("ann", "publish", "p", {"x": 1}) == 1
    assert world.machines["ann"].counts.no_broker == 1
    world.broker("b1", ["b2"])
    world.pass_time(4.0)
    world.delivered()
    world.call("ann", "publish", "p", {"x": 2})
    world.drain()
    assert world.delivered() == [("bob/s", "ann/p", 2)]


def test_epochs_grow_though_the_clock_was_set_back() -> None:
    node = Node()
    node.content.advertise("p", X, 1000.0)
    (kept,) = [one for one in node.effects.drain() if isinstance(one, Store)]
    assert (kept.key, kept.value) == (b"epoch", b"1060000")
    before = node.content.advertisement("me/p")
    later = Node()
    later.content.on_start(10.0, {b"epoch": b"1060000"})
    later.content.advertise("p", X, 10.0)
    after = later.content.advertisement("me/p")
    assert before is not None
    assert after is not None
    assert after.epoch > before.epoch


def test_nobody_is_a_broker_of_itself() -> None:
    with pytest.raises(LocalProtocolError, match="run `overlay broker`"):
        Node(ContentSettings()).call("attach", "me")
    with pytest.raises(LocalProtocolError, match="name another broker"):
        Node().call("link", "me")
