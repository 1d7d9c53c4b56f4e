"""A gateway hands streams on, acknowledges what all behind it have, and is succeeded."""

from __future__ import annotations

from typing import Any

from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
)
from protocols.gateways.interface import RemoteGateway
from protocols.topics.messages import (
    MOVED,
    RELAY,
    REPLAY_ALL,
    Accept,
    Ack,
    Begin,
    Data,
    Failed,
    Knock,
    Leave,
    Offer,
    Reject,
)
from protocols.topics.modes import Mode
from protocols.topics.receiving import Incoming
from protocols.topics.relation import ALL_OTHER_ZONES, Seat
from protocols.topics.relaying import Relay
from tests.recording import Recorded, Send
from tests.unit.topics.node import (
    LIFE,
    STREAM,
    TOPIC,
    WINDOW,
    TopicsNode,
    data,
    events,
    offer,
    sends,
)

FAR = RemoteGateway("far", publishes=True, subscribes=True)
KEY = ("pub", STREAM)


def gateway(*members: str, **settings: Any) -> TopicsNode:
    """ "me" stands for its zone; "fg" stands for the zone "far"."""
    node = TopicsNode(*members, **settings)
    node.book.gateway = "me"
    node.book.remote = {"fg": FAR}
    node.hear(GatewayAppointed(TOPIC))
    return node


def stream_of(node: TopicsNode) -> tuple[Incoming, Relay]:
    (stream,) = (one for one in node.topics.streams if one.relay is not None)
    assert stream.relay is not None
    return stream, stream.relay


def outward(**config: int) -> TopicsNode:
    """A gateway that relays a stream of "pub", a member, to "fg", from message 1 on."""
    node = gateway("pub")
    node.receive("pub", offer(relay=True))
    node.receive("pub", Begin(*KEY, 1, relay=True))
    node.receive("fg", Accept(*KEY, LIFE, 0, REPLAY_ALL, 0.0, True))
    return node


def inward(*subscribers: str) -> TopicsNode:
    """A gateway that relays a stream of "pub", in the zone "far", to members of its own."""
    node = gateway()
    for name in subscribers:
        node.says(name, TOPIC)
    node.receive("fg", offer(relay=True))
    node.receive("fg", Begin(*KEY, 1, relay=True))
    for name in subscribers:
        node.receive(name, Accept(*KEY, LIFE, 0))
    return node


def acked(done: list[Recorded], to: str) -> list[int]:
    return [one.msg.upto for one in sends(done, Ack) if one.to == to]  # type: ignore[attr-defined]


# -- handing on ------------------------------------------------------------------------------------


def test_a_gateway_accepts_for_others_and_offers_when_it_has_begun() -> None:
    node = gateway("pub")
    (accept,) = sends(node.receive("pub", offer(relay=True)))
    stream, _ = stream_of(node)
    assert accept == Send("pub", Accept(*KEY, stream.receiver, 0, REPLAY_ALL, 0.0, True))
    assert sends(node.receive("pub", Begin(*KEY, 4, relay=True))) == [
        Send("fg", Offer(*KEY, TOPIC, Mode.ACK, 4, 3, WINDOW, 0, True, 4))
    ]


def test_between_zones_chunks_keep_their_numbers_and_say_that_they_are_for_others() -> None:
    node = outward()
    sent = data(1, b"1", b"2", flags=RELAY)
    assert sends(node.receive("pub", sent)) == [Send("fg", sent)]
    assert node.counts.relayed == 1


def test_into_the_zone_chunks_go_to_its_members() -> None:
    node = inward("b", "c")
    done = node.receive("fg", data(1, b"1", flags=RELAY))
    assert sorted(sends(done)) == [Send("b", data(1, b"1")), Send("c", data(1, b"1"))]


def test_what_was_fetched_for_replays_is_no_news_to_who_is_new() -> None:
    node = gateway()
    node.says("b", TOPIC)
    node.receive("fg", offer(relay=True))
    node.receive("fg", Begin(*KEY, 1, relay=True, live=4))
    done = node.receive("b", Accept(*KEY, LIFE, 0))
    assert sends(done, Begin) == [Send("b", Begin(*KEY, 1, live=4))]
    node.receive("fg", data(1, b"1", b"2", flags=RELAY))
    assert acked(node.receive("b", Ack(*KEY, LIFE, 3)) + node.pass_time(0.06), "fg") == [2]
    node.says("c", TOPIC)
    done = node.receive("c", Accept(*KEY, LIFE, 0))
    assert sends(done, Begin) == [Send("c", Begin(*KEY, 3, live=4))]
    node.says("d", TOPIC)
    done = node.receive("d", Accept(*KEY, LIFE, 0, REPLAY_ALL))
    assert [one.msg.live for one in sends(done, Begin)] == [0]  # type: ignore[attr-defined]


def test_a_publisher_tells_the_gateway_since_when_its_zone_is_interested() -> None:
    node = TopicsNode("gate")
    out = node.publisher(keep=10)
    node.put(out, b"1", b"2")
    node.book.gateway = "gate"
    node.hear(GatewaysChanged(TOPIC))
    accept = Accept(*out.key, LIFE, 0, REPLAY_ALL, 0.0, True)
    begin = Send("gate", Begin(*out.key, 1, relay=True, live=3))
    assert sends(node.receive("gate", accept), Begin) == [begin]
    node.put(out, b"3")
    assert sends(node.receive("gate", accept), Begin) == [begin], "the same when it is repeated"


def test_only_what_all_behind_have_is_acknowledged() -> None:
    node = inward("b", "c")
    node.receive("fg", data(1, b"1", flags=RELAY), data(2, b"2", flags=RELAY))
    assert acked(node.pass_time(0.06), "fg") == []
    done = node.receive("b", Ack(*KEY, LIFE, 2))
    assert acked(done + node.pass_time(0.06), "fg") == []
    done = node.receive("c", Ack(*KEY, LIFE, 1))
    assert acked(done + node.pass_time(0.06), "fg") == [1]
    done = node.receive("c", Ack(*KEY, LIFE, 2))
    assert acked(done + node.pass_time(0.06), "fg") == [2]
    _, relay = stream_of(node)
    assert relay.history.messages == 0


def test_what_was_lost_before_the_gateway_is_bridged_behind_it() -> None:
    node = inward("b")
    node.receive("fg", data(1, b"1", flags=RELAY))
    node.receive("b", Ack(*KEY, LIFE, 1))
    done = node.receive("fg", Begin(*KEY, 5, relay=True))
    assert sends(done, Begin) == [Send("b", Begin(*KEY, 5))]
    done = node.receive("fg", data(5, b"5", flags=RELAY))
    assert [one.to for one in sends(done, Data)] == ["b"]


def test_what_was_bridged_is_told_until_it_is_known() -> None:
    """The word of it may be lost, or come while nobody reads."""
    node = inward("b")
    node.receive("fg", data(1, b"1", flags=RELAY))
    node.receive("b", Ack(*KEY, LIFE, 1))
    node.receive("fg", Begin(*KEY, 5, relay=True))
    for _ in range(2):
        done = node.receive("b", Ack(*KEY, LIFE, 1, ((2, 4),)))
        assert sends(done, Begin) == [Send("b", Begin(*KEY, 5))]
    assert sends(node.receive("b", Ack(*KEY, LIFE, 4)), Begin) == []


def test_who_has_nobody_behind_it_any_more_leaves_its_source() -> None:
    """It would acknowledge what those who went elsewhere do not have yet."""
    node = inward("b")
    done = node.receive("b", Leave(*KEY, moved=True))
    assert Send("fg", Leave(*KEY, relay=True, moved=True)) in sends(done)
    assert node.topics.streams == []


def test_who_has_only_such_behind_it_as_closed_leaves_for_them_all() -> None:
    """What the zone says of its members' interest is older than their word."""
    node = inward("b")
    done = node.receive("b", Leave(*KEY))
    assert Send("fg", Leave(*KEY, relay=True)) in sends(done)
    assert node.topics.streams == []


def test_the_end_is_passed_on_and_waits_for_those_behind() -> None:
    node = inward("b")
    node.receive("fg", data(1, b"1", flags=RELAY))
    done = node.receive("fg", data(2, flags=RELAY | 2 | 1))
    (end,) = (one.msg for one in sends(done, Data))
    assert end == data(2, flags=2 | 1)
    assert sends(done, Leave) == []
    done = node.receive("b", Ack(*KEY, LIFE, 1))
    assert Send("fg", Leave(*KEY, relay=True)) in sends(done)
    node.receive("b", Leave(*KEY))
    assert node.topics.streams == []


# -- who gets what from whom -----------------------------------------------------------------------


def test_a_fellow_gateway_is_rejected() -> None:
    """Two of one zone may hold themselves for its gateway, for a while."""
    node = gateway("pub", "fellow")
    done = node.receive("fellow", offer(relay=True))
    assert sends(done) == [Send("fellow", Reject(*KEY, "a gateway itself", relay=True))]


def test_without_anybody_behind_it_is_rejected_once_that_is_known() -> None:
    node = gateway("pub")
    node.book.remote = {}
    node.book.knows = False
    assert node.receive("pub", offer(relay=True)) == [], "a home may still tell of others"
    node.book.knows = True
    assert node.receive("pub", offer(relay=True)) == [
        Send("pub", Reject(*KEY, "no interest", relay=True))
    ]


def test_who_is_served_stays_where_it_is() -> None:
    node = TopicsNode("old", "new")
    node.book.gateway = "old"
    node.subscribe()
    node.receive("old", offer())
    node.receive("old", Begin(*KEY, 1))
    assert node.receive("new", offer()) == [Send("new", Reject(*KEY, "served"))]
    node.book.gateway = "new"
    node.now = 1.0
    done = node.receive("new", offer())
    assert Send("old", Leave(*KEY, moved=True)) in sends(done)
    assert [one.to for one in sends(done, Accept)] == ["new"]
    assert node.topics.streams[0].source == "new"


def test_a_gateway_calls_for_what_should_be_here() -> None:
    node = gateway("pub", "other")
    node.book.publishers = ("pub", "me")
    node.book.subscribers = ("other",)
    done = node.hear(GatewaysChanged(TOPIC))
    assert sends(done) == [Send("pub", Knock(TOPIC)), Send("fg", Knock(TOPIC))]
    assert sends(node.hear(GatewaysChanged(TOPIC))) == [], "they were just called"
    assert len(sends(node.pass_time(1.1), Knock)) == 2


# -- succession ------------------------------------------------------------------------------------


def test_the_successor_of_a_gateway_inherits_its_position() -> None:
    node = TopicsNode("old", "new")
    node.book.gateway = "old"
    out = node.publisher()
    node.end_tick()
    node.receive("old", Accept(*out.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.put(out, b"1", b"2", b"3")
    node.receive("old", Ack(*out.key, LIFE, 1, (), True))
    assert out.relations[Seat("old", relay=True)].stands_for == ALL_OTHER_ZONES
    node.book.gateway = None
    done = node.hear(GatewayMoved(TOPIC, "old"))
    assert sends(done) == [Send("old", Failed(*out.key, MOVED, relay=True))]
    assert out.orphans[ALL_OTHER_ZONES][0] == 1
    assert out.history.oldest == 2, "its successor may lack what it did not acknowledge"
    node.book.gateway = "new"
    (offered,) = sends(node.hear(GatewayMoved(TOPIC, "new")), Offer)
    assert (offered.to, offered.msg.start, offered.msg.newest) == ("new", 2, 3)  # type: ignore[attr-defined]
    assert out.orphans == {}
    done = node.receive("new", Accept(*out.key, LIFE + 1, 0, REPLAY_ALL, 0.0, True))
    assert sends(done, Begin) == [Send("new", Begin(*out.key, 2, relay=True))]
    assert [one.msg.first for one in sends(done, Data)] == [2, 3]  # type: ignore[attr-defined]


def test_a_zone_without_a_gateway_is_waited_for_not_for_ever() -> None:
    node = TopicsNode("old", fail_after=2.0)
    node.book.gateway = "old"
    out = node.publisher()
    node.end_tick()
    node.receive("old", Accept(*out.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.put(out, b"1")
    node.book.gateway = None
    node.hear(GatewayMoved(TOPIC, "old"))
    node.pass_time(1.9)
    assert out.history.messages == 1
    node.pass_time(0.2)
    assert out.history.messages == 0
    assert out.orphans == {}


def test_an_heir_that_rejects_leaves_the_position_to_the_next() -> None:
    node = TopicsNode("old", "new")
    node.book.gateway = "old"
    out = node.publisher()
    node.end_tick()
    node.receive("old", Accept(*out.key, LIFE, 0, REPLAY_ALL, 0.0, True))
    node.put(out, b"1")
    node.book.gateway = "new"
    node.hear(GatewayMoved(TOPIC, "new"))
    node.receive("new", Reject(*out.key, "no interest", relay=True))
    assert out.orphans[ALL_OTHER_ZONES][0] == 0
    assert out.history.messages == 1
    (offered,) = sends(node.receive("new", Knock(TOPIC)), Offer)
    assert offered.msg.start == 1  # type: ignore[attr-defined]


def test_a_new_gateway_goes_on_where_its_members_are() -> None:
    """It knows nothing; they say how far they are, and it does not refuse who has more."""
    node = gateway()
    node.says("b", TOPIC)
    node.receive("fg", offer(relay=True, start=3, newest=8))
    node.receive("fg", Begin(*KEY, 3, relay=True))
    assert sends(node.receive("b", Accept(*KEY, LIFE, 5)), Begin) == [], "not yet here"
    node.receive("fg", *[data(number, b"x", flags=RELAY) for number in range(3, 9)])
    done = node.receive("b", Accept(*KEY, LIFE, 5))
    assert sends(done, Begin) == [Send("b", Begin(*KEY, 6))]
    assert [one.msg.first for one in sends(done, Data)] == [6, 7, 8]  # type: ignore[attr-defined]


def test_who_is_behind_a_gateway_that_is_cut_off_is_released() -> None:
    node = inward("b")
    node.receive("fg", data(1, b"1", flags=RELAY))
    done = node.receive("fg", Failed(*KEY, "silent", relay=True))
    assert Send("b", Failed(*KEY, MOVED)) in sends(done)
    assert Send("fg", Knock(TOPIC)) in sends(done)
    stream, relay = stream_of(node)
    assert relay.relations == {}
    assert not relay.attached
    assert events(done) == [], "no subscription of this node is hurt"
    node.now = 1.0
    done = node.receive("fg", offer(relay=True, newest=1))
    assert [one.to for one in sends(done, Accept)] == ["fg"]
    assert [one.to for one in sends(done, Offer)] == ["b"], "it is served again"
    assert stream.relay is relay


def test_a_dismissed_gateway_leaves() -> None:
    node = outward()
    node.book.gateway = "pub"
    done = node.hear(GatewayDismissed(TOPIC))
    stream, relay = stream_of(node)
    assert Send("fg", Failed(*KEY, MOVED, relay=True)) in sends(done)
    assert relay.relations == {}
    node.receive("fg", Leave(*KEY, relay=True))
    node.pass_time(node.topics.config.fail_after + 1)
    node.hear(GatewaysChanged(TOPIC))
    assert stream not in node.topics.streams


def test_a_publisher_that_is_its_own_gateway_offers_to_each_zone() -> None:
    node = gateway()
    node.book.remote["mute"] = RemoteGateway("mute", publishes=True, subscribes=False)
    out = node.publisher()
    offers = sends(node.end_tick(), Offer)
    assert [(one.to, one.msg.relay) for one in offers] == [("fg", True)]  # type: ignore[attr-defined]
    assert out.relations[Seat("fg", relay=True)].stands_for == "far"


def test_what_is_only_kept_for_late_comers_gives_way_at_a_gateway_too() -> None:
    """A publisher may want more kept than a gateway holds: the stream must not stand still."""
    node = gateway("pub", relay_bytes=4096)
    node.receive("pub", Offer(*KEY, TOPIC, Mode.ACK, 1, 0, 1 << 20, 1 << 20, True))
    node.receive("pub", Begin(*KEY, 1, relay=True))
    node.receive("fg", Accept(*KEY, LIFE, 0, REPLAY_ALL, 0.0, True))
    stream, relay = stream_of(node)
    for number in range(1, 21):
        done = node.receive("pub", data(number, b"x" * 1000, flags=RELAY))
        assert [one.to for one in sends(done, Data)] == ["fg"], f"message {number} is handed on"
        node.receive("fg", Ack(*KEY, LIFE, number, relay=True))
    assert stream.order.expected == 21
    assert relay.history.bytes <= 4096
    assert relay.history.messages == 4, "as much as fits is kept"
