"""What must not get in: false roles, false entries, floods, publications outside of anything."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from overlay.predicates import Constraint, Predicate
from protocols.content import ContentSettings, EntryRefused
from protocols.content.messages import Page, Publication, Refused, SubscriptionLine
from tests.unit.content.node import BROKER, Node, ad, events, greeting, sends, sub

X = Constraint.parse("x > 0")


def reason(node: Node, src: str, *lines: object) -> str:
    with pytest.raises(RemoteProtocolError) as caught:
        node.tell(src, *lines)  # type: ignore[arg-type]
    node.stamps[src] -= 1  # it was not taken
    return caught.value.reason


def test_only_brokers_are_neighbours() -> None:
    node = Node(may_be=lambda name, role: name.startswith("b"))
    with pytest.raises(RemoteProtocolError, match="content-no-right"):
        node.hear("mallory", greeting())
    node.hear("mallory", greeting(role="client"))
    assert (node.content.neighbours(), node.content.clients()) == ((), ("mallory",))
    node.hear("b2", greeting())
    assert node.content.neighbours() == ("b2",)


def test_a_client_tells_its_own_entries_alone() -> None:
    node = Node()
    node.meet("ann", role="client")
    assert reason(node, "ann", ad("bob/1", "x > 0")) == "content-not-yours"
    assert reason(node, "ann", sub("bob/1", "x > 0")) == "content-not-yours"
    assert reason(node, "ann", ad("ann/1", "x > 0", "ann")) == "content-not-yours"
    assert not list(node.content.advertisements())


def test_a_neighbour_is_the_first_on_its_paths() -> None:
    node = Node()
    node.meet("n1")
    assert reason(node, "n1", ad("p/1", "x > 0", "n2")) == "content-bad-path"
    assert reason(node, "n1", ad("p/1", "x > 0")) == "content-bad-path"
    assert reason(node, "n1", ad("abc", "x > 0", "n1")) == "content-bad-id"


def test_a_bad_line_spoils_the_message_and_nothing_else() -> None:
    node = Node()
    node.meet("n1")
    bad = SubscriptionLine("s/1", (Predicate("x", ">", float("nan")),), "", ("n1",))
    assert reason(node, "n1", sub("s/0", "x > 0", "n1"), bad) == "bad-constraint"
    assert not list(node.content.subscriptions())
    contrary = SubscriptionLine(
        "s/1", (Predicate("x", ">", 5), Predicate("x", "<", 1)), "", ("n1",)
    )
    assert reason(node, "n1", contrary) == "bad-constraint"


def test_strangers_are_counted() -> None:
    node = Node()
    node.hear("who", Page(1, 1, 0, last=True))
    node.hear("who", Publication("who/1", 1, 1, {"x": 1}))
    assert node.content.counts.strays == 2
    client = Node(ContentSettings(broker="b1"))
    assert client.hear("b2", greeting()) == [], "it has another broker"
    assert client.hear("b2", Refused("go away")) == []
    assert client.content.counts.strays == 2


def test_a_flood_of_subscriptions_is_refused_and_counted() -> None:
    node = Node(replace(BROKER, client_subscriptions=3))
    node.meet("ann", role="client")
    done = node.tell("ann", *(sub(f"ann/{number}", f"x > {number}") for number in range(20)))
    assert len(list(node.content.subscriptions())) == 3
    assert node.content.counts.refused_lines == 17
    refused = sends(done, Refused)
    assert len(refused) == 8, "the rest is only counted"
    assert refused[0] == ("ann", Refused("too many subscriptions: at most 3", "ann/3"))


def test_changes_of_a_client_have_a_rate() -> None:
    node = Node(replace(BROKER, client_changes=10.0, client_burst=5.0))
    node.meet("ann", role="client")
    node.tell("ann", *(sub(f"ann/{number}", f"x > {number}") for number in range(20)))
    assert len(list(node.content.subscriptions())) == 5
    assert node.content.counts.refused_lines == 15


def test_what_did_not_fit_is_asked_for_later() -> None:
    node = Node(replace(BROKER, client_changes=10.0, client_burst=5.0))
    node.meet("ann", role="client")
    lines = [sub(f"ann/{number}", f"x > {number}") for number in range(8)]
    node.tell("ann", *lines)
    node.now += 6.0
    asked = node.hear("ann", greeting(role="client", stamp=2, digest=b"12345678", lease=15.0))
    assert [to for to, msg in sends(asked, type(asked[-1].msg))] == ["ann"]  # type: ignore[union-attr]
    node.hear("ann", Page(7, 3, 0, last=True, subscriptions=tuple(lines)))
    assert len(list(node.content.subscriptions())) == 8


def test_too_many_neighbours_and_clients_are_turned_away() -> None:
    node = Node(replace(BROKER, max_links=1, max_clients=1))
    node.meet("n1")
    assert node.hear("n2", greeting())[-1].msg == Refused("1 brokers are linked already")  # type: ignore[union-attr]
    node.meet("ann", role="client")
    node.hear("bob", greeting(role="client"))
    assert node.content.counts.refused_peers == 2


def test_a_publication_outside_of_its_advertisement_is_refused_at_home() -> None:
    node = Node()
    node.call("advertise", "a", Constraint.parse("x > 0"))
    for item in ({"x": 0}, {"y": 1}, {"x": 1, "y": 1}, {"x": "one"}):
        with pytest.raises(LocalProtocolError, match="does not determine"):
            node.call("publish", "a", item)
    with pytest.raises(LocalProtocolError, match="advertise it first"):
        node.call("publish", "b", {"x": 1})
    with pytest.raises(LocalProtocolError, match="nan"):
        node.call("publish", "a", {"x": float("nan")})


def test_and_dropped_elsewhere() -> None:
    node = Node()
    node.meet("n1")
    node.meet("ann", role="client")
    node.tell("n1", ad("p/1", "x > 0", "n1"))
    node.tell("ann", ad("ann/1", "x > 0"))
    for src, entry, value in (("n1", "p/1", -1), ("ann", "ann/1", -1), ("ann", "ann/none", 1)):
        with pytest.raises(RemoteProtocolError, match="content-undetermined"):
            node.hear(src, Publication(entry, 1, 1, {"x": value}))
    assert node.content.counts.undetermined == 3
    with pytest.raises(RemoteProtocolError, match="content-not-yours"):
        node.hear("ann", Publication("p/1", 1, 1, {"x": 1}))
    with pytest.raises(RemoteProtocolError, match="bad-item"):
        node.hear("n1", Publication("q/1", 1, 1, {"x": float("nan")}))


def test_names_and_settings_are_checked() -> None:
    node = Node(replace(BROKER, client_advertisements=1, client_subscriptions=1))
    for name in ("", "x" * 97):
        with pytest.raises(LocalProtocolError, match="give 1 to 96"):
            node.call("advertise", name, X)
    node.call("advertise", "a", X)
    node.call("subscribe", "s", X)
    with pytest.raises(LocalProtocolError, match="client_advertisements"):
        node.call("advertise", "b", X)
    with pytest.raises(LocalProtocolError, match="client_subscriptions"):
        node.call("subscribe", "t", X)
    with pytest.raises(LocalProtocolError, match="not advertised"):
        node.call("unadvertise", "b")
    with pytest.raises(LocalProtocolError, match="not subscribed"):
        node.call("unsubscribe", "t")
    with pytest.raises(LocalProtocolError, match="use link"):
        node.call("attach", "b1")
    with pytest.raises(ConfigError, match="at least two beats"):
        ContentSettings(beat=3.0)


def test_a_client_hears_what_its_broker_refused() -> None:
    client = Node(ContentSettings(broker="b1"))
    done = client.hear("b1", Refused("too many subscriptions: at most 3", "me/4"))
    assert events(done) == [EntryRefused("b1", "too many subscriptions: at most 3", "me/4")]
