"""Figure 1 of the paper on resource discovery: who gets to know what, over four brokers."""

from __future__ import annotations

from overlay.predicates import Constraint
from protocols.content.messages import Publication
from tests.unit.content.world import World, linked


def test_the_example_of_figure_1() -> None:
    world = World()
    linked(world, [("A", "C"), ("B", "C"), ("C", "D")])
    world.call("A", "advertise", "adv1", Constraint.parse("x >= 0, x <= 100"))
    world.drain()
    hops = {name: one.advertisement("A/adv1").hop for name, one in world.machines.items()}  # type: ignore[union-attr]
    assert hops == {"A": "A", "C": "A", "B": "C", "D": "C"}
    world.call("B", "subscribe", "sub1", Constraint.parse("x > 50"))
    world.drain()
    rows = {
        name: [(row.id, row.hop) for row in one.subscriptions()]
        for name, one in world.machines.items()
    }
    assert rows == {"B": [("B/sub1", "B")], "C": [("B/sub1", "B")], "A": [("B/sub1", "C")], "D": []}
    world.sent.clear()
    world.call("A", "publish", "adv1", {"x": 60})
    world.drain()
    assert [(src, to) for src, to, msg in world.sent if isinstance(msg, Publication)] == [
        ("A", "C"),
        ("C", "B"),
    ]
    assert world.delivered() == [("B/sub1", "A/adv1", 1)]
