"""Who is in zone Z: asked through delegates, answered in pages, forwarded within bounds."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import vid_of
from protocols.zones import (
    MemberEntry,
    ZoneEntry,
    ZoneMembersKnown,
    ZoneMembersUnknown,
    ZonesSettings,
)
from protocols.zones.messages import (
    MembersDenied,
    MembersPage,
    MembersRequest,
    TablePage,
    TableRequest,
)
from tests.recording import Send
from tests.unit.zones.node import ZONE, ZonesNode

BO, BEN, EVE = (MemberEntry(name, 1, (f"tcp://{name}:1",)) for name in ("bo", "ben", "eve"))


def member(settings: ZonesSettings | None = None) -> ZonesNode:
    """A plain member with two delegates."""
    node = ZonesNode(born=900, settings=settings or ZonesSettings(settle=1.0, table_period=3600))
    node.joins("a", 100, roles="delegate")
    node.joins("b", 200, roles="delegate")
    node.pass_time(2.5)
    node.effects.drain()
    return node


def delegate(settings: ZonesSettings | None = None) -> ZonesNode:
    """A delegate of "hall"; zone "far" has the delegates x and y and the supervisor s."""
    node = ZonesNode(settings=settings or ZonesSettings(settle=1.0))
    node.joins("mate", 200)
    node.serve()
    node.delegate_of("far", "x", born=1)
    node.delegate_of("far", "y", born=2)
    node.joins("s", 1, manager=True, roles="supervisor")
    node.pass_time(0.5)
    node.effects.drain()
    return node


def ask(node: ZonesNode, zone: str = "far") -> int:
    return node.zones.ask_members(zone, node.now)


def request_of(node: ZonesNode) -> tuple[str, MembersRequest]:
    ((to, msg),) = node.sent(MembersRequest)
    assert isinstance(msg, MembersRequest)
    return to, msg


def test_my_own_zone_needs_no_question() -> None:
    node = member()
    asked = ask(node, ZONE)
    (known,) = node.events()
    assert isinstance(known, ZoneMembersKnown)
    assert (known.id, known.fresh, known.tries) == (asked, True, 0)
    names = [entry.name for entry in known.members]
    assert names == sorted(["a", "b", "me"], key=vid_of)
    assert known.members[names.index("a")] == MemberEntry("a", 100, ("tcp://a:1",))


def test_a_member_asks_its_delegate_page_by_page() -> None:
    node = member()
    asked = ask(node)
    assert request_of(node) == ("a", MembersRequest(asked, "far"))
    node.receive("a", MembersPage(asked, "", (BO, BEN), more=True))
    assert request_of(node) == ("a", MembersRequest(asked, "far", "ben"))
    node.receive("a", MembersPage(asked, "", (BO, BEN), more=True))
    assert node.sent() == [], "a repeated page was taken for the next one"
    node.receive("a", MembersPage(asked, "ben", (EVE,), fresh=False))
    assert node.events() == [ZoneMembersKnown(asked, "far", (BO, BEN, EVE), False, 2)]
    node.receive("a", MembersPage(asked, "ben", (EVE,)))
    assert node.zones.counts.late == 2


def test_silence_and_denials_lead_to_the_other_delegate() -> None:
    node = member()
    asked = ask(node)
    assert request_of(node)[0] == "a"
    node.pass_time(1.1)
    assert request_of(node)[0] == "b"
    node.receive("b", MembersDenied(asked, "I am no delegate"))
    assert node.sent() == [], "all were asked: a pause"
    node.pass_time(1.1)
    assert request_of(node)[0] == "a"
    node.receive("b", MembersPage(asked, "", (BO,)))  # late, but it was asked
    assert node.events() == [ZoneMembersKnown(asked, "far", (BO,), True, 3)]


def test_a_question_without_an_answer_ends_with_a_reason() -> None:
    node = member(ZonesSettings(settle=1.0, table_period=3600, ask_tries=3))
    asked = ask(node)
    node.pass_time(4.0)
    assert node.events() == [ZoneMembersUnknown(asked, "far", "nobody answered")]
    asked = ask(node)
    node.receive("a", MembersDenied(asked, "no zone is called 'far'", final=True))
    node.receive("b", MembersDenied(asked, "no zone is called 'far'", final=True))
    assert node.events() == [ZoneMembersUnknown(asked, "far", "no zone is called 'far'")]
    assert node.zones.counts.unanswered == 2


def test_without_delegates_a_question_waits_for_the_next_ones() -> None:
    node = member()
    node.fails("a")
    node.fails("b")
    node.joins("c", 300)
    node.joins("d", 400)
    node.pass_time(0.2)
    node.effects.drain()
    asked = ask(node)
    assert node.sent() == []
    node.says("c", roles="delegate")
    node.pass_time(1.1)
    assert request_of(node) == ("c", MembersRequest(asked, "far"))


def test_answers_of_others_change_nothing() -> None:
    node = member()
    asked = ask(node)
    node.receive("b", MembersPage(asked, "", (BO,)))
    node.receive("evil", MembersPage(asked, "", (BO,)))
    node.receive("evil", MembersDenied(asked, "no"))
    node.receive("a", MembersPage(asked + 1, "", (BO,)))
    assert node.events() == []
    assert node.zones.counts.late == 4


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (MembersPage(0, "", (), more=True), "zones-empty-page"),
        (MembersPage(0, "", (MemberEntry("a\x07", 1),)), "zones-bad-name"),
        (MembersPage(0, "", (BEN, BO)), "zones-page-disordered"),
        (MembersPage(0, "", (BO, BO)), "zones-page-disordered"),
        (MembersPage(0, "", (BO, BEN, EVE)), "zones-too-many-members"),
    ],
)
def test_bad_pages_are_refused(page: MembersPage, reason: str) -> None:
    node = member(ZonesSettings(settle=1.0, table_period=3600, max_members=2))
    asked = ask(node)
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive("a", MembersPage(asked, page.after, page.members, page.more))
    assert refused.value.reason == reason
    assert node.events() == []


def test_a_page_that_leads_back_is_refused_and_another_delegate_asked() -> None:
    node = member()
    asked = ask(node)
    node.receive("a", MembersPage(asked, "", (BO, BEN), more=True))
    node.effects.drain()
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive("a", MembersPage(asked, "ben", (BO,), more=True))
    assert refused.value.reason == "zones-page-disordered"
    node.pass_time(1.1)
    assert request_of(node) == ("b", MembersRequest(asked, "far", "ben"))


def test_a_bad_zone_is_the_callers_fault_and_a_full_node_says_so() -> None:
    node = member(ZonesSettings(settle=1.0, table_period=3600, max_open=1))
    with pytest.raises(LocalProtocolError, match="reserved"):
        ask(node, "@management")
    ask(node)
    with pytest.raises(LocalProtocolError, match=r"zones\.max_open"):
        ask(node)
    node.zones.on_stop(node.now)
    with pytest.raises(LocalProtocolError, match="start it first"):
        ask(node)


# -- answering and forwarding ----------------------------------------------------------------------


def test_a_delegate_answers_for_its_zone_in_pages_that_meet() -> None:
    node = ZonesNode(settings=ZonesSettings(settle=1.0, page_members=3))
    for index in range(7):
        node.joins(f"m{index}", 200)
    node.serve()
    found: list[str] = []
    after = ""
    for _ in range(4):
        node.receive("m0", MembersRequest(1, ZONE, after))
        ((to, page),) = node.sent()
        assert isinstance(page, MembersPage)
        assert (to, page.id, page.after, page.fresh) == ("m0", 1, after, True)
        found += [entry.name for entry in page.members]
        after = found[-1]
        if not page.more:
            break
    assert found == list(node.base.members())


def test_a_page_is_bounded_in_bytes_too_but_has_one_member() -> None:
    node = ZonesNode(settings=ZonesSettings(settle=1.0, page_bytes=512))
    for index in range(40):
        node.joins(f"member-with-a-long-name-{index}", 200)
    node.serve()
    node.receive("member-with-a-long-name-0", MembersRequest(1, ZONE))
    ((_, page),) = node.sent()
    assert isinstance(page, MembersPage)
    assert 1 <= len(page.members) < 10
    assert page.more


def test_a_delegate_forwards_and_passes_the_answer_on() -> None:
    node = delegate()
    node.receive("mate", MembersRequest(77, "far", "bo"))
    to, forwarded = request_of(node)
    assert to == "x"
    assert (forwarded.zone, forwarded.after, forwarded.forwarded) == ("far", "bo", True)
    node.receive("mate", MembersRequest(77, "far", "bo"))
    assert node.sent() == [], "a repetition was forwarded again"
    node.receive("x", MembersPage(forwarded.id, "bo", (BEN,), more=True))
    assert node.sent() == [Send("mate", MembersPage(77, "bo", (BEN,), more=True))]
    assert node.zones.counts.forwarded == node.zones.counts.forwards_ended == 1


def test_a_forwarded_question_goes_to_delegates_then_to_supervisors() -> None:
    node = delegate()
    node.receive("mate", MembersRequest(77, "far"))
    asked = [request_of(node)[0]]
    for _ in range(2):
        node.pass_time(1.01)
        asked += [send.to for send in node.sent(MembersRequest)]
    assert asked == ["x", "y", "s"]
    node.pass_time(10.0)
    assert Send("mate", MembersDenied(77, "nobody answered")) in node.sent(MembersDenied)


def test_what_cannot_be_answered_is_denied_with_a_reason() -> None:
    node = delegate(ZonesSettings(settle=1.0, max_open=1))
    node.receive("stranger", MembersRequest(1, ZONE))
    node.receive("x", MembersRequest(2, "elsewhere", forwarded=True))
    node.receive("mate", MembersRequest(3, "nowhere"))
    assert node.sent() == [
        Send("stranger", MembersDenied(1, "you are no member of my zone")),
        Send("x", MembersDenied(2, "zone 'elsewhere' is not mine to know")),
        Send("mate", MembersDenied(3, "no zone is called 'nowhere'", final=True)),
    ]
    node.receive("mate", MembersRequest(4, "far"))
    node.effects.drain()
    node.receive("mate", MembersRequest(5, "far"))
    assert node.sent() == [Send("mate", MembersDenied(5, "too many questions are open"))]
    assert node.zones.counts.busy == 1
    with pytest.raises(RemoteProtocolError) as refused:
        node.receive("mate", MembersRequest(6, "@management"))
    assert refused.value.reason == "zones-bad-name"


def test_a_plain_member_forwards_nothing() -> None:
    node = member()
    node.receive("a", MembersRequest(1, "far"))
    assert node.sent() == [Send("a", MembersDenied(1, "I am no delegate"))]


def test_a_delegate_asks_the_other_zone_itself_and_knows_what_does_not_exist() -> None:
    node = delegate()
    asked = ask(node)
    assert request_of(node) == ("x", MembersRequest(asked, "far", forwarded=True))
    asked = ask(node, "nowhere")
    assert node.events() == [ZoneMembersUnknown(asked, "nowhere", "no zone is called 'nowhere'")]


def test_a_question_goes_on_when_the_asker_becomes_a_delegate_itself() -> None:
    node = member(ZonesSettings(settle=1.0, table_period=3.0))
    table = (ZoneEntry("far", 2, ("x",)),)
    while not (sent := node.sent(TableRequest)):
        node.pass_time(0.1)
    ((to, request),) = sent
    assert isinstance(request, TableRequest)
    node.receive(to, TablePage(request.id, b"d", 0, 1, table))
    asked = ask(node)
    node.fails("a")
    node.fails("b")
    node.pass_time(0.5)
    assert node.serves()
    node.enter()
    node.pass_time(1.0)
    assert MembersRequest(asked, "far", forwarded=True) in [
        send.msg for send in node.sent(MembersRequest)
    ]
