"""Whose certificate does not allow the zone is not heard, whatever it says."""

import pytest

from overlay.protocol import Message
from protocols.membership.messages import (
    Ack,
    Gossip,
    JoinRefused,
    JoinReply,
    Ping,
    PingRequest,
    SyncRecords,
)
from protocols.membership.records import State
from tests.unit.membership.member import Member, record

OUTSIDER = "eve"


@pytest.mark.parametrize(
    "message",
    [
        Ping(1, 0),
        Ack(1, 1, 0),
        PingRequest(1, "a"),
        Gossip((record("a", State.DEAD),)),
        Gossip((record(OUTSIDER),)),
        SyncRecords(1, (record(OUTSIDER),)),
        JoinReply(1, 0, 1, 0, ()),
        JoinRefused(1, "go away"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_outsider_is_not_heard(message: Message) -> None:
    member = Member("a", may_join=lambda name, _zone: name != OUTSIDER)
    assert member.refusal(OUTSIDER, message) == "zone-not-allowed"
    assert member.effects.drain() == []
    assert not member.membership.stopped


def test_a_member_that_turns_out_to_be_an_outsider_cannot_answer() -> None:
    seen: set[str] = set()
    member = Member("a", may_join=lambda name, _zone: name not in seen)
    member.hear("a", Gossip((record(OUTSIDER),)))
    assert OUTSIDER in member.membership.view, "a member vouched for it"
    seen.add(OUTSIDER)
    assert member.refusal(OUTSIDER, Ack(1, 1, 0)) == "zone-not-allowed"
