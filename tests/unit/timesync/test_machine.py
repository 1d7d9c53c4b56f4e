"""The time service: the exact effects of each message and timer, and what is refused."""

import msgspec
import pytest

from overlay.errors import InvariantViolation, RemoteProtocolError
from overlay.ids import NAME_BYTES
from overlay.protocol import UdpAddress
from protocols.membership.events import MemberFailed, MemberJoined
from protocols.timesync import TimeReply, TimeRequest, TimeSettings, TimeSynchronised
from protocols.timesync.machine import MOST_OPEN, REVIEW, Exchange
from protocols.timesync.messages import PADDING, UNSYNCHRONISED
from protocols.timesync.source import Kind
from tests.recording import CancelTimer, Cast, Emit, SetTimer
from tests.unit.timesync.zone import BASE, ZONE, Node, address


def test_a_start_sets_a_timer_for_each_source_one_after_the_other() -> None:
    node = Node("b", ["a", "b"])
    assert node.effects.drain() == [
        SetTimer(("poll", "a"), BASE + 0.02),
        SetTimer(REVIEW, BASE + 0.25),
    ]


def test_a_poll_asks_with_a_random_number_and_comes_again() -> None:
    node = Node("b", ["a", "b"])
    node.effects.drain()
    node.machine.on_timer(("poll", "a"), BASE + 0.02)
    timer, cast = node.effects.drain()
    assert isinstance(timer, SetTimer)
    assert timer.key == ("poll", "a")
    assert BASE + 0.02 + 0.95 * 0.25 <= timer.at <= BASE + 0.02 + 1.05 * 0.25
    assert isinstance(cast, Cast)
    assert cast.address == address("a")
    assert isinstance(cast.msg, TimeRequest)
    assert cast.msg.id > 1 << 32
    assert node.machine.counts.polls == 1


def test_a_request_is_answered_with_arrival_and_departure() -> None:
    node = Node("a", ["a", "b"])
    node.advance(2.0)  # alone with the time: it is the root
    node.effects.drain()
    node.receive("b", TimeRequest(7, PADDING), node.now)
    reply = TimeReply(7, node.now, node.now, 0.0, 0.0, 0.0, 1, "a")
    assert node.effects.drain() == [Cast(address("b"), reply)]


def test_who_has_no_time_says_so() -> None:
    node = Node("a", ["a", "b"])
    node.effects.drain()
    node.receive("b", TimeRequest(7, PADDING), node.now)
    (cast,) = node.effects.drain()
    assert isinstance(cast, Cast)
    assert isinstance(cast.msg, TimeReply)
    assert cast.msg.stratum == UNSYNCHRONISED


def test_the_senior_of_those_without_time_is_the_root_after_a_second() -> None:
    node = Node("a", ["a", "b", "c"])
    node.effects.drain()
    node.advance(0.9)
    assert not node.machine.is_synchronised
    node.advance(0.2)
    assert Emit(TimeSynchronised("a", 0.0, 0.0)) in node.effects.drain()
    assert node.machine.standing(node.now).stratum == 1


def test_a_junior_waits_for_its_senior_and_not_for_ever() -> None:
    node = Node("b", ["a", "b"])
    node.converse(2.5, {"a": 0.3}, stratum={"a": UNSYNCHRONISED})
    assert not node.machine.is_synchronised
    node.converse(1.0, {"a": 0.3}, stratum={"a": UNSYNCHRONISED})
    assert node.machine.standing(node.now).root == "b"


def test_a_senior_gives_the_time_after_four_samples() -> None:
    node = Node("b", ["a", "b"])
    node.converse(1.5, {"a": 0.3})
    standing = node.machine.standing(node.now)
    assert standing.synchronised
    assert standing.root == "a"
    assert standing.stratum == 2
    assert standing.follows == ("a",)
    assert standing.offset == pytest.approx(0.3, abs=1e-4)
    assert 0.001 <= standing.error < 0.002


def test_after_its_burst_a_source_is_asked_less_and_less() -> None:
    node = Node("b", ["a", "b"])
    node.converse(5.0, {"a": 0.0})
    assert node.machine.counts.polls == pytest.approx(17, abs=2)
    node.converse(1025.0, {"a": 0.0})
    before = node.machine.counts.polls
    node.converse(640.0, {"a": 0.0})
    assert node.machine.counts.polls - before == pytest.approx(10, abs=2)


def test_lost_answers_of_a_burst_are_asked_for_again_and_not_for_ever() -> None:
    node = Node("b", ["a", "b"])
    node.advance(4.5)
    assert node.machine.counts.polls == pytest.approx(18, abs=2)  # nobody answered
    node.advance(3.5)
    assert node.machine.counts.polls == pytest.approx(31, abs=2)  # twice the burst
    node.advance(5.0)
    assert node.machine.counts.polls == pytest.approx(36, abs=2)


def test_a_reply_that_was_not_asked_for_is_counted_and_dropped() -> None:
    node = Node("b", ["a", "b"])
    node.effects.drain()
    node.answer("a", 12345, ahead=100.0)
    assert node.effects.drain() == []
    assert node.machine.counts.late == 1
    assert node.machine.counts.samples == 0


def test_a_reply_of_another_peer_is_refused_and_the_request_stays_open() -> None:
    node = Node("b", ["a", "b", "c"])
    node.advance(0.03)
    ((asked, request), *_) = node.asked()
    other = "c" if asked == "a" else "a"
    with pytest.raises(RemoteProtocolError, match="time-not-asked"):
        node.answer(other, request.id, ahead=50.0)
    node.answer(asked, request.id)
    assert node.machine.counts.samples == 1


def test_a_second_copy_of_a_reply_changes_nothing() -> None:
    node = Node("b", ["a", "b"])
    node.advance(0.03)
    ((name, request),) = node.asked()
    node.answer(name, request.id)
    node.answer(name, request.id)
    assert (node.machine.counts.samples, node.machine.counts.late) == (1, 1)


def test_a_late_reply_is_no_sample() -> None:
    node = Node("b", ["a", "b"])
    node.advance(0.03)
    ((name, request),) = node.asked()
    node.answer(name, request.id, at=node.now + 10)
    assert (node.machine.counts.samples, node.machine.counts.late) == (0, 1)


@pytest.mark.parametrize(
    ("received", "sent"),
    [
        (2.0, 1.0),  # it left before it came
        (0.0, 5.0),  # held for longer than the whole exchange took
        (float("nan"), float("nan")),
        (float("inf"), float("inf")),
        (-1e300, -1e300),
    ],
)
def test_impossible_times_are_refused(received: float, sent: float) -> None:
    node = Node("b", ["a", "b"])
    node.advance(0.03)
    ((_, request),) = node.asked()
    with pytest.raises(RemoteProtocolError, match="time-impossible"):
        node.receive("a", TimeReply(request.id, received, sent, 0, 0, 0, 1, "a"), node.now)
    assert node.machine.counts.samples == 0


@pytest.mark.parametrize("field", ["error", "rate", "stratum", "received"])
def test_the_wire_refuses_numbers_out_of_bounds(field: str) -> None:
    reply = TimeReply(1, 0.0, 0.0, 0.0, 0.0, 0.0, 1, "a")
    bad = {"error": -1.0, "rate": 0.1, "stratum": 17, "received": 1e12}[field]
    data = msgspec.msgpack.encode(msgspec.structs.replace(reply, **{field: bad}))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=TimeReply)


def test_a_flood_of_requests_is_served_up_to_the_rate() -> None:
    node = Node("a", ["a", "b"], TimeSettings(serve_rate=10))
    node.effects.drain()
    for number in range(50):
        node.receive("b", TimeRequest(number, PADDING), node.now)
    assert len(node.effects.drain()) == 10
    assert node.machine.counts.not_served == 40
    node.receive("b", TimeRequest(99, PADDING), node.now + 0.1)
    assert len(node.effects.drain()) == 1


def test_a_source_that_left_the_zone_is_asked_no_more() -> None:
    node = Node("b", ["a", "b"])
    node.effects.drain()
    node.view.change(["b"])
    node.machine.event_handlers()[MemberFailed](MemberFailed(ZONE, "a"), node.now)
    assert node.effects.drain() == [SetTimer(REVIEW, node.now + 0.05)]
    node.machine.on_timer(REVIEW, node.now + 0.05)
    assert CancelTimer(("poll", "a")) in node.effects.drain()
    assert node.machine.sources == []


def test_a_newcomer_is_asked_while_there_is_room() -> None:
    node = Node("a", ["a"])
    node.effects.drain()
    node.view.change(["a", "z"])
    node.machine.event_handlers()[MemberJoined](MemberJoined(ZONE, "z", 1), node.now)
    node.machine.on_timer(REVIEW, node.now + 0.05)
    assert SetTimer(("poll", "z"), node.now + 0.05 + 0.02) in node.effects.drain()


def test_unanswered_requests_are_bounded_and_given_up() -> None:
    node = Node("b", ["a", "b"], TimeSettings(burst=64, burst_every=0.01, timeout=60))
    node.advance(3.0)
    node.machine.check_invariants()
    node = Node("b", ["a", "b"])
    node.advance(30.0)
    assert node.machine.counts.lost > 10
    assert len(node.machine._open) < 5
    assert MOST_OPEN > 64


def test_a_server_of_the_user_is_asked_and_followed_though_it_is_no_member() -> None:
    node = Node("a", ["a"], servers=(UdpAddress("bdn", 7400),))
    node.converse(2.0, {"bdn": -5.0})
    standing = node.machine.standing(node.now)
    assert standing.follows == ("bdn:7400",)
    assert standing.root == "bdn"
    assert standing.offset == pytest.approx(-5.0, abs=1e-3)


def test_a_server_that_has_its_time_from_here_is_not_followed() -> None:
    node = Node("a", ["a"], servers=(UdpAddress("bdn", 7400),))
    node.advance(2.0)
    node.asked()
    for _ in range(8):
        node.advance(0.3)
        for name, request in node.asked():
            node.answer(name, request.id, ahead=0.001, stratum=2, root="a")
    assert node.machine.standing(node.now).follows == ()
    assert node.machine.standing(node.now).root == "a"


def test_ntp_servers_outvote_all_members_and_each_other() -> None:
    config = TimeSettings(ntp=("one:123", "two:123", "three:123"))
    node = Node("d", ["a", "b", "c", "d"], config)
    node.converse(2.0, {"a": 0.1, "b": 0.1, "c": 0.1})
    for _ in range(5):
        for server, ahead in (("one:123", 7.0), ("two:123", 7.001), ("three:123", 99.0)):
            node.advance(0.1)
            times = (node.now - 0.01, node.now + ahead, node.now + ahead, node.now)
            node.machine.take_ntp(server, Exchange(*times, 0.002, 2), node.now)
    standing = node.machine.standing(node.now)
    assert standing.follows == ("one:123", "two:123")
    assert standing.stratum == 3
    assert standing.offset == pytest.approx(7.005, abs=0.003)
    false = [source.key for source in node.machine.sources if source.false]
    assert "three:123" in false
    for server in config.ntp:
        for _ in range(4):
            node.machine.miss_ntp(server, node.now)
    node.machine.on_timer(REVIEW, node.now)
    assert not any(one.answers for one in node.machine.sources if one.kind is Kind.NTP)


def test_what_ntp_never_named_is_ignored() -> None:
    node = Node("a", ["a"])
    node.machine.take_ntp("stranger:123", Exchange(1, 1, 1, 1, 0.0, 1), node.now)
    assert node.machine.counts.samples == 0


def test_invariants_find_what_cannot_be() -> None:
    node = Node("a", ["a", "b"])
    node.machine.check_invariants()
    node.machine._steering.discipline.rate = 1.0
    with pytest.raises(InvariantViolation):
        node.machine.check_invariants()


def test_voters_who_become_seniors_stay_and_others_make_room() -> None:
    names = [f"n{number:02}" for number in range(40)]
    node = Node("n20", ["n20", *names[30:34]])
    node.machine.check_invariants()
    assert len(node.machine.sources) == 4
    node.view.change(["n31", "n20", *names[:3], *names[32:]])
    node.machine.on_timer(REVIEW, node.now)
    node.machine.check_invariants()
    node.view.change(names)
    for _ in range(20):
        node.advance(100.0)
        node.machine.check_invariants()
    assert sum(not source.votes_only for source in node.machine.sources) == 3


def test_no_reply_is_more_than_twice_as_long_as_what_it_answers() -> None:
    """Who asked may be somebody else than it says, in an overlay without keys."""
    name = "x" * NAME_BYTES
    node = Node(name, [name, "b"])
    node.advance(5.0)
    node.effects.drain()
    encode = msgspec.msgpack.encode
    for number in (1, (1 << 63) - 1):
        request = TimeRequest(number, PADDING)
        node.receive("b", request, node.now)
        (reply,) = [step.msg for step in node.effects.drain() if isinstance(step, Cast)]
        assert len(encode(reply)) <= 2 * len(encode(request))
    bare = encode((128, 7))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(bare, type=TimeRequest)


def test_a_flood_of_one_host_leaves_replies_for_others() -> None:
    node = Node("a", ["a", "b", "c"], TimeSettings(serve_rate=20.0, source_rate=5.0))
    node.advance(2.0)
    node.effects.drain()
    for number in range(50):
        node.receive("b", TimeRequest(number, PADDING), node.now)
    node.receive("c", TimeRequest(99, PADDING), node.now)
    asked = [step.address.host for step in node.effects.drain() if isinstance(step, Cast)]
    assert asked == [*"bbbbb", "c"]
