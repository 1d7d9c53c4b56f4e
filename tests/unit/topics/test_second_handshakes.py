"""Who takes part again, or goes on for another one, gets all that is still there."""

from __future__ import annotations

from protocols.gateways.events import GatewayAppointed, GatewayMoved
from protocols.gateways.interface import RemoteGateway
from protocols.topics import Gap
from protocols.topics.messages import RELAY, REPLAY_ALL, Accept, Ack, Begin, Data, Offer
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    TopicsNode,
    data,
    events,
    offer,
    read,
    repair,
    sends,
)


def test_who_was_promised_the_first_message_asks_for_it_again() -> None:
    """`have` = 0 says that it is new; but it began at 1, and lacks all that is still there."""
    node = TopicsNode("pub")
    node.take_in()
    node.pass_time(0.1)
    ((_, accept),) = sends(node.receive("pub", offer(newest=5, start=6)), Accept)
    assert isinstance(accept, Accept)
    assert (accept.have, accept.replay) == (0, REPLAY_ALL)


def test_a_closed_publisher_serves_the_successor_of_its_gateway() -> None:
    node = TopicsNode("g1", "g2")
    node.book.gateway = "g1"
    publisher = node.publisher()
    node.end_tick()
    node.receive("g1", Accept(*publisher.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.put(publisher, b"1", b"2")
    node.topics.close_publisher(publisher, node.now)
    node.end_tick()
    node.book.gateway = "g2"
    done = node.hear(GatewayMoved(TOPIC, "g2"))
    assert [(one.to, one.msg.start) for one in sends(done, Offer)] == [("g2", 1)]  # type: ignore[attr-defined]
    done = node.receive("g2", Accept(*publisher.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    assert [one.msg for one in sends(done, Begin)] == [Begin(*publisher.key, 1, relay=True)]
    assert publisher.relations, "what its predecessor lacked is served"


def test_a_receiver_that_heard_more_from_a_predecessor_is_no_liar() -> None:
    """Its new gateway did not get as far yet: what is here of its gaps is sent."""
    node = TopicsNode("b")
    node.book.gateway = "me"
    node.book.remote = {"fg": RemoteGateway("far", publishes=True, subscribes=True)}
    node.says("b", TOPIC)
    node.hear(GatewayAppointed(TOPIC))
    key = ("pub", STREAM)
    node.receive("fg", offer(relay=True))
    node.receive("fg", Begin(*key, 1, relay=True))
    node.receive("b", Accept(*key, LIFE, 0))
    node.receive("fg", data(1, b"1", flags=RELAY), data(2, b"2", flags=RELAY))
    done = node.receive("b", Ack(*key, LIFE, 1, ((2, 9),)))
    assert sends(done, Data) == [("b", repair(2, b"2"))]
    node.receive("b", Ack(*key, LIFE, 12))
    (stream,) = node.topics.streams
    assert stream.settled == 2, "all that came here"


def test_what_a_new_gateway_lacks_is_no_gap_before_it_said_so() -> None:
    """It may begin again for this receiver: what it tells all others comes too early."""
    node = TopicsNode("g1", "g2")
    one = node.subscribe()
    node.receive("g1", offer())
    node.receive("g1", Begin("pub", STREAM, 1), data(1, b"1", b"2"))
    node.book.gateway = "g2"
    ((_, accept),) = sends(node.receive("g2", offer(newest=4, start=5)), Accept)
    assert isinstance(accept, Accept)
    assert accept.have == 2
    node.receive("g2", data(4, b"4", oldest=4))
    assert not [event for event in events(node.pass_time(0.2)) if isinstance(event, Gap)]
    node.receive("g2", Begin("pub", STREAM, 3), data(3, b"3", oldest=3))
    assert read(one) == [b"1", b"2", b"3", b"4"]
