"""One node's operations: one round trip, one effect, one answer, and clear refusals."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from protocols.dht import Kind, Operation, Outcome, Status
from protocols.dht.applying import Effect, apply
from protocols.dht.interface import READ, WRITE
from protocols.dht.messages import (
    BUSY,
    Accept,
    Accepted,
    Confirm,
    Confirmed,
    Entry,
    Op,
    Reply,
    Request,
    Result,
    Route,
)
from tests.recording import Send
from tests.unit.dht.node import LIVES, ORDER, TABLE, Node

FIRST, SECOND, LAST = ORDER


@pytest.mark.parametrize(
    ("kind", "before", "effect"),
    [
        (Kind.GET, b"v", Effect(b"v", False, True, b"v")),
        (Kind.GET, None, Effect(None, False, False)),
        (Kind.CONTAINS, b"v", Effect(b"v", False, True)),
        (Kind.PUT, b"v", Effect(b"new", True, True)),
        (Kind.PUT_AND_RETRIEVE, b"v", Effect(b"new", True, True, b"v")),
        (Kind.PUT_IF_ABSENT, b"v", Effect(b"v", False, False)),
        (Kind.PUT_IF_ABSENT, None, Effect(b"new", True, True)),
        (Kind.REPLACE, b"v", Effect(b"new", True, True, b"v")),
        (Kind.REPLACE, None, Effect(None, False, False)),
        (Kind.REPLACE_VALUE, b"old", Effect(b"new", True, True)),
        (Kind.REPLACE_VALUE, b"v", Effect(b"v", False, False)),
        (Kind.REMOVE, b"v", Effect(None, True, True)),
        (Kind.REMOVE, None, Effect(None, False, False)),
        (Kind.REMOVE_VALUE, b"old", Effect(None, True, True)),
        (Kind.REMOVE_VALUE, b"v", Effect(b"v", False, False)),
        (Kind.REMOVE_VALUE, None, Effect(None, False, False)),
    ],
)
def test_what_each_kind_does(kind: Kind, before: bytes | None, effect: Effect) -> None:
    assert apply(kind, before, b"new", b"old") == effect


def test_a_put_is_done_when_a_majority_has_it() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    outcomes = node.ask(Operation(Kind.PUT, b"k", b"v"))
    sent = node.sends()
    assert [one.to for one in sent] == [SECOND, LAST]
    message = sent[0].msg
    assert isinstance(message, Accept)
    assert message.entries == (Entry(0, ballot, 1, b"k", b"v"),)
    assert outcomes == []
    node.take(LAST, Accepted(TABLE, message.batch))
    node.end_tick()
    assert outcomes == [Outcome(Status.DONE, True)]
    node.take(SECOND, Accepted(TABLE, message.batch))  # late: changes nothing
    node.end_tick()
    assert len(outcomes) == 1
    node.dht.check_invariants()


def test_a_get_at_the_leader_asks_one_other_whether_it_still_leads() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    outcomes = node.ask(Operation(Kind.GET, b"k"))
    (sent,) = node.sends()
    assert isinstance(sent.msg, Confirm)
    ((question, shard, asked),) = sent.msg.asked
    assert (shard, asked) == (0, ballot)
    node.take(sent.to, Confirmed((question,)))
    node.end_tick()
    assert outcomes == [Outcome(Status.DONE, False, None)]


def test_a_get_at_a_follower_asks_the_leader_alone() -> None:
    node = Node(LAST)
    leader = Node(FIRST)
    ballot = leader.lead()
    node.take(FIRST, Accept(TABLE, 1, (Entry(0, ballot, 1, b"k", b"v"),)))
    node.sends()
    outcomes = node.ask(Operation(Kind.GET, b"k"))
    (sent,) = node.sends()
    assert sent.to == FIRST
    assert isinstance(sent.msg, Request)
    (op,) = sent.msg.ops
    assert (op.kind, op.key, op.ballot) == (Kind.GET, b"k", ballot)
    node.take(FIRST, Reply((Result(op.id, Status.DONE, True, b"v"),)))
    node.end_tick()
    assert outcomes == [Outcome(Status.DONE, True, b"v")]


def test_a_get_is_not_answered_by_a_leader_whom_others_left() -> None:
    node = Node(FIRST)
    node.lead()
    outcomes = node.ask(Operation(Kind.GET, b"k"))
    (sent,) = node.sends()
    assert isinstance(sent.msg, Confirm)
    node.take(sent.to, Confirmed((), (sent.msg.asked[0][0],)))
    node.end_tick()
    assert outcomes == []


def test_operations_of_one_tick_on_a_key_become_one_write() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    all_outcomes = [
        node.ask(Operation(Kind.PUT_IF_ABSENT, b"k", b"1")),
        node.ask(Operation(Kind.PUT_IF_ABSENT, b"k", b"2")),
        node.ask(Operation(Kind.REPLACE_VALUE, b"k", b"3", b"1")),
        node.ask(Operation(Kind.PUT_AND_RETRIEVE, b"k", b"4")),
    ]
    message = node.sends()[0].msg
    assert isinstance(message, Accept)
    assert message.entries == (Entry(0, ballot, 1, b"k", b"4"),)
    node.take(LAST, Accepted(TABLE, message.batch))
    node.end_tick()
    told = [(one.applied, one.value) for (one,) in all_outcomes]
    assert told == [(True, None), (False, None), (True, None), (True, b"3")]


def request(ballot: int, number: int, kind: Kind = Kind.PUT, floor: int = 0) -> Request:
    return Request(TABLE, LIVES[LAST], floor, (Op(number, 0, ballot, kind, b"k", b"v"),))


def test_a_request_is_done_once_however_often_it_comes() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    node.take(LAST, request(ballot, 7))
    node.take(LAST, request(ballot, 7))
    (message,) = {one.msg for one in node.sends()}
    assert isinstance(message, Accept)
    assert len(message.entries) == 1
    node.take(LAST, Accepted(TABLE, message.batch))
    done = Send(LAST, Reply((Result(7, Status.DONE, True),)))
    assert node.sends() == [done]
    node.take(LAST, request(ballot, 7))  # the answer was lost
    assert node.sends() == [done]
    node.take(LAST, request(ballot, 9, floor=8))
    node.take(LAST, request(ballot, 7))  # a copy of what is over
    assert all(isinstance(one.msg, Accept) for one in node.sends())
    assert node.dht.counts.repeated == 3


def test_what_an_earlier_process_may_have_done_is_unknown() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    node.take(LAST, request(ballot - (1 << 8), 7))  # a ballot of this node, not of this process
    (sent,) = node.sends()
    assert isinstance(sent.msg, Reply)
    assert sent.msg.results[0].status == Status.UNKNOWN


def test_a_follower_says_who_leads_to_who_only_reads() -> None:
    node = Node(LAST)
    node.take(SECOND, request(5, 7, Kind.GET))
    messages = [one.msg for one in node.sends()]
    assert Reply((Result(7, 3),)) in messages
    assert Route(TABLE, 0, node.group, 0) in messages


def test_a_leader_that_is_deposed_tells_what_it_does_not_know() -> None:
    node = Node(FIRST)
    node.lead()
    outcomes = node.ask(Operation(Kind.PUT, b"k", b"v"))
    message = node.sends()[0].msg
    assert isinstance(message, Accept)
    higher = node.dht.shards()[0].promised + 1
    node.take(LAST, Accepted(TABLE, message.batch, ((0, higher),)))
    node.end_tick()
    assert outcomes == [Outcome(Status.UNKNOWN, reason="the leader changed")]
    assert node.dht.shards()[0].reign is None
    node.dht.check_invariants()


def test_a_leader_without_its_majority_refuses() -> None:
    node = Node(FIRST)
    node.lead()
    for name in (SECOND, LAST):
        del node.view.shown[name]
    node.dht._core.look()
    outcomes = node.ask(Operation(Kind.PUT, b"k", b"v"))
    assert node.sends() == []
    assert outcomes == [Outcome(Status.REFUSED, reason="no majority of shard 0 can be reached")]


# -- bad input ------------------------------------------------------------------------------------


def test_keys_and_values_up_to_their_limits() -> None:
    node = Node(FIRST, key_bytes=8, value_bytes=16)
    node.lead()
    for key in (b"", b"\x00" * 8, b"\xff" * 8):
        assert node.ask(Operation(Kind.PUT, key, b"v" * 16)) == []
    with pytest.raises(LocalProtocolError, match=r"a key of 9 bytes: dht\.key_bytes is 8"):
        node.ask(Operation(Kind.PUT, b"k" * 9, b"v"))
    with pytest.raises(LocalProtocolError, match=r"a value of 17 bytes: dht\.value_bytes is 16"):
        node.ask(Operation(Kind.PUT, b"k", b"v" * 17))
    with pytest.raises(LocalProtocolError, match="ttl"):
        node.ask(Operation(Kind.PUT, b"k", b"v", ttl=-1.0))


def test_a_leader_refuses_what_is_past_its_own_limits() -> None:
    node = Node(FIRST, key_bytes=8, value_bytes=16)
    ballot = node.lead()
    node.take(LAST, Request(TABLE, 3, 0, (Op(7, 0, ballot, Kind.PUT, b"k" * 9, b"v"),)))
    (sent,) = node.sends()
    assert isinstance(sent.msg, Reply)
    assert sent.msg.results[0].status == Status.REFUSED
    assert "past the limits" in sent.msg.results[0].reason


def test_a_full_node_refuses_values_and_takes_removals() -> None:
    node = Node(FIRST, node_bytes=100)
    node.lead()
    outcomes = node.ask(Operation(Kind.PUT, b"k", b"v" * 200))
    node.end_tick()
    assert outcomes[0].status is Status.REFUSED
    assert "is full: dht.node_bytes = 100" in outcomes[0].reason
    assert node.ask(Operation(Kind.REMOVE, b"k")) == []
    assert node.dht.counts.full == 1


def test_too_many_open_operations() -> None:
    node = Node(FIRST, max_open=2)
    for _ in range(2):
        node.ask(Operation(Kind.PUT, b"k", b"v"))
    with pytest.raises(LocalProtocolError, match=r"dht\.max_open"):
        node.ask(Operation(Kind.PUT, b"k", b"v"))


def test_who_may_not_write_is_refused_at_home_and_by_the_leader() -> None:
    def may(name: str, what: str) -> bool:
        return what == READ or name == FIRST

    with pytest.raises(LocalProtocolError, match=f"does not allow to {WRITE}"):
        Node(LAST, may=may).ask(Operation(Kind.PUT, b"k", b"v"))
    node = Node(FIRST, may=may)
    ballot = node.lead()
    node.take(LAST, request(ballot, 7))
    (sent,) = node.sends()
    assert isinstance(sent.msg, Reply)
    assert sent.msg.results[0].status == Status.REFUSED
    assert node.dht.counts.forbidden == 1
    node.take(LAST, request(ballot, 8, Kind.GET))
    (sent,) = node.sends()
    assert sent.msg == Reply((Result(8, Status.DONE),))


def test_an_operation_while_the_leader_recovers_is_tried_again() -> None:
    node = Node(FIRST)
    ballot = node.lead()
    reign = node.dht.shards()[0].reign
    assert reign is not None
    reign.recovering = 1
    node.take(LAST, request(ballot, 7))
    assert node.sends() == [Send(LAST, Reply((Result(7, BUSY),)))]
