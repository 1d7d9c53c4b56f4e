"""The order of publications, when they come by two ways."""

from __future__ import annotations

import pytest

from overlay.predicates import Constraint
from protocols.content import ContentSettings, Delivered
from protocols.content.messages import Publication
from protocols.content.streams import SETTLE
from tests.unit.content.node import Node, events, greeting

SETTINGS = ContentSettings(role="broker", settle=0.5)


@pytest.fixture
def node() -> Node:
    node = Node(SETTINGS)
    node.meet("n1", "n2")
    node.call("subscribe", "s", Constraint.parse("x >= 0"))
    return node


def came(node: Node, src: str, sequence: int, epoch: int = 1) -> list[int]:
    done = node.hear(src, Publication("p/1", epoch, sequence, {"x": sequence}))
    return [event.sequence for event in events(done) if isinstance(event, Delivered)]


def test_what_comes_twice_or_late_is_dropped(node: Node) -> None:
    assert came(node, "n1", 1) == [1]
    assert came(node, "n1", 3) == [3]
    assert came(node, "n1", 3) == []
    assert came(node, "n1", 2) == []
    assert node.content.counts.behind == 2
    assert came(node, "n1", 1, epoch=2) == [1]


def test_a_new_way_waits_for_the_old_one(node: Node) -> None:
    assert came(node, "n1", 1) == [1]
    assert came(node, "n2", 3) == []
    assert came(node, "n1", 2) == [2]
    assert came(node, "n1", 4) == [3, 4]
    assert node.effects.timers.keys() == {"beat"}


def test_until_it_settled(node: Node) -> None:
    assert came(node, "n1", 1) == [1]
    assert came(node, "n2", 4) == []
    assert came(node, "n2", 3) == []
    assert node.effects.timers[SETTLE, "p/1"] == node.now + 0.5
    done = node.timer((SETTLE, "p/1"))
    assert [event.sequence for event in events(done)] == [3, 4]  # type: ignore[attr-defined]
    assert came(node, "n2", 5) == [5], "n2 is the way now"
    assert came(node, "n1", 6) == []


def test_or_the_old_way_is_gone(node: Node) -> None:
    assert came(node, "n1", 1) == [1]
    assert came(node, "n2", 2) == []
    done = node.hear("n1", greeting(lease=0.0))
    assert [event.sequence for event in events(done) if isinstance(event, Delivered)] == [2]


def test_what_waits_and_what_is_remembered_is_bounded() -> None:
    node = Node(ContentSettings(role="broker", settle=0.5, max_held=2, max_streams=16))
    node.meet("n1", "n2")
    node.call("subscribe", "s", Constraint.parse("x >= 0"))
    assert came(node, "n1", 1) == [1]
    assert [came(node, "n2", number) for number in (2, 3, 4)] == [[], [], [2, 3, 4]]
    assert node.content.counts.not_held == 1
    for number in range(20):
        node.hear("n1", Publication(f"q/{number}", 1, 1, {"x": 1}))
    assert node.content.counts.streams_forgotten == 5
