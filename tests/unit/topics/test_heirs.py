"""A gateway that says nothing is not waited for once another one of its zone takes part."""

from __future__ import annotations

from protocols.gateways.events import GatewaysChanged
from protocols.gateways.interface import RemoteGateway
from protocols.topics import Publisher
from protocols.topics.messages import RELAY, REPLAY_ALL, Accept, Ack, Begin, Leave, Offer
from protocols.topics.modes import Mode
from protocols.topics.relation import Seat
from tests.unit.topics.node import LIFE, STREAM, TOPIC, TopicsNode, data, sends

FAR = RemoteGateway("far", publishes=False, subscribes=True)


def accept(out: Publisher) -> Accept:
    return Accept(*out.key, LIFE, 0, REPLAY_ALL, 0.0, relay=True)


def ack(out: Publisher, upto: int) -> Ack:
    return Ack(*out.key, LIFE, upto, (), relay=True)


def settled(out: Publisher) -> bool:
    """Whether who flushes need not wait any more."""
    return out.all_settled


def publisher(*gateways: str) -> tuple[TopicsNode, Publisher]:
    """A publisher that is the gateway of its zone; these stand for another one."""
    node = TopicsNode(lost_grace=1.0, handshake_within=10.0, fail_after=10.0)
    node.book.gateway = "me"
    node.book.remote = dict.fromkeys(gateways, FAR)
    out = node.publisher()
    node.end_tick()
    return node, out


def test_one_that_never_answered_is_not_waited_for_after_a_grace() -> None:
    node, out = publisher("dead", "new")
    node.receive("new", accept(out))
    node.put(out, b"1")
    node.receive("new", ack(out, 1))
    assert not settled(out), "it may still answer"
    node.pass_time(0.9)
    assert not settled(out)
    node.pass_time(0.2)
    assert settled(out)
    assert out.history.messages == 1, "it is kept: the silent one may come"
    node.receive("dead", accept(out))
    assert not settled(out)
    node.receive("dead", ack(out, 1))
    assert settled(out)
    assert out.history.messages == 0


def test_an_heir_must_have_what_is_waited_for() -> None:
    node, out = publisher("dead", "new")
    node.receive("new", accept(out))
    node.put(out, b"1", b"2")
    node.receive("new", ack(out, 1))
    node.pass_time(3.0)
    assert not settled(out)
    assert out.settled_upto == 1
    node.receive("new", ack(out, 2))
    assert settled(out)


def test_without_an_heir_it_is_waited_for() -> None:
    node, out = publisher("dead")
    node.put(out, b"1")
    node.pass_time(9.0)
    assert not settled(out)
    node.pass_time(2.0)
    assert settled(out), "it failed"


def test_one_of_another_zone_is_no_heir() -> None:
    node, out = publisher("dead")
    node.book.remote["other"] = RemoteGateway("other", publishes=False, subscribes=True)
    node.hear(GatewaysChanged(TOPIC))
    node.receive("other", accept(out))
    node.put(out, b"1")
    node.receive("other", ack(out, 1))
    node.pass_time(5.0)
    assert not settled(out)


def test_one_that_took_part_and_fell_silent_is_not_waited_for_once_its_heir_has_it() -> None:
    node, out = publisher("old")
    node.receive("old", accept(out))
    node.put(out, b"1", b"2")
    node.receive("old", ack(out, 1))
    node.now = 1.0
    node.book.remote["new"] = FAR
    (offered,) = sends(node.hear(GatewaysChanged(TOPIC)), Offer)
    assert (offered.to, offered.msg.start) == ("new", 2)  # type: ignore[attr-defined]
    node.receive("new", accept(out))
    node.receive("new", ack(out, 2))
    node.pass_time(1.0)
    assert settled(out)
    assert out.floor == 1
    node.receive("old", ack(out, 1))
    node.pass_time(0.5)
    assert not settled(out), "it speaks again"


def test_what_a_gateway_that_is_not_listed_any_more_lacked_is_its_heirs_business() -> None:
    node, out = publisher("old", "new")
    node.receive("old", accept(out))
    node.receive("new", accept(out))
    node.put(out, b"1")
    node.receive("new", ack(out, 1))
    node.book.remote = {"new": FAR}
    node.hear(GatewaysChanged(TOPIC))
    assert out.orphans["far"][0] == 0
    assert settled(out)
    assert out.history.messages == 1, "until it is sure that nobody else lacks it"


def dead_and_new() -> tuple[TopicsNode, Publisher]:
    """One gateway that fell silent at message 1 of 3, and another that goes on for it."""
    node, out = publisher("dead", "new")
    node.receive("dead", accept(out))
    node.receive("new", accept(out))
    node.put(out, b"1", b"2", b"3")
    node.receive("dead", ack(out, 1))
    node.pass_time(0.5)
    node.receive("new", ack(out, 2))
    return node, out


def test_an_heir_whose_readers_closed_takes_the_wait_for_the_silent_one_along() -> None:
    node, out = dead_and_new()
    node.receive("new", Leave(*out.key, relay=True))
    assert not settled(out), "the silent one may still answer"
    node.pass_time(0.6)
    assert settled(out)
    assert out.floor == 1, "it is kept: the silent one may come"
    node.put(out, b"4")
    node.pass_time(3.0)
    assert out.settled_upto == 3, "of what follows nobody said anything"
    node.receive("dead", ack(out, 1))
    assert out.settled_upto == 1, "it speaks again"


def test_an_heir_whose_readers_moved_leaves_what_it_had_acknowledged() -> None:
    node, out = dead_and_new()
    node.receive("new", Leave(*out.key, relay=True, moved=True))
    node.pass_time(3.0)
    assert out.settled_upto == 2


def test_one_that_was_heard_after_the_heir_is_waited_for() -> None:
    node, out = dead_and_new()
    node.now += 0.1
    node.receive("dead", ack(out, 1))
    node.receive("new", Leave(*out.key, relay=True))
    node.pass_time(3.0)
    assert out.settled_upto == 1


def test_one_that_had_nothing_to_say_is_not_silent() -> None:
    """It is asked as soon as there is something: only from then on its silence counts."""
    node, out = publisher("slow", "new")
    for name in ("slow", "new"):
        node.receive(name, accept(out))
    node.pass_time(3.0)
    node.put(out, b"1")
    node.receive("new", ack(out, 1))
    node.receive("new", Leave(*out.key, relay=True))
    node.pass_time(0.9)
    assert not settled(out)
    node.receive("slow", ack(out, 1))
    assert settled(out)


def test_what_an_heir_leaves_counts_for_one_that_is_not_listed_any_more() -> None:
    node, out = dead_and_new()
    node.book.remote = {"new": FAR}
    node.hear(GatewaysChanged(TOPIC))
    assert out.orphans["far"].position == 1
    node.receive("new", Leave(*out.key, relay=True))
    assert settled(out)
    assert out.floor == 1


def test_a_relay_acknowledges_what_the_heir_has() -> None:
    node = TopicsNode("pub", lost_grace=1.0)
    node.book.gateway = "me"
    node.book.remote = dict.fromkeys(("dead", "new"), FAR)
    node.receive("pub", Offer("pub", STREAM, TOPIC, Mode.ACK, 1, 0, 4096, 0, relay=True))
    node.receive("pub", Begin("pub", STREAM, 1, relay=True))
    node.receive("new", Accept("pub", STREAM, LIFE, 0, REPLAY_ALL, 0.0, relay=True))
    node.receive("pub", data(1, b"1", flags=RELAY))
    node.receive("new", Ack("pub", STREAM, LIFE, 1, (), relay=True))
    done = node.pass_time(0.9)
    assert not any(one.msg.upto for one in sends(done, Ack))  # type: ignore[attr-defined]
    done = node.pass_time(0.3)
    assert {one.msg.upto for one in sends(done, Ack)} == {1}  # type: ignore[attr-defined]
    (stream,) = node.topics.streams
    assert stream.relay is not None
    assert Seat("dead", relay=True) in stream.relay.relations
