"""What a node wants is told to its zone at the end of a tick, and to its gateways."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from protocols.topics import Topics
from protocols.topics.names import word_of
from tests.unit.topics.node import TOPIC, TopicsNode


def said(node: TopicsNode) -> dict[str, object]:
    return dict(node.base.attributes("me"))


def test_interest_is_told_once_at_the_end_of_the_tick() -> None:
    node = TopicsNode()
    topics: Topics = node.topics
    topics.subscribe(TOPIC, node.now)
    topics.subscribe("other", node.now)
    topics.subscribe("plant/*", node.now)
    assert said(node) == {}
    before = node.base.version
    node.end_tick()
    assert said(node) == {"topics": f"{word_of(TOPIC)},{word_of('other')}", "patterns": "plant/*"}
    assert node.base.version == before + 2


def test_only_the_first_and_the_last_subscription_change_anything() -> None:
    node = TopicsNode()
    one, two = node.subscribe(), node.subscribe()
    before = node.base.version
    node.topics.unsubscribe(one, node.now)
    node.end_tick()
    assert node.base.version == before
    node.topics.unsubscribe(two, node.now)
    node.end_tick()
    assert said(node) == {}
    node.topics.unsubscribe(two, node.now)
    assert not two.open
    assert node.end_tick() == []


def test_gateways_hear_of_names_not_of_patterns() -> None:
    node = TopicsNode()
    one, pattern = node.subscribe(), node.subscribe("plant/**")
    node.topics.unsubscribe(pattern, node.now)
    node.topics.unsubscribe(one, node.now)
    assert node.book.declared == [(TOPIC, False, True), (TOPIC, False, False)]


def test_a_publisher_that_subscribes_declares_both() -> None:
    node = TopicsNode()
    node.subscribe()
    node.publisher()
    assert node.book.declared[-1] == (TOPIC, True, True)


def test_a_right_to_a_pattern_is_asked_for_as_it_is() -> None:
    asked: list[tuple[str, str, str]] = []

    def may(name: str, what: str, topic: str) -> bool:
        asked.append((name, what, topic))
        return topic == "plant/*"

    node = TopicsNode(may=may)
    node.subscribe("plant/*")
    with pytest.raises(LocalProtocolError, match=r"'me' .* subscribe to '\*\*'"):
        node.subscribe("**")
    assert asked == [("me", "subscribe", "plant/*"), ("me", "subscribe", "**")]
    assert said(node) == {"patterns": "plant/*"}
