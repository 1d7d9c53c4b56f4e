"""A client that moves: what it says, what it holds, and whom it expects to come to."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint
from protocols.content import ContentSettings
from protocols.content.messages import Again, Greeting, Page, Publication
from protocols.mobility import MobilitySettings, MovedIn, MovedOut, MoveUnanswered, TreeStands
from protocols.mobility.messages import MoveIn, MoveOut, Root, TreeReady
from protocols.mobility.predicting import LastDirection, NoPredictor, Perfect
from tests.unit.content.node import greeting, sends
from tests.unit.mobility.node import MobileNode, events_of

CLIENT = ContentSettings(role="client", broker="b1")
X = Constraint.parse("x >= 0")


def client(**changed: object) -> MobileNode:
    """A publisher at b1."""
    node = MobileNode(CLIENT, MobilitySettings(**changed), "p")  # type: ignore[arg-type]
    node.hear("b1", greeting())
    node.call("advertise", "1", X)
    node.hear("b1", Again(0))
    return node


def test_moving_out_and_in_lossless() -> None:
    node = client(algorithm="delayed")
    done = node.ask("moveout")
    assert sends(done, MoveOut) == [("b1", MoveOut("delayed", "lossless"))]
    assert [msg.lease for _, msg in sends(done, Greeting) if isinstance(msg, Greeting)] == [0.0]
    assert events_of(done, MovedOut) == [MovedOut("b1", "delayed")]
    assert node.call("publish", "1", {"x": 1}) == []  # held

    done = node.ask("movein", "b2")
    [(to, move)] = sends(done, MoveIn)
    assert isinstance(move, MoveIn)
    assert to == "b2"
    assert (move.previous, move.series) == ("b1", 0)
    assert events_of(done, MovedIn) == [MovedIn("b2", "b1", move.number, "delayed")]

    done = node.hear("b2", greeting())
    [(_, again)] = sends(done, MoveIn)
    series = node.content.router.readers["b2"].ledger.series
    assert isinstance(again, MoveIn)
    assert again.series == series
    [(_, page)] = sends(node.hear("b2", Again(0)), Page)
    assert isinstance(page, Page)
    [line] = page.advertisements
    assert 0 < line.graft < line.epoch  # the tree that it has may be used

    node.call("publish", "1", {"x": 2})
    done = node.hear("b2", TreeReady(move.number, True))
    published = [msg for _, msg in sends(done, Publication)]
    assert [(one.sequence, one.epoch) for one in published if isinstance(one, Publication)] == [
        (1, line.epoch),
        (2, line.epoch),
    ]
    [stands] = events_of(done, TreeStands)
    assert isinstance(stands, TreeStands)
    assert stands.held == 2
    assert stands.complete
    assert not node.mobility.is_moving


def test_best_effort_publishes_at_once_and_asks_once() -> None:
    node = client(algorithm="standard", handover="best-effort")
    node.ask("movein", "b2")
    node.hear("b2", greeting())
    assert len(sends(node.call("publish", "1", {"x": 1}), Publication)) == 1
    assert sends(node.wait(30.0), MoveIn) == []


def test_a_broker_that_never_answers_is_told_of() -> None:
    node = client()
    node.ask("movein", "b2")
    done = node.wait(10.2)
    assert len(sends(done, MoveIn)) == 20
    assert len(events_of(done, MoveUnanswered)) == 1
    assert node.mobility.is_moving
    node.ask("movein", "b3")
    assert node.mobility.is_moving


def test_what_is_held_is_bounded() -> None:
    node = client(max_held=2)
    node.ask("moveout")
    node.call("publish", "1", {"x": 1})
    node.call("publish", "1", {"x": 2})
    with pytest.raises(LocalProtocolError, match="max_held"):
        node.call("publish", "1", {"x": 3})


def test_what_was_withdrawn_while_it_was_held_is_not_published() -> None:
    node = client()
    node.ask("moveout")
    node.call("publish", "1", {"x": 1})
    node.call("unadvertise", "1")
    done = node.ask("movein", "b2")
    [(_, move)] = sends(done, MoveIn)
    assert isinstance(move, MoveIn)
    node.hear("b2", greeting())
    assert sends(node.hear("b2", TreeReady(move.number, True)), Publication) == []
    assert node.content.counts.withdrawn == 1


def test_a_late_word_of_another_move_changes_nothing() -> None:
    node = client()
    node.ask("movein", "b2")
    node.hear("b2", TreeReady(1, True))
    node.hear("b1", TreeReady(1, True))
    assert node.mobility.is_moving
    assert node.mobility.counts.strays == 2


def test_a_client_remembers_where_its_tree_is_rooted() -> None:
    node = client(algorithm="delayed", handover="best-effort")
    node.ask("movein", "b2")
    [(_, move)] = sends(node.hear("b2", greeting()), MoveIn)
    assert isinstance(move, MoveIn)
    epoch = node.content.advertisement("p/1").epoch  # type: ignore[union-attr]
    roots = (Root("p/1", epoch),)
    node.hear("b2", TreeReady(move.number, True, roots=roots, stands=False))
    node.ask("movein", "b3")
    assert node.content.advertisement("p/1").graft == epoch  # type: ignore[union-attr]


def test_prefetching_announces_the_epoch_in_which_it_comes() -> None:
    node = client(algorithm="prefetching")
    node.mobility.foretell(Perfect(lambda: "b2"))
    [(_, out)] = sends(node.ask("moveout"), MoveOut)
    assert isinstance(out, MoveOut)
    assert out.predicted == "b2"
    assert out.epoch
    node.ask("movein", "b2")
    assert node.content.advertisement("p/1").epoch == out.epoch  # type: ignore[union-attr]
    node.ask("moveout")
    node.ask("movein", "b9")  # another one than was foretold: in an epoch of its own
    assert node.content.advertisement("p/1").epoch > out.epoch  # type: ignore[union-attr]


def test_errors_of_the_caller() -> None:
    node = client()
    node.ask("moveout")
    with pytest.raises(LocalProtocolError, match="no broker to move out of"):
        node.ask("moveout")
    with pytest.raises(LocalProtocolError, match="its own broker"):
        node.ask("movein", "p")
    with pytest.raises(LocalProtocolError, match="a broker, which does not move"):
        MobileNode().ask("moveout")


def test_predictors() -> None:
    line = ["a", "b", "c", "d"]

    def nearby(here: str) -> list[str]:
        at = line.index(here)
        return line[max(0, at - 1) : at] + line[at + 1 : at + 2]

    assert NoPredictor().next(["a", "b"]) == ""
    assert Perfect(lambda: "z").next([]) == "z"
    assert LastDirection(nearby).next(["a", "b"]) == "c"
    assert LastDirection(nearby).next(["c", "b"]) == "a"
    assert LastDirection(nearby).next(["c", "d"]) == ""  # the end of the road
    assert LastDirection().next(["a", "b", "c", "a"]) == "b"  # as it went the last time
    assert LastDirection().next(["a", "b"]) == ""
