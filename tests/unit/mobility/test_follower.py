"""A mobile subscriber: where it says that it was, and what it tells its application."""

from __future__ import annotations

from typing import Any

import pytest

from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint
from protocols.content import BrokerAttached
from protocols.mobility import Follower, Gap, MovedOut, NotKept, Received, Settled
from protocols.mobility.box import COUNT, FORGOTTEN
from protocols.mobility.keeping_messages import Away, Here, Hosted, Kept, Place, Taken
from tests.unit.mobility.keeping import HOT, SETTINGS, Node, batch, kept

KEEP = SETTINGS.keep_for
VISIT = 100_000  # ms


def following() -> Node:
    """A subscriber that b1 keeps for."""
    node = Node(Follower)
    node.follower.subscribe("hot", Constraint.parse("celsius > 30"), node.now)
    settle(node, "b1")
    assert node.hear("b1", Hosted(VISIT, 2, 1, endpoints=("tcp://10.0.0.1:1",))) == [
        Settled("b1", VISIT),
        ("b1", Taken("sue", VISIT, 1)),
    ]
    return node


def settle(node: Node, broker: str) -> list[Any]:
    """It turns to a broker."""
    node.follower.settle(broker, node.now)
    return node.done()


def received(sequence: int) -> Received:
    """What its application gets."""
    return Received("hot", "ann/t", 1, sequence, {"celsius": 30 + sequence})


def test_it_takes_each_once_and_says_how_far_it_is() -> None:
    node = following()
    assert node.hear("b1", batch(VISIT, 1, kept(1), kept(2))) == [
        received(1),
        received(2),
        ("b1", Taken("sue", VISIT, 3)),
    ]
    assert node.hear("b1", batch(VISIT, 2, kept(2), kept(3))) == [
        received(3),
        ("b1", Taken("sue", VISIT, 4)),
    ]
    assert node.hear("b1", batch(VISIT, 9, kept(9))) == [("b1", Taken("sue", VISIT, 4))]


def test_it_says_where_it_was() -> None:
    node = following()
    node.hear("b1", batch(VISIT, 1, kept(1)))
    node.now += 1
    since = (Place("b1", VISIT, 2, True, ("tcp://10.0.0.1:1",)),)
    assert settle(node, "b2") == [("b2", Here(VISIT + 1000, 2, (HOT,), since, KEEP))]
    unsure = (Place("b2", VISIT + 1000, 0, False), *since)
    assert settle(node, "b3") == [("b3", Here(VISIT + 1001, 2, (HOT,), unsure, KEEP))]
    assert node.hear("b2", Hosted(VISIT + 1000, 2, 1)) == []
    node.hear("b3", Hosted(VISIT + 1001, 2, 1, complete=False))
    here = Place("b3", VISIT + 1001, 1, True)
    assert node.follower._places() == (here, *unsure)
    node.hear("b3", Hosted(VISIT + 1001, 2, 1))
    assert node.follower._places() == (here,)


def test_a_publication_that_comes_by_two_brokers_is_told_once() -> None:
    node = following()
    node.hear("b1", batch(VISIT, 1, kept(1), kept(2)))
    settle(node, "b2")
    node.hear("b2", Hosted(VISIT + 1, 2, 1))
    assert node.hear("b2", batch(VISIT + 1, 1, kept(2), kept(3)))[:-1] == [received(3)]
    assert node.follower.counts.repeats == 1
    assert node.hear("b1", batch(VISIT, 3, kept(4))) == []  # it left that one


def test_gaps_are_told_in_their_place() -> None:
    node = following()
    msg = batch(VISIT, 4, kept(4), Kept("", lost=2, reason=COUNT), oldest=4, lost=3, reason=COUNT)
    assert node.hear("b1", msg)[:-1] == [Gap(3, COUNT), received(4), Gap(2, COUNT)]
    assert node.hear("b1", msg)[:-1] == []
    assert node.follower.counts.lost == 5


def test_what_was_in_hand_when_a_bound_put_it_out_is_not_lost() -> None:
    node = following()
    node.hear("b1", batch(VISIT, 1, kept(1), kept(2)))
    msg = batch(VISIT, 5, kept(5), oldest=5, lost=4, reason=COUNT)
    assert node.hear("b1", msg)[:-1] == [Gap(2, COUNT), received(5)]


def test_a_broker_that_forgot_everything_is_told_again() -> None:
    node = following()
    said = node.hear("b1", Hosted(VISIT, 0, reason="unknown"))
    assert said == [Gap(0, FORGOTTEN), ("b1", Here(VISIT + 1, 2, (HOT,), (), KEEP))]


def test_a_refusal_is_told() -> None:
    node = Node(Follower)
    settle(node, "b1")
    assert node.hear("b1", Hosted(VISIT, 0, reason="no room")) == [NotKept("b1", "no room")]


def test_it_calls_until_it_is_answered_then_gives_signs_of_life() -> None:
    node = Node(Follower)
    assert settle(node, "b1") == [("b1", Here(VISIT, 1, (), (), KEEP))]
    assert node.later(1.2) == [("b1", Here(VISIT, 1, (), (), KEEP))]
    node.hear("b1", Hosted(VISIT, 1, 1))
    assert node.later(1.2) == [("b1", Taken("sue", VISIT, 1))]


def test_it_goes_where_the_client_beside_it_goes() -> None:
    node = Node(Follower)
    heard = node.follower.event_handlers()
    heard[BrokerAttached](BrokerAttached("b1"), node.now)
    assert node.done() == []  # it wants nothing
    node.follower.subscribe("hot", Constraint.parse("celsius > 30"), node.now)
    assert ("b1", Here(VISIT, 2, (HOT,), (), KEEP)) in node.done()
    node.hear("b1", Hosted(VISIT, 2, 1))
    heard[MovedOut](MovedOut("b1", "delayed"), node.now)
    assert node.done() == [("b1", Away(VISIT, 1, KEEP))]
    heard[BrokerAttached](BrokerAttached("b2"), node.now)
    since = (Place("b1", VISIT, 1, True),)
    assert node.done() == [("b2", Here(VISIT + 1, 2, (HOT,), since, KEEP))]


def test_who_stops_goes_away() -> None:
    node = following()
    node.follower.on_stop(node.now)
    assert node.done() == [("b1", Away(VISIT, 1, KEEP))]
    node.follower.on_stop(node.now)
    assert node.done() == []


def test_a_later_life_knows_where_it_was() -> None:
    node = following()
    again = Node(Follower, kept=node.disk)
    again.follower.subscribe("hot", Constraint.parse("celsius > 30"), again.now)
    since = (Place("b1", VISIT, 1, True, ("tcp://10.0.0.1:1",)),)
    assert settle(again, "b2") == [("b2", Here(VISIT + 1, 2, (HOT,), since, KEEP))]


@pytest.mark.parametrize(
    ("name", "model", "said"), [("", "", "give 1 to 96"), ("s", "m" * 33, "at most 32")]
)
def test_wrong_names(name: str, model: str, said: str) -> None:
    node = Node(Follower)
    with pytest.raises(LocalProtocolError, match=said):
        node.follower.subscribe(name, Constraint.parse("x > 1"), 1.0, model=model)
    with pytest.raises(LocalProtocolError, match="no broker for itself"):
        settle(node, "sue")
    with pytest.raises(LocalProtocolError, match="is not subscribed to"):
        node.follower.unsubscribe("s", 1.0)
