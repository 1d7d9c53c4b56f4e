"""Grafts: a publisher that moved uses the tree that it has, and nobody off the way is told."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from overlay.predicates import Constraint
from protocols.content.messages import AdvertisementLine, Change, GraftLine, Publication
from tests.recording import Emit, Send
from tests.unit.content.node import Node, ad, changes, sends, sub


@pytest.fixture
def node() -> Node:
    """A broker between n1, behind which the anchor of p/1 is, and n2 and n3."""
    node = Node()
    node.meet("n1", "n2", "n3")
    node.meet("p", role="client")
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    return node


def moved(epoch: int = 5, graft: int = 1, text: str = "x > 0") -> AdvertisementLine:
    """What a client tells that moved here."""
    return AdvertisementLine("p/1", epoch, Constraint.parse(text).wire(), graft=graft)


def grafts(done: list[Send | Emit]) -> dict[str, list[GraftLine | str]]:
    """Whom it told which grafts, and of which it told that they are gone."""
    found: dict[str, list[GraftLine | str]] = {}
    for to, msg in sends(done, Change):
        assert isinstance(msg, Change)
        if msg.grafts or msg.ungrafted:
            found.setdefault(to, []).extend((*msg.grafts, *msg.ungrafted))
    return found


def tell_graft(
    node: Node, src: str, *lines: GraftLine, gone: tuple[str, ...] = ()
) -> list[Send | Emit]:
    """A neighbour changes what it says of sources."""
    node.stamps[src] += 1
    return node.hear(src, Change(7, node.stamps[src], grafts=lines, ungrafted=gone))


UP = GraftLine("p/1", 1, True)


def test_a_source_is_told_to_the_last_hop_alone(node: Node) -> None:
    done = node.tell("p", moved())
    assert grafts(done) == {"n1": [UP]}
    assert changes(done) == {"n1": []}


def test_subscriptions_go_up_until_the_anchor_says_that_nobody_publishes_there(node: Node) -> None:
    node.tell("p", moved())
    assert changes(node.tell("n2", sub("s/1", "x > 5", "n2"))) == {"n1": ["?s/1"]}
    done = tell_graft(node, "n1", GraftLine("p/1", 1, False, live=False))
    assert changes(done) == {"n1": ["!s/1"]}
    done = tell_graft(node, "n1", GraftLine("p/1", 1, False, live=True))
    assert changes(done) == {"n1": ["?s/1"]}


def test_a_branch_with_a_source_gets_subscriptions_and_the_answer(node: Node) -> None:
    node.tell("n3", sub("s/1", "x > 5", "n3"))
    done = tell_graft(node, "n2", UP)
    assert changes(done) == {"n1": [], "n2": ["?s/1"]}
    assert grafts(done) == {"n1": [UP], "n2": [GraftLine("p/1", 1, False, live=True)]}
    done = tell_graft(node, "n1", GraftLine("p/1", 1, False, live=False))
    assert grafts(done) == {"n2": [GraftLine("p/1", 1, False, live=False)]}
    assert changes(done) == {"n2": [], "n1": ["!s/1"]}
    done = tell_graft(node, "n2", gone=("p/1",))  # the publisher ended there
    assert grafts(done) == {"n1": ["p/1"], "n2": ["p/1"]}
    assert changes(done) == {"n1": ["?s/1"], "n2": ["!s/1"]}


def test_publications_go_from_the_branch_up_and_to_the_others(node: Node) -> None:
    tell_graft(node, "n2", UP)
    node.tell("n1", sub("s/1", "x > 5", "n1"))
    node.tell("n3", sub("s/3", "x > 5", "n3"))
    done = node.hear("n2", Publication("p/1", 5, 1, {"x": 9}))
    assert sorted(to for to, _ in sends(done, Publication)) == ["n1", "n3"]


def test_an_older_tree_than_the_client_had_is_not_used(node: Node) -> None:
    done = node.tell("p", moved(graft=3))
    assert changes(done) == {"n1": ["+p/1"], "n2": ["+p/1"], "n3": ["+p/1"]}
    assert not grafts(done)


def test_another_constraint_is_a_new_advertisement(node: Node) -> None:
    assert changes(node.tell("p", moved(text="x > 1")))["n2"] == ["+p/1"]


def test_without_its_anchor_the_publisher_advertises_itself(node: Node) -> None:
    node.tell("p", moved())
    done = node.tell("n1", unadvertised=("p/1",))
    assert changes(done) == {"n1": ["+p/1"], "n2": ["+p/1"], "n3": ["+p/1"]}
    # And stays the anchor when the old tree is known again.
    assert changes(node.tell("n1", ad("p/1", "x > 0", "n1"))) == {}


def test_a_graft_of_another_epoch_counts_for_nothing(node: Node) -> None:
    node.tell("n3", sub("s/1", "x > 5", "n3"))
    assert changes(tell_graft(node, "n2", GraftLine("p/1", 9, True))) == {}
    done = node.tell("n1", ad("p/1", "x > 0", "n1", epoch=9))
    assert grafts(done) == {
        "n1": [GraftLine("p/1", 9, True)],
        "n2": [GraftLine("p/1", 9, False, live=True)],
    }


def test_a_client_cannot_tell_of_grafts(node: Node) -> None:
    with pytest.raises(RemoteProtocolError, match="not-yours"):
        tell_graft(node, "p", UP)


def test_a_lost_branch_takes_its_grafts_along(node: Node) -> None:
    node.tell("n3", sub("s/1", "x > 5", "n3"))
    tell_graft(node, "n2", UP)
    node.content.unlink("n2", node.now)
    assert grafts(node.done()) == {"n1": ["p/1"]}
