"""In the zone: members declare, gateways sum up and register, delegates stand between."""

from __future__ import annotations

from overlay.ids import Ring
from overlay.protocol import ContactLearned
from protocols.gateways import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
    RemoteGateway,
    gateway_key,
)
from protocols.gateways.ledger import Book
from protocols.gateways.messages import LedgerChange, LedgerDigest, Line
from protocols.membership.events import MemberLeft
from protocols.membership.records import Record, State
from tests.recording import Send
from tests.unit.gateways.node import ZONE, GatewaysNode, party
from tests.unit.gateways.test_ledgers import PUB, SUB, gateway_among


def changes(sent: list[Send], book: Book) -> list[tuple[str, tuple[Line, ...]]]:
    """Who was told which lines of a book."""
    return [
        (one.to, one.msg.lines)
        for one in sent
        if isinstance(one.msg, LedgerChange) and one.msg.book == book
    ]


def test_a_gateway_that_fails_is_replaced_at_once_by_its_ring_successor() -> None:
    node = GatewaysNode()
    node.joins("x", "y")
    node.settle()
    topic = gateway_among("me", "x", "y")["x"]
    node.declare(topic, subscribes=True)
    assert node.gateways.gateway_of(topic) == "x"
    node.settle()
    node.fails("x")
    node.pass_time(0.13)
    successor = Ring(["me", "y"]).responsible_for(gateway_key(topic))
    assert node.gateways.gateway_of(topic) == successor
    effects = node.effects.recorded
    assert node.gateways.counts.moved == 1
    if successor == "y":
        assert changes([one for one in effects if isinstance(one, Send)], Book.DECLARATIONS) == [
            ("y", (Line(topic, SUB),))
        ]
    events = node.events()
    assert GatewayMoved(topic, successor) in events
    assert (GatewayAppointed(topic) in events) == (successor == "me")


def test_who_is_appointed_and_knows_of_no_other_zone_asks_for_the_directory() -> None:
    node = GatewaysNode()
    node.settle()
    node.declare("a", publishes=True)
    node.settle()
    assert node.gateways.is_gateway("a")
    assert node.zones.refreshed == 1
    node.zone("far", "f")
    node.delegates("me")
    node.declare("b", publishes=True)
    node.settle()
    assert node.zones.refreshed == 1, "it knows"


def test_a_newcomer_takes_its_topics_and_the_predecessor_is_told_nothing() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.settle()
    before, after = Ring(["me", "x"]), Ring(["me", "x", "new"])
    topics = [f"t/{at}" for at in range(60)]
    taken = [
        topic
        for topic in topics
        if before.responsible_for(gateway_key(topic)) == "x"
        and after.responsible_for(gateway_key(topic)) == "new"
    ]
    mine = [
        topic
        for topic in topics
        if before.responsible_for(gateway_key(topic)) == "me"
        and after.responsible_for(gateway_key(topic)) == "new"
    ]
    for topic in topics:
        node.declare(topic, subscribes=True)
    node.settle()
    node.joins("new")
    node.pass_time(0.13)
    sent = node.effects.recorded
    told = changes([one for one in sent if isinstance(one, Send)], Book.DECLARATIONS)
    assert [to for to, _ in told] == ["new"]
    assert {line.topic for line in told[0][1]} == {*taken, *mine}
    moved = [event for event in node.events() if isinstance(event, GatewayMoved)]
    assert {event.topic for event in moved} == {*taken, *mine}
    for topic in mine:
        assert node.gateways.is_gateway(topic), "until the newcomer is known everywhere"
    node.pass_time(40.0)
    for topic in mine:
        assert not node.gateways.is_gateway(topic)


def test_the_first_interest_appoints_the_gateway_and_the_last_dismisses_it() -> None:
    node = GatewaysNode()
    node.joins("x", "y")
    node.settle()
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.pass_time(0.02)
    assert node.events() == [GatewayAppointed("a"), GatewaysChanged("a")]
    node.told("y", Book.DECLARATIONS, ("a", SUB))
    node.pass_time(0.02)
    assert node.events() == [GatewaysChanged("a")]
    assert node.gateways.local_publishers("a") == ("x",)
    assert node.gateways.local_subscribers("a") == ("y",)
    node.fails("x")
    node.pass_time(0.02)
    assert node.events() == [GatewaysChanged("a")]
    assert node.gateways.local_publishers("a") == ()
    node.leaves("y")
    node.pass_time(0.02)
    assert node.events() == [GatewayDismissed("a")]
    assert not node.gateways.is_gateway("a")
    assert (node.gateways.counts.appointed, node.gateways.counts.dismissed) == (1, 1)


def test_a_certificate_decides_what_a_member_may_do() -> None:
    node = GatewaysNode(may=lambda name, what, topic: (name, what) != ("x", "publish"))
    node.joins("x", "y")
    node.settle()
    node.told("x", Book.DECLARATIONS, ("a", PUB), ("b", PUB | SUB))
    node.settle()
    assert node.gateways.topics_held() == ("b",)
    assert node.gateways.local_publishers("b") == ()
    assert node.gateways.local_subscribers("b") == ("x",)
    assert node.gateways.counts.not_allowed > 0
    node.told("y", Book.DECLARATIONS, ("a", PUB))
    node.settle()
    assert node.gateways.local_publishers("a") == ("y",)


def test_a_gateway_registers_with_a_delegate_while_there_is_another_zone() -> None:
    node = GatewaysNode()
    node.joins("d1", "d2", "x")
    node.delegates("d1", "d2")
    node.zone(ZONE, "d1", "d2")
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.pass_time(1.0)
    assert changes(node.sent(), Book.REGISTRATIONS) == []
    node.zone("other", "o")
    node.pass_time(0.2)
    assert changes(node.sent(), Book.REGISTRATIONS) == [("d1", (Line("a", PUB),))]
    node.told("x", Book.DECLARATIONS, ("a", PUB | SUB), ("b", SUB))
    node.pass_time(0.05)
    assert changes(node.sent(), Book.REGISTRATIONS) == [
        ("d1", (Line("a", PUB | SUB), Line("b", SUB)))
    ]
    node.told("x", Book.DECLARATIONS, ("b", 0))
    node.pass_time(0.05)
    assert changes(node.sent(), Book.REGISTRATIONS) == [("d1", (Line("b", 0),))]
    node.zone_ends("other")
    node.pass_time(0.2)
    assert changes(node.sent(), Book.REGISTRATIONS) == [("d1", (Line("a", 0),))]


def test_the_next_delegate_is_told_when_one_is_silent_or_gone() -> None:
    node = GatewaysNode()
    node.joins("d1", "d2", "x")
    node.delegates("d1", "d2")
    node.zone("other", "o")
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.pass_time(0.3)
    assert node.gateways.delegate == "d1"
    node.sent()
    node.pass_time(5.0)
    assert node.gateways.delegate == "d2", "three digests had no answer"
    assert changes(node.sent(), Book.REGISTRATIONS) == [("d2", (Line("a", PUB),))]
    node.fails("d2")
    node.delegates("d1")
    node.pass_time(0.3)
    assert node.gateways.delegate == "d1"


def test_a_delegate_tells_the_home_of_each_topic_where_the_gateways_are() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.joins("h", manager=True)
    node.enter()
    node.delegates("me")
    node.zone("other", "h")
    node.settle()
    node.told("x", Book.REGISTRATIONS, *((f"t/{at}", PUB) for at in range(40)))
    node.pass_time(0.1)
    sent = [one for one in node.sent(LedgerChange) if one.to == "h"]
    interests = [one.msg for one in sent if isinstance(one.msg, LedgerChange) and one.msg.book == 2]
    assert {who for msg in interests for who in msg.parties} == {party("x", ZONE)}
    mine = set(node.gateways.home_of())
    theirs = {line.topic for msg in interests for line in msg.lines}
    assert mine
    assert theirs
    assert mine | theirs == {f"t/{at}" for at in range(40)}
    node.fails("h", manager=True)
    node.pass_time(0.2)
    assert len(node.gateways.home_of()) == 40, "the home's successor is told at once"
    node.effects.drain()
    node.fails("x")
    node.pass_time(0.2)
    assert len(node.gateways.home_of()) == 0, "a gateway that fails is withdrawn"


def test_a_delegate_shows_its_zones_patterns_in_the_management_zone() -> None:
    node = GatewaysNode()
    node.joins("x", patterns="a/*\nb/**")
    node.joins("y", patterns="a/1\nbad//one")
    node.enter()
    node.settle()
    assert node.management.attributes("me")["patterns"] == "a/*\nb/**"
    assert node.gateways.counts.bad_patterns > 0
    node.says("x", patterns="")
    node.settle()
    assert node.management.attributes("me")["patterns"] == "a/1"
    node.fails("y")
    node.settle()
    assert "patterns" not in node.management.attributes("me")
    node.management.full = True
    node.says("x", patterns="c/*")
    node.settle()
    assert node.gateways.counts.attributes_refused == 1


def test_topics_for_patterns_pass_from_the_home_over_the_delegate_to_gateways_to_be() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.joins("h", manager=True)
    node.enter()
    node.settle()
    topics = gateway_among("me", "x")
    node.told("h", Book.EXISTING, (topics["x"], PUB), (topics["me"], PUB))
    node.pass_time(0.1)
    assert changes(node.sent(), Book.PROSPECTS) == [("x", (Line(topics["x"], PUB),))]
    assert not node.gateways.is_gateway(topics["me"]), "no member wants it"
    node.says("x", patterns="t/*")
    node.settle()
    assert node.gateways.is_gateway(topics["me"])
    assert node.gateways.local_subscribers(topics["me"]) == ("x",)
    node.told("h", Book.EXISTING, (topics["me"], 0))
    node.settle()
    assert not node.gateways.is_gateway(topics["me"])


def test_a_pattern_that_ends_ends_the_interest() -> None:
    node = GatewaysNode()
    node.joins("d", "x", patterns="t/*")
    node.settle()
    node.told("d", Book.PROSPECTS, ("t/1", PUB), ("u/1", PUB))
    node.settle()
    assert node.gateways.topics_held() == ("t/1",)
    node.says("x", patterns="")
    node.says("d", patterns="")
    node.settle()
    assert node.gateways.topics_held() == ()


def test_rosters_of_several_homes_add_up_and_only_a_withdrawal_takes_away() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.settle()
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.settle()
    node.told("h1", Book.ROSTERS, ("a", SUB), by=party("gb", "b"))
    node.pass_time(0.02)
    assert node.events() == [
        ContactLearned("gb", ("tcp://gb:1",)),
        GatewaysChanged("a"),
    ]
    node.told("h2", Book.ROSTERS, ("a", PUB), by=party("gc", "c"))
    node.settle()
    assert node.gateways.remote_gateways("a") == {
        "gb": RemoteGateway("b", False, True),
        "gc": RemoteGateway("c", True, False),
    }
    node.told("h2", Book.ROSTERS, ("a", 0), by=party("gb", "b"))
    node.settle()
    assert "gb" in node.gateways.remote_gateways("a"), "another home told it, and only that one"
    node.told("h1", Book.ROSTERS, ("a", 0), by=party("gb", "b"))
    node.settle()
    assert list(node.gateways.remote_gateways("a")) == ["gc"]


def test_a_gateway_knows_whether_a_home_told_it_anything() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.settle()
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.settle()
    assert node.gateways.knows_remote("a"), "there is no other zone"
    node.zone("other", "o")
    assert not node.gateways.knows_remote("a")
    node.told("h", Book.ROSTERS, ("a", PUB), by=party("me", ZONE))
    node.settle()
    assert node.gateways.knows_remote("a"), "its home knows it, and nobody else"
    assert node.gateways.remote_gateways("a") == {}


def test_a_gateway_is_not_remote_while_it_is_in_the_same_view() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.settle()
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    for name in ("me", "x", "apart"):
        node.told("h", Book.ROSTERS, ("a", SUB), by=party(name, ZONE))
    node.settle()
    assert list(node.gateways.remote_gateways("a")) == ["apart"], "a part of a split zone"
    node.base.drop("x")
    node.base._records["x"] = Record("x", 100, State.LEFT, 100, 100)
    node.hear(MemberLeft(ZONE, "x"))
    node.told("h", Book.ROSTERS, ("a", SUB), by=party("new", ZONE))
    node.settle()
    assert "x" not in node.gateways.remote_gateways("a"), "it left, so it is in no other part"


def test_who_leaves_the_management_zone_forgets_what_it_knew_as_a_home() -> None:
    node = GatewaysNode()
    node.joins("h", manager=True, zone="b")
    node.enter()
    node.settle()
    node.told("h", Book.INTERESTS, *((f"t/{at}", PUB) for at in range(9)), by=party("g", "b"))
    node.settle()
    assert node.gateways.home_of()
    node.leave_management()
    node.settle()
    assert node.gateways.home_of() == {}
    assert node.gateways.lines_held == 0
    node.pass_time(30.0)
    assert node.sent(LedgerDigest) == []


def test_nothing_happens_after_the_stop() -> None:
    node = GatewaysNode()
    node.declare("a", publishes=True)
    node.gateways.on_stop(0.0)
    assert node.effects.timers == {}
    node.effects.drain()
    node.joins("x")
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.gateways.on_timer("flush", 1.0)
    assert node.effects.drain() == []


def test_a_clock_set_back_delays_nothing() -> None:
    node = GatewaysNode()
    node.now = 10_000.0
    node.joins("x")
    node.told("x", Book.DECLARATIONS, ("a", PUB))
    node.now = 5_000.0
    node.joins("y")
    assert all(at <= 5_020.0 for at in node.effects.timers.values())
