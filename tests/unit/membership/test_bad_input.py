"""What no honest member says is refused with a reason, and changes no view."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overlay.host import Host
from overlay.protocol import Message
from overlay.sim import Simulator
from protocols.membership.attributes import Attribute
from protocols.membership.config import MembershipSettings
from protocols.membership.horizon import CLOCK_ERROR
from protocols.membership.machine import Membership
from protocols.membership.messages import (
    MAX_NEWS,
    MESSAGES,
    Ack,
    Gossip,
    JoinReply,
    Ping,
    Summary,
    Sync,
    SyncRecords,
    SyncSummary,
)
from protocols.membership.records import MAX_INCARNATION, Record, State
from tests.unit.membership.member import BIRTH, DEAD, SUSPECT, ZONE, Member, record, sent

FAR = BIRTH + 2 * CLOCK_ERROR


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (record("a", incarnation=FAR), "far-future-incarnation"),
        (record("a", DEAD, FAR), "far-future-incarnation"),
        (record("stranger", incarnation=MAX_INCARNATION), "far-future-incarnation"),
        (record("me", SUSPECT, FAR), "far-future-incarnation"),
        (record("bad\x00name"), "bad-name"),
        (record("bad/name"), "bad-name"),
        (record("a", SUSPECT, accusers=("\x1b[31m",)), "bad-name"),
        (record("b", SUSPECT, BIRTH + 1, accusers=("a\n",)), "bad-name"),
        (record("a", incarnation=BIRTH + 1, born=BIRTH + 2), "bad-incarnation"),
    ],
)
@pytest.mark.parametrize("carrier", [Gossip, Ping, Ack, SyncRecords])
def test_a_claim_that_cannot_be_true_is_refused(
    claim: Record, reason: str, carrier: type[Message]
) -> None:
    member = Member("a", "b")
    messages: dict[type[Message], Message] = {
        Gossip: Gossip((claim,)),
        Ping: Ping(1, 0, (claim,)),
        Ack: Ack(1, 1, 0, (claim,)),
        SyncRecords: SyncRecords(1, (claim,)),
    }
    assert member.refusal("b", messages[carrier]) == reason


def test_what_is_good_beside_something_bad_still_counts() -> None:
    member = Member("a")
    with pytest.raises(Exception, match="far-future"):
        member.hear("a", Gossip((record("b", incarnation=FAR), record("c"))))
    assert "c" in member.membership.view
    assert "b" not in member.membership.view


@pytest.mark.parametrize(
    "message",
    [
        Gossip((record("x"),) * 1_000_000),
        SyncRecords(1, (record("x"),) * 1_000_000),
        Gossip((), (Attribute("a", "k", 1, 1),) * 1_000_000),
        SyncRecords(1, (), (), ("x",) * 1_000_000),
        Ping(1, 0, (record("x"),) * 1_000_000),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_list_of_a_million_is_refused_by_reference_and_on_the_wire(message: Message) -> None:
    member = Member("a")
    assert member.refusal("a", message) == "member-list-too-long"
    packed = msgspec.msgpack.encode(message)
    with pytest.raises(msgspec.ValidationError, match="length <="):
        msgspec.msgpack.decode(packed, type=type(message))


def test_a_summary_of_a_million_is_refused() -> None:
    member = Member("a")
    member.hear("a", Ping(1, 999))
    long = SyncSummary(1, (), (Summary("x", 1, 1, 0, 0),) * 1_000_000)
    assert member.refusal("a", long) == "member-list-too-long"


def test_a_join_reply_of_a_million_pieces_is_refused() -> None:
    member = Member(contacts=["a"])
    reply = JoinReply(member.life, 0, 1_000_000, 0, (record("x"),))
    assert member.refusal("a", reply) == "member-list-too-long"
    assert member.refusal("a", JoinReply(member.life, 3, 2, 0, ())) == "member-list-too-long"


def test_a_sync_of_another_size_is_refused() -> None:
    assert Member("a").refusal("a", Sync(1, b"short")) == "wrong-bucket-count"


def test_an_incarnation_can_be_pushed_only_as_far_as_clocks_may_differ() -> None:
    """Not step by step to the end, where nobody could refute any more."""
    member = Member("a")
    refused = 0
    for step in range(1, 100):
        claim = record("a", incarnation=BIRTH + step * CLOCK_ERROR // 2)
        refused += bool(member.refusal("b", Gossip((claim,))))
    assert refused >= 97
    assert member.view("a").incarnation < BIRTH + 2 * CLOCK_ERROR


FIELDS: list[tuple[type[Message], list[Any]]] = [
    (Ping, [32, -1, 0]),
    (Ping, [32, 1 << 63, 0]),
    (Ack, [33, 1, -5, 0]),
    (Gossip, [36, [["", 1, 0, 1, 1]]]),
    (Gossip, [36, [["x" * 65, 1, 0, 1, 1]]]),
    (Gossip, [36, [["a", MAX_INCARNATION + 1, 0, 1, 1]]]),
    (Gossip, [36, [["a", 1, 4, 1, 1]]]),
    (Gossip, [36, [["a", 1, 0, 1, 1, ["e"] * 9]]]),
    (Gossip, [36, [["a", 1, 1, 1, 1, [], ["b"] * 18]]]),
    (Gossip, [36, [], [["a", "k", 1, ["nested"]]]]),
    (Gossip, [36, [], [["a", "k", 1, b"bytes"]]]),
    (Gossip, [36, [], [["a", "k" * 65, 1, 1]]]),
    (SyncSummary, [41, 1, [64], []]),
]


@pytest.mark.parametrize(("kind", "fields"), FIELDS)
def test_fields_out_of_their_bounds_never_reach_a_handler(
    kind: type[Message], fields: list[Any]
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=kind)


def test_a_host_counts_what_it_refuses() -> None:
    def member(host: Host) -> None:
        host.add(Membership, MembershipSettings(), ZONE, zone=ZONE)

    sim = Simulator(1)
    sim.add_node("ada", member)
    liar = Record("eve", FAR, State.ALIVE, 1, 1)
    sim.host("ada").receive(
        "bob", ZONE, [Gossip((liar,)), Gossip((record("ok", incarnation=5, born=5),))], 1.0
    )
    assert sim.host("ada").refusals == {"far-future-incarnation": 1}
    assert set(sim.protocol("ada", Membership, ZONE).view.members()) == {"ada", "ok"}


def test_every_message_bounds_its_lists() -> None:
    assert len(MESSAGES) == 11
    assert MAX_NEWS == 1024


def test_a_verdict_says_nothing_but_the_verdict() -> None:
    """Endpoints, birth and accusers of the life in question stay as its owner told them."""
    member = Member("a", "b")
    for state in (SUSPECT, DEAD):
        forged = Record("a", BIRTH, state, 1, BIRTH + 9, ("tcp://evil:1",), (), False)
        member.hear("b", Gossip((forged,)))
        assert member.view("a") == record("a", state)
        member.wait(MembershipSettings().suspicion_min)  # long enough for a verdict to follow


def test_one_who_comes_back_to_a_full_zone_must_wait() -> None:
    member = Member("a", "b", settings=MembershipSettings(max_members=3))
    member.bury("b", "a")
    member.hear("b", Gossip((record("c"),)))
    back = Gossip((record("a", incarnation=BIRTH + 1),))
    assert member.refusal("b", back) == "too-many-members"


def test_an_accusation_cannot_make_me_write_to_strangers() -> None:
    member = Member("a", "b")
    mine = member.view("me")
    crowd = tuple(f"stranger-{number}" for number in range(17))
    accusation = record("me", SUSPECT, life=mine.life, accusers=("a", *crowd))
    effects = member.hear("b", Gossip((accusation,)))
    assert [one.to for one in sent(effects, Gossip)] == ["a"]
