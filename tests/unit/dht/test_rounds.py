"""Writes to several groups at once: one message for each member, and who is asked about what."""

from __future__ import annotations

import pytest

from overlay.errors import RemoteProtocolError
from protocols.dht import Kind, Status
from protocols.dht.groups import Group, ballot_of
from protocols.dht.leading import Asker
from protocols.dht.messages import Accept, Accepted, Op, Result
from protocols.dht.shard import Shard
from tests.recording import Send
from tests.unit.dht.node import MEMBERS, NEWCOMER, TABLE, Node

A, B, C = MEMBERS
BALLOT = ballot_of(1, 1, 0)
GROUPS = {5: (A, B, C), 6: (A, C, B), 7: (A, B, NEWCOMER)}  # two sets of members


class Led:
    """`a`, which leads three shards, each with a write under way."""

    def __init__(self) -> None:
        self.node = Node("a")
        core, leader = self.node.dht._core, self.node.dht._parts.leader
        self.told: list[Result] = []
        leader._tell = lambda _asker, result: self.told.append(result)
        for number, members in GROUPS.items():
            shard = core.shards[number] = Shard(number, Group(1, members), seated=True, now=1.0)
            shard.promised = BALLOT
            leader.begin(shard, BALLOT, [], self.node.now)
            op = Op(number, number, BALLOT, Kind.PUT, b"k", b"v", b"", 0)
            leader.execute(Asker("a", 1, number), op, shard, self.node.now)
        self.sent = {one.to: one.msg for one in self.node.sends() if isinstance(one.msg, Accept)}

    @property
    def done(self) -> list[int]:
        return [one.id for one in self.told if one.status == Status.DONE]


def test_each_member_gets_what_concerns_it_in_one_message() -> None:
    led = Led()
    shards = {to: [entry.shard for entry in one.entries] for to, one in led.sent.items()}
    assert shards == {"b": [5, 6, 7], "c": [5, 6], "d": [7]}
    assert len({one.batch for one in led.sent.values()}) == 1


def test_a_round_commits_group_by_group() -> None:
    led = Led()
    number = led.sent["b"].batch
    led.node.take("c", Accepted(TABLE, number, ()))
    assert led.done == [5, 6]
    led.node.take("c", Accepted(TABLE, number, ()))  # once more: changes nothing
    led.node.take("d", Accepted(TABLE, number, ()))
    assert led.done == [5, 6, 7]
    led.node.take("b", Accepted(TABLE, number, ()))
    assert led.node.dht.counts.late == 1


def test_a_strangers_word_does_not_count() -> None:
    led = Led()
    number = led.sent["b"].batch
    with pytest.raises(RemoteProtocolError, match="not-responsible"):
        led.node.take("x", Accepted(TABLE, number, ()))
    led.node.take("d", Accepted(TABLE, number, ()))
    assert led.done == [7]  # it says nothing about groups that it does not belong to


def test_what_nobody_acknowledged_is_sent_again_to_who_lacks_it() -> None:
    led = Led()
    number = led.sent["b"].batch
    led.node.take("d", Accepted(TABLE, number, ()))
    led.node.now += 1.0
    led.node.dht._parts.leader.resend(led.node.now)
    again = [one for one in led.node.sends() if isinstance(one.msg, Accept)]
    assert again == [Send("b", led.sent["c"]), Send("c", led.sent["c"])]
