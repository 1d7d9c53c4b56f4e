"""Ledgers: changes in batches, digests, pages, doubt; and everything that must not get in."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import Ring
from protocols.gateways import GatewaysSettings, gateway_key, topic_id
from protocols.gateways.covering import read_patterns, summary
from protocols.gateways.ledger import Book, line_hash, packed, sheets
from protocols.gateways.ledger import Stake as S
from protocols.gateways.messages import (
    LedgerAgreed,
    LedgerChange,
    LedgerDigest,
    LedgerPage,
    LedgerRequest,
    Line,
    Party,
)
from protocols.membership.events import MemberFailed
from tests.recording import Send
from tests.unit.gateways.node import ZONE, GatewaysNode, digest, party

PUB, SUB = 1, 2


def gateway_among(*names: str, prefix: str = "t") -> dict[str, str]:
    """A topic for each member whose gateway it is."""
    ring, at = Ring(names), 0
    found: dict[str, str] = {}
    while len(found) < len(names):
        topic = f"{prefix}/{at}"
        found.setdefault(ring.responsible_for(gateway_key(topic)), topic)
        at += 1
    return found


def test_a_topic_has_two_places() -> None:
    assert topic_id("a/b") != gateway_key("a/b") != topic_id("a/c")
    assert 0 <= topic_id("a/b") < 1 << 128


def test_declarations_of_one_moment_leave_as_one_message_and_are_compared_later() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    ring = Ring(["me", "far"])
    topics = [f"t/{at}" for at in range(40)]
    far = [one for one in topics if ring.responsible_for(gateway_key(one)) == "far"]
    for topic in topics:
        node.declare(topic, subscribes=True)
    assert node.sent() == []
    node.pass_time(0.02)
    (sent,) = node.sent()
    assert sent.to == "far"
    assert isinstance(sent.msg, LedgerChange)
    assert sent.msg.lines == tuple(Line(topic, SUB) for topic in far)
    node.pass_time(1.3)
    said = digest(Book.DECLARATIONS, *((topic, SUB) for topic in far))
    assert node.sent() == [Send("far", said)]
    node.receive("far", LedgerAgreed(Book.DECLARATIONS, said.digest))
    node.pass_time(3.7)
    assert node.sent() == []
    node.pass_time(2.6)
    again = node.sent()
    assert again == [Send("far", said)] * len(again) != [], "a digest, whatever the ledger holds"


def test_who_says_it_differs_reads_page_by_page() -> None:
    node = GatewaysNode(settings=GatewaysSettings(page_lines=2))
    node.joins("far")
    node.settle()
    ring = Ring(["me", "far"])
    topics = sorted(
        one
        for one in (f"t/{at}" for at in range(40))
        if ring.responsible_for(gateway_key(one)) == "far"
    )[:3]
    for topic in topics:
        node.declare(topic, publishes=True)
    node.settle()
    node.receive("far", LedgerRequest(Book.DECLARATIONS, 7))
    (first,) = node.sent(LedgerPage)
    assert isinstance(first.msg, LedgerPage)
    assert first.msg.lines == (Line(topics[0], PUB), Line(topics[1], PUB))
    assert first.msg.more
    node.receive("far", LedgerRequest(Book.DECLARATIONS, 7, topics[1]))
    (second,) = node.sent(LedgerPage)
    assert isinstance(second.msg, LedgerPage)
    assert (second.msg.lines, second.msg.more) == ((Line(topics[2], PUB),), False)
    node.receive("far", LedgerRequest(Book.ROSTERS, 8))
    (none,) = node.sent(LedgerPage)
    assert isinstance(none.msg, LedgerPage)
    assert (none.msg.lines, none.msg.more) == ((), False)


def test_a_peer_that_begins_a_new_life_is_compared_with_at_once() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    topic = gateway_among("me", "far")["far"]
    node.declare(topic, subscribes=True)
    node.settle()
    node.hear(MemberFailed(ZONE, "far", restarted=True))
    node.joins("far")
    node.pass_time(0.02)
    assert node.sent() == [Send("far", digest(Book.DECLARATIONS, (topic, SUB)))]


def test_changes_without_end_put_no_comparison_off() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    topic = gateway_among("me", "far")["far"]
    for at in range(20):
        node.declare(topic, subscribes=bool(at % 2), publishes=True)
        node.pass_time(0.1)
    assert node.sent(LedgerDigest)


def test_the_last_withdrawal_ends_the_ledger_once_the_peer_agreed() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    topic = gateway_among("me", "far")["far"]
    node.declare(topic, subscribes=True)
    node.settle()
    node.declare(topic)
    node.pass_time(0.1)
    (sent,) = node.sent(LedgerChange)
    assert isinstance(sent.msg, LedgerChange)
    assert sent.msg.lines == (Line(topic, 0),)
    node.pass_time(1.3)
    assert node.sent() == [Send("far", LedgerDigest(Book.DECLARATIONS, 0, bytes(8)))]
    node.receive("far", LedgerAgreed(Book.DECLARATIONS, bytes(8)))
    node.pass_time(60.0)
    assert node.sent() == []


def test_a_digest_that_differs_is_read_and_what_no_page_has_is_doubted() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.told("far", Book.DECLARATIONS, ("a", PUB), ("b", PUB))
    node.settle()
    node.receive("far", digest(Book.DECLARATIONS, ("b", SUB), ("c", SUB)))
    (asked,) = node.sent(LedgerRequest)
    assert isinstance(asked.msg, LedgerRequest)
    lines = (Line("b", SUB), Line("c", SUB))
    node.receive("far", LedgerPage(0, asked.msg.id, "", 5000, lines))
    node.settle()
    assert node.gateways.local_subscribers("b") == node.gateways.local_subscribers("c") == ("far",)
    assert node.gateways.is_gateway("a"), "nobody withdrew it"
    said = digest(Book.DECLARATIONS, ("b", SUB), ("c", SUB))
    node.receive("far", said)
    assert node.sent() == [Send("far", LedgerAgreed(0, said.digest))]
    node.pass_time(14.0)
    assert node.gateways.is_gateway("a")
    node.pass_time(17.0)
    assert not node.gateways.is_gateway("a")
    node.gateways.audit()


def test_a_page_that_does_not_come_is_asked_for_again_but_not_for_ever() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.receive("far", digest(Book.DECLARATIONS, ("a", PUB)))
    node.pass_time(10.0)
    requests = node.sent(LedgerRequest)
    assert len(requests) == 5
    assert len({msg.msg for msg in requests}) == 1
    node.receive("far", digest(Book.DECLARATIONS, ("a", PUB)))
    assert len(node.sent(LedgerRequest)) == 1


def test_copies_stragglers_and_pages_nobody_asked_for_change_nothing() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.receive("far", LedgerChange(0, 10, (Line("a", PUB),)))
    node.receive("far", LedgerChange(0, 9, (Line("b", PUB),)))
    node.receive("far", LedgerChange(0, 11, (Line("a", 0),)))
    node.receive("far", LedgerChange(0, 10, (Line("a", PUB),)))
    node.receive("far", LedgerPage(0, 1, "", 99, (Line("b", PUB),)))
    node.receive("far", LedgerAgreed(0, bytes(8)))
    node.settle()
    assert node.gateways.topics_held() == ()
    assert node.gateways.counts.outdated == 2
    assert node.gateways.counts.late == 2


def test_a_change_that_comes_while_pages_are_read_is_newer_than_they_are() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.receive("far", digest(Book.DECLARATIONS, ("a", PUB), ("b", PUB)))
    (asked,) = node.sent(LedgerRequest)
    assert isinstance(asked.msg, LedgerRequest)
    node.receive("far", LedgerChange(0, 6001, (Line("a", 0),)))
    node.receive("far", LedgerPage(0, asked.msg.id, "", 6000, (Line("a", PUB), Line("b", PUB))))
    node.settle()
    assert node.gateways.topics_held() == ("b",)


def test_an_owner_that_is_silent_is_asked_and_a_silent_home_is_forgotten() -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.told("far", Book.DECLARATIONS, ("a", PUB))
    node.told("home", Book.ROSTERS, ("a", SUB), by=party("gb", "b"))
    node.settle()
    assert list(node.gateways.remote_gateways("a")) == ["gb"]
    node.pass_time(20.5)
    assert [msg.to for msg in node.sent(LedgerRequest)] == ["far"]
    assert node.gateways.is_gateway("a")
    assert node.gateways.remote_gateways("a") == {}
    assert node.gateways.counts.expired == 1


BAD = [
    ("gateways-no-such-book", LedgerDigest(9, 0, bytes(8))),
    ("gateways-bad-topic", LedgerChange(0, 1, (Line("a//b", PUB),))),
    ("gateways-bad-topic", LedgerChange(0, 1, (Line("a/*", PUB),))),
    ("gateways-bad-party", LedgerChange(0, 1, (Line("a", PUB, 0),), (party("x", "b"),))),
    ("gateways-bad-party", LedgerChange(4, 1, (Line("a", PUB),))),
    ("gateways-bad-party", LedgerChange(4, 1, (Line("a", PUB, 3),), (party("x", "b"),))),
    ("gateways-bad-name", LedgerChange(4, 1, (Line("a", PUB, 0),), (Party("x y", "b"),))),
    ("gateways-bad-name", LedgerChange(4, 1, (Line("a", PUB, 0),), (Party("x", "@b"),))),
    ("gateways-too-many", LedgerDigest(0, 1_000_001, bytes(8))),
]


@pytest.mark.parametrize(("reason", "message"), BAD, ids=[reason for reason, _ in BAD])
def test_bad_messages_are_refused(reason: str, message: LedgerChange | LedgerDigest) -> None:
    node = GatewaysNode()
    node.joins("far")
    with pytest.raises(RemoteProtocolError) as caught:
        node.receive("far", message)
    assert caught.value.reason == reason
    assert node.gateways.lines_held == 0


@pytest.mark.parametrize(
    ("reason", "lines", "more"),
    [
        ("gateways-page-disordered", ("b", "a"), False),
        ("gateways-page-disordered", ("a", "a"), False),
        ("gateways-empty-page", (), True),
    ],
)
def test_bad_pages_are_refused(reason: str, lines: tuple[str, ...], more: bool) -> None:
    node = GatewaysNode()
    node.joins("far")
    node.settle()
    node.receive("far", digest(Book.DECLARATIONS, ("a", PUB)))
    (asked,) = node.sent(LedgerRequest)
    assert isinstance(asked.msg, LedgerRequest)
    page = LedgerPage(0, asked.msg.id, "", 1, tuple(Line(one, PUB) for one in lines), more=more)
    with pytest.raises(RemoteProtocolError) as caught:
        node.receive("far", page)
    assert caught.value.reason == reason


def test_strangers_are_counted_and_not_heard() -> None:
    node = GatewaysNode()
    for book in Book:
        if book is not Book.ROSTERS:
            by = party("x", "b") if book in (Book.INTERESTS, Book.REPLICAS) else None
            node.told("stranger", book, ("a", PUB), by=by)
            node.receive("stranger", LedgerDigest(book, 0, bytes(8)))
    assert node.gateways.counts.strangers == 12
    assert node.gateways.lines_held == 0
    assert node.sent() == []


def test_pages_that_never_end_are_bounded() -> None:
    """Of lines that hold nothing none is kept, but each is noted until the last page."""
    node = GatewaysNode(settings=GatewaysSettings(max_lines=5))
    node.receive("home", LedgerDigest(Book.ROSTERS, 1, b"differs!"))
    by = (party("x", "b"),)
    for number in range(1, 7):
        (asked,) = node.sent(LedgerRequest)
        assert isinstance(asked.msg, LedgerRequest)
        lines = (Line(f"t/{number}", 0, 0),)
        page = LedgerPage(Book.ROSTERS, asked.msg.id, asked.msg.after, 1, lines, by, more=True)
        if number < 6:
            node.receive("home", page)
    with pytest.raises(RemoteProtocolError, match="gateways-too-many"):
        node.receive("home", page)
    assert node.gateways.lines_held == 0


def test_what_is_told_is_bounded() -> None:
    node = GatewaysNode(settings=GatewaysSettings(max_lines=2, max_total=3, max_ledgers=2))
    node.joins("b", "c", "d")
    node.told("b", Book.DECLARATIONS, ("1", PUB), ("2", PUB))
    for src, lines in (("b", 1), ("c", 2)):
        with pytest.raises(RemoteProtocolError, match="gateways-too-many"):
            node.told(src, Book.DECLARATIONS, *((f"x/{at}", PUB) for at in range(lines)))
    with pytest.raises(RemoteProtocolError, match="gateways-too-many-ledgers"):
        node.told("d", Book.DECLARATIONS, ("1", PUB))
    assert node.gateways.lines_held == 2


def test_what_is_declared_is_bounded_and_checked() -> None:
    node = GatewaysNode(settings=GatewaysSettings(max_topics=1))
    node.declare("a", publishes=True)
    node.declare("a", subscribes=True)
    with pytest.raises(LocalProtocolError, match="max_topics"):
        node.declare("b", publishes=True)
    with pytest.raises(LocalProtocolError, match="wildcard"):
        node.declare("a/*", subscribes=True)
    node.declare("a")
    node.declare("b", publishes=True)
    with pytest.raises(LocalProtocolError, match="in no zone"):
        GatewaysNode(base=False).declare("a", publishes=True)
    node.gateways.on_stop(0.0)
    with pytest.raises(LocalProtocolError, match="does not run"):
        node.gateways.declare("c", publishes=True, subscribes=False, now=0.0)


def test_sheets_hold_so_many_lines_bytes_and_parties() -> None:
    lines = [(f"t/{at:03}", S(PUB)) for at in range(10)]
    cut = list(sheets(lines, most=4, most_bytes=10_000))
    assert [len(sheet.lines) for sheet in cut] == [4, 4, 2]
    assert [sheet.last for sheet in cut] == ["t/003", "t/007", "t/009"]
    assert [len(one.lines) for one in sheets(lines, most=100, most_bytes=33)] == [3, 3, 3, 1]
    assert [len(one.lines) for one in sheets(lines[:2], most=9, most_bytes=1)] == [1, 1]
    many = [("t", S(PUB, party(f"g{at}", "z"))) for at in range(300)]
    assert [len(one.parties) for one in sheets(many, most=1000, most_bytes=10**6)] == [256, 44]
    one = party("g", "z")
    (shared,) = sheets([("a", S(PUB, one)), ("b", S(SUB, one))], most=9, most_bytes=10**6)
    assert shared.parties == (one,)
    assert shared.lines == (Line("a", PUB, 0), Line("b", SUB, 0))


def test_every_part_of_a_line_counts_in_the_digest() -> None:
    one = party("g", "z")
    stakes = [S(1), S(2), S(1, one), S(1, party("g", "y")), S(1, Party("g", "z"))]
    hashes = [line_hash("a", stake) for stake in stakes] + [line_hash("b", S(1))]
    assert len(set(hashes)) == len(hashes)
    assert len(packed(hashes[0])) == 8


def test_a_summary_of_patterns_may_widen_and_never_narrows() -> None:
    assert summary([], 100) == ""
    assert summary(["b/*", "a", "a/**", "b/c"], 100) == "a/**\nb/*"
    assert summary(["a/b/c/*", "a/b/d/*"], 12) == "a/b/**"
    assert summary(["aaaaaaaa/*", "bbbbbbbb/*"], 12) == "**"


def test_what_is_no_pattern_is_left_out() -> None:
    assert read_patterns(None) == ((), True)
    assert read_patterns("a/*\n\nb") == (("a/*", "b"), True)
    assert read_patterns("a//b\nc") == (("c",), False)
    assert read_patterns(7) == ((), False)
