"""In the management zone: homes, their successors, zones with patterns, and the directory."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import Ring, vid_to_wire
from overlay.protocol import ContactLearned
from protocols.gateways import GatewaysSettings, TopicKnown, TopicUnknown, topic_id
from protocols.gateways.ledger import Book
from protocols.gateways.messages import LedgerChange, Line, TopicAnswer, TopicRequest
from tests.recording import Send
from tests.unit.gateways.node import ZONE, GatewaysNode, digest, party
from tests.unit.gateways.test_ledgers import PUB, SUB


def home_among(*names: str) -> dict[str, str]:
    """A topic for each member of the management zone whose home it is."""
    ring, at = Ring(names), 0
    found: dict[str, str] = {}
    while len(found) < len(names):
        topic = f"t/{at}"
        found.setdefault(ring.responsible_for(topic_id(topic)), topic)
        at += 1
    return found


def rosters(sent: list[Send], book: Book = Book.ROSTERS) -> dict[str, set[tuple[str, str, int]]]:
    """Who was told of which gateways of which topics, and what they do."""
    told: dict[str, set[tuple[str, str, int]]] = {}
    for one in sent:
        if isinstance(one.msg, LedgerChange) and one.msg.book == book:
            for line in one.msg.lines:
                who = one.msg.parties[line.party].gateway if line.party >= 0 else ""
                told.setdefault(one.to, set()).add((line.topic, who, line.flags))
    return told


def supervisor() -> tuple[GatewaysNode, str]:
    """A home of some topic, beside two delegates."""
    node = GatewaysNode(base=False)
    node.joins("da", manager=True, zone="a", roles="delegate")
    node.joins("db", manager=True, zone="b", roles="delegate")
    node.zone("a", "da")
    node.zone("b", "db")
    node.enter()
    node.settle()
    node.pass_time(3.0)
    return node, home_among("me", "da", "db")["me"]


def test_a_home_tells_the_gateways_of_each_other() -> None:
    node, topic = supervisor()
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.pass_time(0.05)
    assert rosters(node.sent()) == {"ga": {(topic, "ga", PUB)}}, "it learns that it is known"
    node.told("db", Book.INTERESTS, (topic, SUB), by=party("gb", "b"))
    node.pass_time(0.02)
    effects = node.effects.recorded
    learned = [
        effect for effect in effects if isinstance(getattr(effect, "event", 0), ContactLearned)
    ]
    assert len(learned) == 1
    assert rosters(node.sent()) == {
        "ga": {(topic, "gb", SUB)},
        "gb": {(topic, "ga", PUB), (topic, "gb", SUB)},
    }
    node.told("db", Book.INTERESTS, (topic, 0), by=party("gb", "b"))
    node.pass_time(0.05)
    assert rosters(node.sent()) == {"ga": {(topic, "gb", 0)}}


def test_a_home_keeps_its_lines_at_its_ring_successor() -> None:
    node, topic = supervisor()
    (successor,) = Ring(["me", "da", "db"]).successors("me", 1)
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.pass_time(0.05)
    assert rosters(node.sent(), Book.REPLICAS) == {successor: {(topic, "ga", PUB)}}
    node.fails(successor, manager=True)
    node.pass_time(0.2)
    (other,) = {"da", "db"} - {successor}
    assert rosters(node.sent(), Book.REPLICAS) == {other: {(topic, "ga", PUB)}}


def test_a_successor_goes_on_with_what_the_home_knew() -> None:
    node, _ = supervisor()
    topic = home_among("me", "da", "db")[Ring(["me", "da", "db"]).predecessors("me", 1)[0]]
    home = Ring(["me", "da", "db"]).predecessors("me", 1)[0]
    node.told(home, Book.REPLICAS, (topic, PUB), by=party("gx", "x"))
    node.told(home, Book.REPLICAS, (topic, SUB), by=party("gy", "y"))
    node.pass_time(0.1)
    assert node.gateways.home_of() == {}
    assert rosters(node.sent()) == {}
    node.fails(home, manager=True)
    node.pass_time(0.2)
    assert set(node.gateways.home_of()[topic]) == {"gx", "gy"}
    assert rosters(node.sent()) == {"gx": {(topic, "gy", SUB)}, "gy": {(topic, "gx", PUB)}}
    node.pass_time(3.0)
    told = {"gx": {(topic, "gx", PUB)}, "gy": {(topic, "gy", SUB)}}
    assert rosters(node.sent()) == told, "only now it may have heard of all"
    node.pass_time(28.0)
    assert node.gateways.home_of() == {}, "nobody told it again"


def test_a_topic_that_moves_to_another_home_is_handed_over_without_a_word() -> None:
    node = GatewaysNode(base=False)
    node.joins("da", manager=True, zone="a")
    node.enter()
    node.settle()
    before = Ring(["me", "da"])
    moving, newcomer = next(
        (topic, name)
        for name in (f"db{at}" for at in range(9))
        for topic in (f"t/{at}" for at in range(99))
        if before.responsible_for(topic_id(topic)) == "me"
        and Ring(["me", "da", name]).responsible_for(topic_id(topic)) == name
    )
    node.told("da", Book.INTERESTS, (moving, PUB), by=party("ga", "a"))
    node.told("da", Book.INTERESTS, (moving, SUB), by=party("gb", "a"))
    node.settle()
    node.joins(newcomer, manager=True, zone="b")
    node.pass_time(0.2)
    assert node.gateways.home_of() == {}
    assert rosters(node.sent()) == {}, "whoever was told holds on to it"


def test_two_delegates_that_tell_the_same_make_no_difference() -> None:
    node, topic = supervisor()
    node.joins("da2", manager=True, zone="a")
    node.settle()
    if topic not in home_among("me", "da", "db", "da2").values():
        topic = home_among("me", "da", "db", "da2")["me"]
    for delegate in ("da", "da2"):
        node.told(delegate, Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.settle()
    node.told("da", Book.INTERESTS, (topic, 0), by=party("ga", "a"))
    node.settle()
    assert set(node.gateways.home_of()[topic]) == {"ga"}
    node.told("da2", Book.INTERESTS, (topic, 0), by=party("ga", "a"))
    node.settle()
    assert node.gateways.home_of() == {}


def test_a_delegate_speaks_for_its_own_zone_only() -> None:
    node, topic = supervisor()
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("gb", "b"))
    node.settle()
    assert node.gateways.home_of() == {}
    assert node.gateways.counts.strangers == 1


def test_a_home_tells_a_delegate_of_topics_that_its_patterns_cover() -> None:
    node, topic = supervisor()
    node.says("db", manager=True, patterns="t/*")
    node.settle()
    node.told("da", Book.INTERESTS, (topic, SUB), by=party("ga", "a"))
    node.pass_time(0.05)
    assert rosters(node.sent(), Book.EXISTING) == {}, "nobody publishes"
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.pass_time(0.05)
    assert rosters(node.sent(), Book.EXISTING) == {"db": {(topic, "", PUB)}}
    node.says("da", manager=True, patterns="**")
    node.pass_time(0.2)
    assert rosters(node.sent(), Book.EXISTING) == {"da": {(topic, "", PUB)}}
    node.says("db", manager=True, patterns="other")
    node.pass_time(0.2)
    assert rosters(node.sent(), Book.EXISTING) == {"db": {(topic, "", 0)}}
    node.told("da", Book.INTERESTS, (topic, 0), by=party("ga", "a"))
    node.pass_time(0.05)
    assert rosters(node.sent(), Book.EXISTING) == {"da": {(topic, "", 0)}}


def test_patterns_that_come_after_the_topic_are_told_of_it() -> None:
    node, topic = supervisor()
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.settle()
    node.says("db", manager=True, patterns="t/**")
    node.pass_time(0.2)
    assert rosters(node.sent(), Book.EXISTING) == {"db": {(topic, "", PUB)}}


def test_a_delegate_that_returns_is_compared_with_at_once() -> None:
    node, topic = supervisor()
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.settle()
    node.fails("da", manager=True)
    node.pass_time(0.2)
    assert set(node.gateways.home_of()[topic]) == {"ga"}, "it may only be its delegate that died"
    node.joins("da", manager=True, zone="a")
    node.receive("da", digest(Book.INTERESTS, (topic, PUB), by=party("ga", "a")))
    node.pass_time(60.0)
    assert node.gateways.home_of() == {}, "it was asked, and told nothing"


# -- the directory --------------------------------------------------------------------------------


def test_a_home_answers_itself_and_others() -> None:
    node, topic = supervisor()
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.told("db", Book.INTERESTS, (topic, PUB), by=party("gb", "b"))
    node.settle()
    question = node.gateways.ask_topic(topic, node.now)
    assert node.events() == [TopicKnown(question, topic_id(topic), topic, ("a", "b"))]
    wire = vid_to_wire(topic_id(topic))
    node.receive("da", TopicRequest(7, wire, forwarded=True))
    assert node.sent() == [Send("da", TopicAnswer(7, wire, topic, ("a", "b")))]
    node.receive("stranger", TopicRequest(8, wire))
    ((to, answer),) = node.sent()
    assert isinstance(answer, TopicAnswer)
    assert (to, answer.name, answer.final) == ("stranger", "", False)


def test_a_member_asks_one_delegate_after_the_other() -> None:
    node = GatewaysNode()
    node.joins("d1", "d2")
    node.delegates("d1", "d2")
    node.settle()
    question = node.gateways.ask_topic(5, node.now)
    request = TopicRequest(question, vid_to_wire(5))
    assert node.sent() == [Send("d1", request)]
    node.pass_time(1.0)
    assert node.sent(TopicRequest) == [Send("d2", request)]
    node.receive("d2", TopicAnswer(question, vid_to_wire(5), reason="none"))
    assert node.events() == [TopicUnknown(question, 5, "none")]
    node.receive("d1", TopicAnswer(question, vid_to_wire(5), reason="none"))
    assert node.events() == []
    assert node.gateways.counts.late == 1


def test_a_question_without_answers_ends_all_the_same() -> None:
    node = GatewaysNode(settings=GatewaysSettings(ask_tries=3))
    question = node.gateways.ask_topic("a/b", node.now)
    node.pass_time(10.0)
    unknown = [event for event in node.events() if isinstance(event, TopicUnknown)]
    assert unknown == [
        TopicUnknown(question, topic_id("a/b"), f"zone {ZONE!r} has no delegate to ask")
    ]
    assert node.gateways.open_questions == 0


def test_a_delegate_asks_the_home_for_members_of_its_zone() -> None:
    node = GatewaysNode()
    node.joins("x")
    node.joins("h", manager=True)
    node.enter()
    node.delegates("me")
    node.settle()
    topic = home_among("me", "h")["h"]
    wire = vid_to_wire(topic_id(topic))
    node.receive("x", TopicRequest(9, wire))
    node.receive("x", TopicRequest(9, wire))
    ((to, asked),) = node.sent()
    assert isinstance(asked, TopicRequest)
    assert (to, asked.topic, asked.forwarded) == ("h", wire, True)
    node.receive("h", TopicAnswer(asked.id, wire, topic, ("b",)))
    assert node.sent() == [Send("x", TopicAnswer(9, wire, topic, ("b",)))]
    node.receive("h", TopicRequest(3, wire, forwarded=True))
    ((to, answer),) = node.sent()
    assert isinstance(answer, TopicAnswer)
    assert (to, answer.final) == ("h", False), "views differ: it is asked again"


def test_bad_questions_and_answers() -> None:
    node = GatewaysNode(settings=GatewaysSettings(max_open=1))
    node.joins("d")
    node.delegates("d")
    with pytest.raises(LocalProtocolError, match="128 bits"):
        node.gateways.ask_topic(1 << 128, node.now)
    with pytest.raises(LocalProtocolError, match="wildcard"):
        node.gateways.ask_topic("a/*", node.now)
    question = node.gateways.ask_topic("a", node.now)
    with pytest.raises(LocalProtocolError, match="max_open"):
        node.gateways.ask_topic("b", node.now)
    wire = vid_to_wire(topic_id("a"))
    with pytest.raises(RemoteProtocolError, match="gateways-bad-answer"):
        node.receive("d", TopicAnswer(question, wire, "not/a", ("b",)))
    node.receive("d", TopicAnswer(question, wire, "a", ("b",)))
    assert TopicKnown(question, topic_id("a"), "a", ("b",)) in node.events()


def test_a_busy_delegate_says_so() -> None:
    node = GatewaysNode(settings=GatewaysSettings(max_open=1))
    node.joins("x")
    node.joins("h", manager=True)
    node.enter()
    node.settle()
    wire = vid_to_wire(topic_id(home_among("me", "h")["h"]))
    node.receive("x", TopicRequest(1, wire))
    node.receive("x", TopicRequest(2, wire))
    answers = [one.msg for one in node.sent(TopicAnswer)]
    assert [(msg.id, msg.final) for msg in answers if isinstance(msg, TopicAnswer)] == [(2, False)]
    assert node.gateways.counts.busy == 1


def test_lines_of_existing_topics_have_no_party() -> None:
    node, topic = supervisor()
    node.says("db", manager=True, patterns="t/*")
    node.told("da", Book.INTERESTS, (topic, PUB), by=party("ga", "a"))
    node.pass_time(0.2)
    told = [one.msg for one in node.sent(LedgerChange) if one.to == "db"]
    lines = [msg.lines for msg in told if isinstance(msg, LedgerChange) and msg.book == 5]
    assert lines == [(Line(topic, PUB),)]
