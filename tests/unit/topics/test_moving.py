"""Streams go along with a node that moves, and find their new ways without a loss."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.errors import LocalProtocolError
from protocols.gateways.events import GatewayAppointed, GatewaysChanged
from protocols.gateways.interface import RemoteGateway
from protocols.topics.messages import (
    ASK,
    MOVED,
    RELAY,
    Accept,
    Ack,
    Begin,
    Data,
    Failed,
    Knock,
    Leave,
    Moving,
    Offer,
    Reject,
)
from protocols.topics.relation import ALL_OTHER_ZONES, EVERYBODY, Seat
from tests.recording import Send
from tests.unit.topics.node import LIFE, STREAM, TOPIC, TopicsNode, data, events, offer, read, sends

KEY = ("pub", STREAM)
FAR = RemoteGateway("far", publishes=True, subscribes=True)


# -- the mover ------------------------------------------------------------------------------------


def test_a_publisher_goes_on_with_its_numbers_and_its_receivers() -> None:
    old = TopicsNode("b")
    out, _ = old.serve("b")
    old.put(out, b"1", b"2")
    luggage = old.topics.pack(old.now)
    assert sends(old.end_tick(), Moving) == [Send("b", Moving(*out.key))]
    assert luggage.partners == ["b"]
    assert old.topics.publishers == []
    assert old.receive("b", Ack(*out.key, LIFE, 1)) == [], "it is not gone"
    assert out.put(b"3", 10, old.now), "an application need not know"
    assert old.end_tick() == [], "it leaves on arrival"
    new = TopicsNode()
    new.now = 2.0
    new.topics.unpack(luggage, new.now)
    done = new.end_tick()
    assert sends(done, Moving) == [Send("b", Moving(*out.key))]
    assert [one.msg.first for one in sends(done, Data) if one.msg.count] == [3]  # type: ignore[attr-defined]
    assert any(one.msg.flags & ASK for one in sends(done, Data))  # type: ignore[attr-defined]
    new.receive("b", Ack(*out.key, LIFE, 3))
    assert out.all_settled
    assert new.topics.publishers == [out]
    assert new.book.declared == [], "it does not know the zone yet"
    new.pass_time(0.6)
    assert new.book.declared == [(TOPIC, True, False)]


def test_a_receiver_goes_on_with_what_it_has() -> None:
    old = TopicsNode("pub")
    one, life = old.take_in()
    old.receive("pub", data(1, b"1"))
    luggage = old.topics.pack(old.now)
    assert sends(old.end_tick(), Moving) == [Send("pub", Moving(*KEY, False, life, 1))]
    new = TopicsNode()
    new.topics.unpack(luggage, new.now)
    done = new.end_tick()
    assert Send("pub", Moving(*KEY, False, life, 1)) in done
    assert Send("pub", Ack(*KEY, life, 1)) in done
    new.receive("pub", data(2, b"2"))
    new.receive("pub", data(1, b"1", b"2"))
    assert read(one) == [b"1", b"2"]
    new.pass_time(0.6)
    assert new.book.declared == [(TOPIC, False, True)]


def test_what_is_closed_on_the_way_does_not_arrive() -> None:
    old = TopicsNode("pub", "b")
    one, _ = old.take_in()
    out, _ = old.serve("b", topic="other")
    luggage = old.topics.pack(old.now)
    for command in (old.publisher, old.subscribe):
        with pytest.raises(LocalProtocolError, match="me is moving"):
            command()
    old.topics.unsubscribe(one, old.now)
    old.topics.close_publisher(out, old.now)
    new = TopicsNode()
    new.topics.unpack(luggage, new.now)
    done = new.end_tick()
    assert Send("pub", Leave(*KEY)) in done
    assert (new.topics.streams, new.topics.subscriptions) == ([], [])
    assert new.topics.publishers == [out], "it lingers"
    new.receive("b", Ack(*out.key, LIFE, 0), Leave(*out.key))
    assert new.topics.publishers == []


def test_its_old_source_is_called_until_it_speaks() -> None:
    old = TopicsNode("pub")
    old.take_in()
    new = TopicsNode()
    new.topics.unpack(old.topics.pack(old.now), new.now)
    new.end_tick()
    assert Send("pub", Knock(TOPIC)) in new.pass_time(1.5)
    new.receive("pub", data(1, b"1"))
    new.book.gateway = "pub"
    assert sends(new.pass_time(1.5), Knock) == []


def test_a_gateway_that_moves_asks_its_source_for_a_place_of_its_own() -> None:
    node = TopicsNode("b")
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR}
    node.hear(GatewayAppointed(TOPIC))
    node.subscribe()
    node.receive("fg", offer(relay=True))
    node.receive("fg", Begin(*KEY, 1, relay=True))
    (own,) = [one for one in sends(node.receive("me", offer()), Accept) if not one.msg.relay]  # type: ignore[attr-defined]
    node.receive("me", Accept(*KEY, own.msg.receiver, 0))  # type: ignore[attr-defined]
    node.receive("me", Begin(*KEY, 1))
    node.receive("me", data(1, b"1"))
    node.topics.pack(node.now)
    assert sends(node.end_tick(), Moving) == [
        Send("fg", Moving(*KEY, False, own.msg.receiver, 1))  # type: ignore[attr-defined]
    ]


# -- those who stay -------------------------------------------------------------------------------


def test_who_moves_keeps_its_place() -> None:
    node = TopicsNode("b", "c", move_within=20.0)
    out, _ = node.serve("b", "c")
    node.put(out, b"1")
    node.receive("b", Moving(*out.key, False, LIFE, 0))
    for name in ("b", "c"):
        node.leaves(name)
    assert [seat.peer for seat in out.relations] == ["b"]
    node.pass_time(19.0)
    assert out.floor == 0
    node.receive("b", Ack(*out.key, LIFE, 1))
    assert out.all_settled
    node.receive("b", Leave(*out.key, moved=True))
    assert out.relations == {}


def test_a_place_is_not_kept_for_ever() -> None:
    node = TopicsNode("b", move_within=5.0, fail_after=2.0)
    out, _ = node.serve("b")
    node.put(out, b"1")
    node.receive("b", Moving(*out.key))
    node.leaves("b")
    node.pass_time(4.9)
    assert not out.all_settled
    node.pass_time(0.2)
    assert out.all_settled


def test_a_gateway_gets_a_place_of_its_own_only_where_it_had_one() -> None:
    node = TopicsNode()
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR}
    out = node.publisher()
    node.end_tick()
    node.receive("fg", Accept(*out.key, LIFE, 0, relay=True))
    node.put(out, b"1", b"2")
    node.receive("stranger", Moving(*out.key, False, 7, 1))
    assert Seat("stranger") not in out.relations
    done = node.receive("fg", Moving(*out.key, False, 7, 1))
    assert [one.msg.first for one in sends(done, Data)] == [2]  # type: ignore[attr-defined]
    assert out.relations[Seat("fg")].acked == 1
    node.receive("fg", Moving(*out.key, False, 8, 9))
    assert out.relations[Seat("fg")].receiver == 7


def test_a_publisher_that_moves_is_waited_for() -> None:
    node = TopicsNode("pub", move_within=20.0, lost_grace=1.0)
    node.take_in()
    node.receive("pub", data(1, b"1"), Moving(*KEY))
    node.leaves("pub")
    assert events(node.pass_time(15.0)) == []
    assert [one.source for one in node.topics.streams] == ["pub"]


def gateway_takes_over() -> TopicsNode:
    """A receiver that has message 1 of a publisher that moves; "gate" stands for its zone."""
    node = TopicsNode("pub", "gate", move_within=20.0)
    node.take_in()
    node.book.gateway = "gate"
    node.receive("pub", data(1, b"1"), Moving(*KEY))
    node.leaves("pub")
    return node


def test_a_new_source_is_taken_when_nothing_is_missing_before_its_offer() -> None:
    node = gateway_takes_over()
    later = replace(offer(start=3), oldest=3)
    assert sends(node.receive("gate", later)) == [], "2 would be lost"
    node.receive("pub", data(2, b"2"))
    done = node.receive("gate", later)
    assert Send("pub", Leave(*KEY, moved=True)) in done
    (accept,) = sends(done, Accept)
    assert (accept.to, accept.msg.have) == ("gate", 2)  # type: ignore[attr-defined]


def test_a_new_source_is_taken_when_it_promises_what_is_missing() -> None:
    node = gateway_takes_over()
    (stream,) = node.topics.streams
    (accept,) = sends(node.receive("gate", replace(offer(start=4), oldest=2)))
    assert (accept.to, accept.msg.have) == ("gate", 1)  # type: ignore[attr-defined]
    assert stream.source == "pub"
    node.receive("gate", Begin(*KEY, 3))
    assert stream.source == "pub", "it has trimmed 2 since"
    assert events(node.receive("gate", Begin(*KEY, 2))) == []
    assert stream.source == "gate"


def test_without_a_move_what_is_gone_is_told_at_once() -> None:
    node = TopicsNode("pub", "gate")
    node.take_in()
    node.book.gateway = "gate"
    node.fails("pub")
    assert sends(node.receive("gate", offer(start=4)), Accept) != []


def test_who_still_counts_on_a_receiver_that_went_is_told() -> None:
    node = TopicsNode("pub", "gate")
    node.take_in("pub")
    node.book.gateway = "gate"
    node.receive("gate", offer())
    done = node.receive("pub", data(1, flags=ASK))
    assert Send("pub", Leave(*KEY, moved=True)) in done


def test_an_offer_of_who_moved_away_is_rejected_by_who_is_served() -> None:
    node = TopicsNode("gate", "pub")
    node.take_in("gate")
    (stream,) = node.topics.streams
    stream.source, stream.key = "gate", KEY
    node.receive("gate", Moving("gate", STREAM))
    done = node.receive("far-away", offer("gate"))
    assert sends(done, Reject) == [Send("far-away", Reject("gate", STREAM, "served"))]


# -- gateways on the way --------------------------------------------------------------------------


def relaying(*behind: str) -> TopicsNode:
    """ "me" relays a stream of its own zone's "pub" to gateways of other zones."""
    node = TopicsNode("pub", move_within=20.0)
    node.book.gateway = "me"
    node.book.remote = dict.fromkeys(behind, FAR)
    node.hear(GatewayAppointed(TOPIC))
    node.receive("pub", offer(relay=True))
    node.receive("pub", Begin(*KEY, 1, relay=True))
    for name in behind:
        node.receive(name, Accept(*KEY, LIFE, 0, relay=True))
    return node


def test_a_gateway_hands_the_word_on_and_keeps_who_is_behind_it() -> None:
    node = relaying("fg")
    done = node.receive("pub", Moving(*KEY, relay=True))
    assert sends(done, Moving) == [Send("fg", Moving(*KEY, relay=True))]
    done = node.leaves("pub")
    assert sends(done, Failed) == []
    (stream,) = node.topics.streams
    assert stream.relay is not None
    assert Seat("fg", relay=True) in stream.relay.relations
    node.receive("fg", Leave(*KEY, relay=True, moved=True))
    assert stream.relay.orphans == {}, "it has its place elsewhere"


def test_a_gateway_does_not_let_go_who_is_behind_it_while_its_source_moves() -> None:
    node = relaying("fg")
    node.receive("pub", Moving(*KEY, relay=True))
    assert sends(node.receive("pub", Failed(*KEY, "gone", relay=True)), Failed) == []
    (stream,) = node.topics.streams
    assert stream.relay is not None
    assert Seat("fg", relay=True) in stream.relay.relations


def test_a_gateway_does_not_feed_who_feeds_it() -> None:
    node = TopicsNode("b")
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR, "other": FAR._replace(zone="other")}
    node.hear(GatewayAppointed(TOPIC))
    node.says("b", TOPIC)
    node.receive("fg", offer(relay=True))
    node.receive("fg", Begin(*KEY, 1, relay=True))
    node.receive("b", Accept(*KEY, LIFE, 0))
    node.receive("fg", Moving(*KEY, relay=True))
    node.says("pub")
    assert sends(node.hear(GatewaysChanged(TOPIC)), Offer) == [], "pub does not send to it yet"
    done = node.receive("pub", offer(relay=True))
    assert Send("fg", Leave(*KEY, relay=True, moved=True)) in done
    offered = {one.to for one in sends(node.hear(GatewaysChanged(TOPIC)), Offer)}
    assert offered == {"fg", "other"}


# -- gateways that restart ------------------------------------------------------------------------


def test_a_gateway_that_just_began_does_not_give_its_zones_place_up() -> None:
    """It does not know yet who is behind it: what they lack must not be forgotten."""
    node = TopicsNode("pub")
    node.book.gateway = "me"
    done = node.receive("far", data(3, flags=RELAY | ASK))
    assert sends(done) == [Send("far", Leave(*KEY, relay=True, moved=True))]


def test_a_gateway_that_rejects_what_it_took_before_may_want_it_again() -> None:
    node = TopicsNode()
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR}
    out = node.publisher()
    node.end_tick()
    node.receive("fg", Accept(*out.key, LIFE, 0, relay=True))
    node.put(out, b"1")
    node.receive("fg", Reject(*out.key, "no interest", relay=True))
    assert out.orphans["far"].position == 0


def test_whom_a_relay_lets_go_with_its_source_finds_all_when_that_is_back() -> None:
    node = relaying("fg")
    (stream,) = node.topics.streams
    relay = stream.relay
    assert relay is not None
    node.receive("pub", data(1, b"1", flags=RELAY), data(2, b"2", flags=RELAY))
    node.receive("fg", Ack(*KEY, LIFE, 1, relay=True))
    node.receive("pub", Failed(*KEY, MOVED, relay=True))
    assert relay.relations == {}
    assert relay.orphans[EVERYBODY].position == 1
    assert relay.history.oldest == 2
    node.now = 1.0
    (accept,) = sends(node.receive("pub", offer(relay=True)), Accept)
    assert accept.msg.have == 1  # type: ignore[attr-defined]
    assert relay.orphans == {}
    assert relay.relations[Seat("fg", relay=True)].acked == 1


def test_who_becomes_its_own_gateway_waits_for_the_old_one_no_longer() -> None:
    node = TopicsNode("gate")
    node.book.gateway = "gate"
    out = node.publisher()
    node.end_tick()
    node.receive("gate", Accept(*out.key, LIFE, 0, relay=True))
    node.put(out, b"1")
    node.book.gateway, node.book.remote, node.book.knows = "me", {"fg": FAR}, False
    node.leaves("gate")
    assert out.orphans[ALL_OTHER_ZONES].position == 0
    assert out.relations[Seat("fg", relay=True)].acked == 0
    node.book.knows = True
    node.hear(GatewaysChanged(TOPIC))
    assert out.orphans == {}
    node.receive("fg", Accept(*out.key, LIFE, 0, relay=True))
    node.receive("fg", Ack(*out.key, LIFE, 1, relay=True))
    assert out.all_settled
