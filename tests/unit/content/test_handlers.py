"""The handlers of figures 2 and 3 of the mobility paper, at one broker with three neighbours."""

from __future__ import annotations

import pytest

from overlay.predicates import Constraint
from protocols.content import (
    Advertised,
    AdvertisementAdded,
    AdvertisementChanged,
    AdvertisementRemoved,
)
from protocols.content.messages import Change, Publication
from tests.recording import Emit, Send
from tests.unit.content.node import Node, ad, changes, events, sends, sub


@pytest.fixture
def node() -> Node:
    node = Node()
    node.meet("n1", "n2", "n3")
    return node


def test_an_advertisement_goes_to_all_but_its_sender(node: Node) -> None:
    done = node.tell("n1", ad("p/1", "x > 0", "n1"))
    known = Advertised("p/1", 1, Constraint.parse("x > 0"), "", False, b"", "n1", ("n1",))
    told = ad("p/1", "x > 0", "me", "n1")
    readers = node.content.router.readers
    assert done == [
        Emit(AdvertisementAdded(known)),
        Send("n2", Change(readers["n2"].ledger.series, 2, (told,))),
        Send("n3", Change(readers["n3"].ledger.series, 2, (told,))),
    ]


def test_a_covered_advertisement_is_suppressed_and_restored(node: Node) -> None:
    node.tell("n1", ad("p/wide", "x > 0, y > 0", "n1"))
    # Line 6: n2 and n3 have the cover; n1, where it came from, has not.
    assert changes(node.tell("n2", ad("q/narrow", "x > 5", "n2", epoch=2))) == {"n1": ["+q/narrow"]}
    assert changes(node.tell("n1", unadvertised=("p/wide",))) == {
        "n2": ["-p/wide"],
        "n3": ["+q/narrow", "-p/wide"],
    }


def test_a_wider_advertisement_takes_the_place_of_a_narrow_one(node: Node) -> None:
    node.tell("n1", ad("p/narrow", "x > 5", "n1"))
    assert changes(node.tell("n2", ad("q/wide", "x > 0", "n2", epoch=2))) == {
        "n1": ["+q/wide"],
        "n3": ["+q/wide", "-p/narrow"],
    }
    # The narrow one goes on to the broker of its cover: nothing may stop it on that way.
    assert "p/narrow" in {
        key.id for key in node.content.router.readers["n2"].ledger.lines if key.advertisement
    }


def test_of_two_equal_ones_the_senior_stands_for_both(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1", epoch=5))
    assert changes(node.tell("n2", ad("q/1", "x > 0", "n2", epoch=6))) == {"n1": ["+q/1"]}
    assert changes(node.tell("n3", ad("r/1", "x > 0", "n3", epoch=4))) == {
        "n1": ["+r/1", "-q/1"],
        "n2": ["+r/1", "-p/1"],
        "n3": ["+q/1"],  # towards the broker of its cover; p/1 went there before
    }


def test_a_whole_advertisement_is_told_to_all(node: Node) -> None:
    node.tell("n1", ad("p/wide", "x > 0", "n1"))
    assert changes(node.tell("n2", ad("q/1", "x > 5", "n2", epoch=2, whole=True))) == {
        "n1": ["+q/1"],
        "n3": ["+q/1"],
    }


def test_models_never_cover_or_meet(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1", model="static"))
    assert changes(node.tell("n2", ad("q/1", "x > 5", "n2", epoch=2, model="dynamic"))) == {
        "n1": ["+q/1"],
        "n3": ["+q/1"],
    }
    assert changes(node.tell("n3", sub("s/1", "x > 7", "n3", model="dynamic"))) == {"n2": ["?s/1"]}


def test_a_subscription_goes_to_intersecting_advertisements_alone(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0, x < 10", "n1"))
    node.tell("n2", ad("q/1", "x > 20", "n2"))
    assert changes(node.tell("n3", sub("s/1", "x > 5, x < 15", "n3"))) == {"n1": ["?s/1"]}
    # An advertisement that comes later sends it there (figure 2, lines 12 to 16).
    assert changes(node.tell("n2", ad("q/2", "x > 12, x < 20", "n2", epoch=2))) == {
        "n1": ["+q/2"],
        "n3": ["+q/2"],
        "n2": ["?s/1"],
    }
    # The withdrawal of an advertisement takes it back.
    assert changes(node.tell("n1", unadvertised=("p/1",))) == {
        "n2": ["-p/1"],
        "n3": ["-p/1"],
        "n1": ["!s/1"],
    }


def test_a_subscription_does_not_go_back(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    assert changes(node.tell("n1", sub("s/1", "x > 5", "n1"))) == {}


def test_a_covered_subscription_is_suppressed_and_restored(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    assert changes(node.tell("n2", sub("s/wide", "x > 2", "n2"))) == {"n1": ["?s/wide"]}
    assert changes(node.tell("n3", sub("t/narrow", "x > 5", "n3"))) == {}
    assert changes(node.tell("n2", unsubscribed=("s/wide",))) == {"n1": ["?t/narrow", "!s/wide"]}


def test_a_suppressed_subscription_still_gets_publications(node: Node) -> None:
    node.call("advertise", "mine", Constraint.parse("x > 0"))
    node.tell("n2", sub("s/wide", "x > 2", "n2"))
    node.tell("n3", sub("t/narrow", "x > 5", "n3"))
    done = node.call("publish", "mine", {"x": 6})
    assert [to for to, _ in sends(done, Publication)] == ["n2", "n3"]
    done = node.call("publish", "mine", {"x": 4})
    assert [to for to, _ in sends(done, Publication)] == ["n2"]


def test_the_shorter_path_and_then_the_first_name_wins(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1", "far", "home"))
    done = node.tell("n2", ad("p/1", "x > 0", "n2", "home"))
    (changed,) = events(done)
    assert isinstance(changed, AdvertisementChanged)
    assert (changed.before.hop, changed.advertisement.hop) == ("n1", "n2")
    assert changes(done) == {"n1": ["+p/1"], "n2": ["-p/1"], "n3": ["+p/1"]}
    assert node.tell("n3", ad("p/1", "x > 0", "n3", "home")) == []
    node.tell("n2", unadvertised=("p/1",))
    assert node.content.advertisement("p/1").hop == "n3"  # type: ignore[union-attr]


def test_a_newer_epoch_wins_over_a_shorter_path(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1", epoch=1))
    node.tell("n2", ad("p/1", "x > 0", "n2", "far", "farther", epoch=2))
    assert node.content.advertisement("p/1").hop == "n2"  # type: ignore[union-attr]


def test_a_path_through_this_broker_is_no_way(node: Node) -> None:
    assert node.tell("n1", ad("p/1", "x > 0", "n1", "me", "home")) == []
    assert node.content.advertisement("p/1") is None


def test_a_subscription_that_came_back_does_not_live_on(node: Node) -> None:
    """Around a cycle it comes back by n2; when its subscriber at n3 goes, all of it goes."""
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    node.tell("n3", sub("s/1", "x > 5", "n3"))
    assert changes(node.tell("n2", sub("s/1", "x > 5", "n2", "o", "me", "n3"))) == {}
    assert changes(node.tell("n3", unsubscribed=("s/1",))) == {"n1": ["!s/1"]}


def test_a_withdrawn_advertisement_is_told(node: Node) -> None:
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    (gone,) = events(node.tell("n1", unadvertised=("p/1",)))
    assert isinstance(gone, AdvertisementRemoved)
    assert gone.advertisement.id == "p/1"
