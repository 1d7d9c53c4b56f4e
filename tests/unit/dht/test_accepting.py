"""What a member promises, keeps and confirms: exact answers, and forgeries refused."""

from __future__ import annotations

import msgspec
import pytest

from overlay.errors import RemoteProtocolError
from protocols.dht.groups import Group, ballot_of
from protocols.dht.messages import (
    Accept,
    Accepted,
    Activate,
    Activated,
    Candidacy,
    Choice,
    Confirm,
    Confirmed,
    Decide,
    Decided,
    Entry,
    Prepare,
    Promise,
    Promised,
)
from tests.recording import Send
from tests.unit.dht.node import MEMBERS, ORDER, TABLE, Node

FIRST, SECOND, LAST = ORDER
B1 = ballot_of(1, 1, 0)
B2 = ballot_of(1, 2, 1)


def prepare(node: Node, ballot: int) -> Prepare:
    return Prepare(TABLE, (node.group.members,), (Candidacy(0, ballot, 0),))


def accept(ballot: int, sequence: int, value: bytes | None, batch: int = 5) -> Accept:
    return Accept(TABLE, batch, (Entry(0, ballot, sequence, b"k", value),))


@pytest.fixture
def node() -> Node:
    return Node(LAST)


def test_promises_to_the_highest_ballot_and_to_nobody_below(node: Node) -> None:
    node.take(FIRST, prepare(node, B1))
    assert node.sends() == [Send(FIRST, Promise(TABLE, (Promised(0, B1, B1, 0),)))]
    node.take(SECOND, prepare(node, B2))
    assert node.sends() == [Send(SECOND, Promise(TABLE, (Promised(0, B2, B2, 0),)))]
    node.take(FIRST, prepare(node, B1))
    assert node.sends() == [Send(FIRST, Promise(TABLE, (Promised(0, B1, B2, 0),)))]


def test_keeps_writes_in_the_order_of_their_stamps(node: Node) -> None:
    node.take(FIRST, accept(B1, 2, b"two"))
    node.take(FIRST, accept(B1, 1, b"one"))  # overtaken
    assert node.sends() == [Send(FIRST, Accepted(TABLE, 5))] * 2
    record = node.dht.shards()[0].shelf.records[b"k"]
    assert (record.value, record.stamp) == (b"two", (B1, 2))


def test_refuses_writes_below_its_promise(node: Node) -> None:
    node.take(SECOND, prepare(node, B2))
    node.sends()
    node.take(FIRST, accept(B1, 1, b"late"))
    assert node.sends() == [Send(FIRST, Accepted(TABLE, 5, ((0, B2),)))]
    assert not len(node.dht.shards()[0].shelf)


def test_confirms_only_the_ballot_that_it_promised(node: Node) -> None:
    node.take(FIRST, accept(B1, 1, b"v"))
    node.sends()
    node.take(SECOND, Confirm(TABLE, ((8, 0, B1), (9, 0, B2))))
    assert node.sends() == [Send(SECOND, Confirmed((8,), (9,)))]


def test_confirms_nothing_once_it_let_another_group_be_next(node: Node) -> None:
    following = Group(2, MEMBERS[:2])
    node.take(FIRST, Decide(TABLE, (Choice(0, B1, following),)))
    assert node.sends() == [Send(FIRST, Decided(TABLE, ((0, B1),)))]
    node.take(SECOND, Confirm(TABLE, ((8, 0, B1),)))
    assert node.sends() == [Send(SECOND, Confirmed((), (8,)))]
    node.take(SECOND, prepare(node, B2))
    told = Promised(0, B2, B2, 0, B1, following)
    assert node.sends() == [Send(SECOND, Promise(TABLE, (told,)))]


def test_who_is_replaced_forgets_the_records_and_remembers_the_group(node: Node) -> None:
    node.take(FIRST, accept(B1, 1, b"v"))
    node.sends()
    others = tuple(one for one in MEMBERS if one.name != LAST)
    node.take(FIRST, Activate(TABLE, ((0, Group(2, others)),)))
    assert node.sends() == [Send(FIRST, Activated(TABLE, ((0, 2),)))]
    shard = node.dht.shards()[0]
    assert (shard.seated, len(shard.shelf), shard.group.version) == (False, 0, 2)
    node.take(FIRST, accept(B1, 2, b"w"))  # from who does not know it yet
    answers = [one.msg for one in node.sends()]
    assert Activate(TABLE, ((0, Group(2, others)),)) in answers
    assert Accepted(TABLE, 5, ((0, B1 + 1),)) in answers


def test_another_life_is_another_member(node: Node) -> None:
    reborn = tuple(
        msgspec.structs.replace(one, life=99) if one.name == LAST else one for one in MEMBERS
    )
    node.take(FIRST, Activate(TABLE, ((0, Group(2, reborn)),)))
    assert not node.dht.shards()[0].seated


@pytest.mark.parametrize("forge", ["accept", "prepare", "decide", "activate"])
def test_who_is_not_responsible_is_refused(node: Node, forge: str) -> None:
    thief = (*MEMBERS[:2], msgspec.structs.replace(MEMBERS[2], name="mallory"))
    message = {
        "accept": accept(B1, 1, b"forged"),
        "prepare": prepare(node, B1),
        "decide": Decide(TABLE, (Choice(0, B1, Group(2, MEMBERS)),)),
        "activate": Activate(TABLE, ((0, Group(2, MEMBERS)),)),
    }[forge]
    with pytest.raises(RemoteProtocolError, match="dht-not-responsible"):
        node.take("mallory", message)
    if forge == "prepare":  # nor may it name itself in a group that it made up
        with pytest.raises(RemoteProtocolError, match="dht-not-responsible"):
            node.take("mallory", Prepare(TABLE, (thief,), (Candidacy(0, ballot_of(2, 1, 0), 0),)))
    assert node.dht.counts.strangers
    assert not len(node.dht.shards()[0].shelf)


def test_messages_of_another_table_change_nothing(node: Node) -> None:
    node.take(FIRST, msgspec.structs.replace(accept(B1, 1, b"v"), table=TABLE + 1))
    assert node.sends() == []
    assert node.dht.counts.other_table == 1
