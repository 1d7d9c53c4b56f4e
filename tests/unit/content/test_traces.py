"""What is left in the traces: one row for the publications of a tick."""

from __future__ import annotations

from overlay.predicates import Constraint
from overlay.tracing import Level
from overlay.tracing.kinds import CONTENT_DELIVERED, CONTENT_HANDED_ON, CONTENT_PUBLISHED
from tests.recording import TickEnd, Traced
from tests.unit.content.node import Node, sub


def rows(node: Node) -> list[tuple[str, int | None, int, int | None]]:
    found = []
    while recorded := node.effects.drain():
        for effect in recorded:
            if isinstance(effect, TickEnd):
                effect.callback(node.now)
            elif isinstance(effect, Traced):
                row = effect.record
                assert (row.origin, row.key) == ("me", "me/p")
                found.append((row.kind.name, row.first, row.count, row.hops))
    return found


def test_a_tick_is_one_row_for_each_advertisement() -> None:
    node = Node()
    node.meet("n1", "n2")
    node.call("advertise", "p", Constraint.parse("x >= 0"))
    node.call("subscribe", "s", Constraint.parse("x > 1"))
    for peer in ("n1", "n2"):
        node.tell(peer, sub(f"{peer}/s", "x >= 0", peer))
    node.effects.tracing = Level.MESSAGES
    for value in range(3):
        node.content.publish("p", {"x": value}, node.now)
    assert rows(node) == [
        (CONTENT_PUBLISHED.name, 1, 3, 0),
        (CONTENT_HANDED_ON.name, 1, 6, 0),
        (CONTENT_DELIVERED.name, 3, 1, 0),
    ]
    node.effects.tracing = Level.OFF
    node.content.publish("p", {"x": 1}, node.now)
    assert rows(node) == []
