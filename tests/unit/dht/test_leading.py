"""Elections, what a new leader proposes again, and how a group is replaced: exact messages."""

from __future__ import annotations

import msgspec

from protocols.dht import Kind, Operation, Outcome, Status
from protocols.dht.groups import Group, ballot_of
from protocols.dht.interface import DHT
from protocols.dht.messages import (
    Accept,
    Accepted,
    Activate,
    Candidacy,
    Choice,
    Decide,
    Decided,
    Entry,
    Handover,
    Offer,
    Prepare,
    Promise,
    Promised,
    Pull,
    Pulled,
    Row,
    Want,
)
from protocols.dht.shard import Shard
from protocols.dht.shelf import leaf_of, mark_of
from tests.recording import Send
from tests.unit.dht.node import MEMBERS, NEWCOMER, ORDER, TABLE, Node

FIRST, SECOND, LAST = ORDER
OLD = ballot_of(1, 1, 1)  # of an earlier leader


def shard_of(node: Node) -> Shard:
    """Its only shard, as it is now."""
    return node.dht.shards()[0]


def stand(me: str = FIRST) -> Node:
    """A node that asks for promises."""
    node = Node(me)
    shard = node.dht.shards()[0]
    assert shard.bid is not None
    return node


def test_the_first_of_a_group_stands_and_others_wait() -> None:
    assert stand().dht.shards()[0].bid is not None
    assert Node(SECOND).dht.shards()[0].bid is None


def test_the_next_one_stands_when_the_first_is_gone() -> None:
    node = Node(SECOND)
    del node.view.shown[FIRST]
    node.effects.timers["review"] = node.now
    node.dht._core.timers.set("review", node.now)
    node.fire("review")
    ballot = ballot_of(1, 1, 1)
    asked = Prepare(TABLE, (node.group.members,), (Candidacy(0, ballot, 0),))
    assert node.sends() == [Send(FIRST, asked), Send(LAST, asked)]


def test_a_leader_needs_a_majority_and_not_more() -> None:
    node = stand()
    shard = node.dht.shards()[0]
    assert shard.bid is not None
    promise = Promised(0, shard.bid.ballot, shard.bid.ballot, 0)
    node.take(LAST, Promise(TABLE, (promise,)))
    assert shard.reign is not None
    assert node.dht.counts.elected == 1


def test_who_promised_more_ends_a_bid() -> None:
    node = stand()
    shard = node.dht.shards()[0]
    assert shard.bid is not None
    higher = ballot_of(1, 5, 2)
    node.take(LAST, Promise(TABLE, (Promised(0, shard.bid.ballot, higher, 0),)))
    now = shard_of(node)
    assert (now.bid, now.reign, now.promised) == (None, None, higher)


def test_what_voters_do_not_all_have_is_proposed_again_before_anything_else() -> None:
    node = stand()
    shard = node.dht.shards()[0]
    assert shard.bid is not None
    ballot = shard.bid.ballot
    node.take(LAST, Promise(TABLE, (Promised(0, ballot, ballot, mark_of(b"k", OLD, 7)),)))
    assert node.sends() == [Send(LAST, Pull(TABLE, 0, ballot, ()))]
    assert shard_of(node).reign is None
    row = Row(b"k", OLD, 7, b"v")
    node.take(LAST, Pulled(TABLE, 0, ballot, (leaf_of(b"k"),), (row,), 0, 1))
    assert shard.reign is not None
    message = node.sends()[0].msg
    assert isinstance(message, Accept)
    assert message.entries == (Entry(0, ballot, 1, b"k", b"v"),)
    assert shard.reign.recovering == 1  # and until then it serves nobody
    node.take(SECOND, Accepted(TABLE, message.batch))
    assert shard.reign.recovering == 0


def grown(node: Node) -> Group:
    """Let a fourth server replace the last of the group; return the group that follows."""
    node.view.shown["d"] = {DHT: f"{NEWCOMER.life:x}:{TABLE:x}"}
    core = node.dht._core
    core.look()
    changer = node.dht._parts.changer
    following = (*node.group.members[:2], NEWCOMER)
    changer.begin(node.dht.shards()[0], following, node.now)
    return Group(2, following)


def test_a_group_is_replaced_by_a_majority_of_the_old_one() -> None:
    node = stand()
    ballot = node.lead()
    shard = node.dht.shards()[0]
    following = grown(node)
    # Nothing is stored: it stops, and sees whether all of the new group have nothing, too.
    offer = Offer(TABLE, 0, ballot, ())
    assert node.sends() == [Send(SECOND, offer), Send("d", offer)]
    waiting = node.ask(Operation(Kind.PUT, b"k", b"v"))
    assert node.sends() == []
    node.take(SECOND, Want(TABLE, 0, ballot, (), 0))
    assert node.sends() == []  # not before the new member has it
    node.take("d", Want(TABLE, 0, ballot, (), 0))
    decide = Decide(TABLE, (Choice(0, ballot, following),))
    assert node.sends() == [Send(SECOND, decide), Send(LAST, decide)]
    assert shard.sealed
    node.take(LAST, Decided(TABLE, ((0, ballot),)))
    sent = node.sends()
    told = [one.to for one in sent if one.msg == Activate(TABLE, ((0, following),))]
    assert told == [SECOND, LAST, "d"]
    assert shard.group == following
    assert shard.reign is None
    assert waiting == []  # it was not done, and is tried again
    node.dht.check_invariants()


def test_a_change_is_given_up_when_a_new_member_is_gone() -> None:
    node = stand()
    node.lead()
    shard = node.dht.shards()[0]
    grown(node)
    node.sends()
    waiting = node.ask(Operation(Kind.PUT, b"k", b"v"))
    del node.view.shown["d"]
    node.dht._core.look()
    node.dht._parts.sweep(node.now)
    assert (shard.group.version, node.dht.counts.aborted) == (1, 1)
    (message,) = {one.msg for one in node.sends()}
    assert isinstance(message, Accept)  # what waited goes on
    node.take(LAST, Accepted(TABLE, message.batch))
    node.end_tick()
    assert waiting == [Outcome(Status.DONE, True)]


def test_a_leader_finishes_the_change_that_an_earlier_one_proposed() -> None:
    node = stand(FIRST)
    shard = node.dht.shards()[0]
    assert shard.bid is not None
    ballot = shard.bid.ballot
    following = Group(2, (*MEMBERS[:2], NEWCOMER))
    promise = Promised(0, ballot, ballot, 0, OLD, following)
    node.take(LAST, Promise(TABLE, (promise,)))
    assert shard.reign is not None
    assert shard.reign.closed
    outcomes = node.ask(Operation(Kind.GET, b"k"))
    node.end_tick()
    assert outcomes == []  # it serves nobody
    assert node.dht._parts.changer.changes[0].group == following


def test_the_preferred_leader_is_given_its_shard_back() -> None:
    node = Node(SECOND)
    shard = node.dht.shards()[0]
    node.dht._parts.elector.stand([shard], node.now)
    ballot = node.lead()
    node.now += 5.0
    node.dht._core.heard[FIRST] = node.now
    node.dht._parts.steward.review(node.now)
    assert node.sends() == [Send(FIRST, Handover(TABLE, ((0, ballot),)))]
    first = Node(FIRST)
    first.dht._parts.elector.withdraw(first.dht.shards()[0])
    first.take(SECOND, Handover(TABLE, ((0, ballot),)))
    bid = first.dht.shards()[0].bid
    assert bid is not None
    assert bid.ballot > ballot


def test_another_life_of_a_member_is_no_voter() -> None:
    reborn = msgspec.structs.replace(NEWCOMER, life=99)
    group = Group(2, (*MEMBERS[:2], reborn))
    node = Node(FIRST)
    assert node.dht._core.is_me(group) == (FIRST in ("a", "b"))
    assert not node.dht._core.is_me(Group(2, (msgspec.structs.replace(MEMBERS[0], life=9),)))


def test_survivors_go_on_only_on_a_persons_word() -> None:
    node = Node(SECOND)
    assert node.dht.accept_loss(node.now) == 0  # nobody is missing
    del node.view.shown[FIRST]
    del node.view.shown[LAST]
    node.dht._core.look()
    assert node.dht.accept_loss(node.now) == 1
    place = 1
    group = Group(1 + 4096 + place, tuple(one for one in MEMBERS if one.name == SECOND))
    assert node.group == group
    assert node.dht.shards()[0].seated
    told = Activate(TABLE, ((0, group),))
    assert [one for one in node.sends() if isinstance(one.msg, Activate)] == [
        Send(FIRST, told),
        Send(LAST, told),
    ]
    assert node.dht.counts.forced == 1
    assert node.dht.accept_loss(node.now) == 0  # it is a majority of itself
