"""What a clock that may show anything learns from answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.intervals import Interval
from protocols.discovery import BrokerFound
from protocols.discovery.interface import Moment
from protocols.discovery.messages import RequestAck
from protocols.discovery.timing import Word, common_offset, estimate
from tests.unit.discovery.node import BDN_AT, RequesterNode

ways = st.floats(0.0, 0.3)


@given(
    st.floats(-1e6, 1e6),
    st.lists(st.tuples(ways, ways, st.floats(-0.01, 0.01)), min_size=1, max_size=8),
)
def test_honest_answers_give_the_offset_and_each_delay_within_its_error(
    ahead: float, answers: list[tuple[float, float, float]]
) -> None:
    """Ways there and back differ as they like, and clocks are off by what they state."""
    words = [
        Word(0.0, there + ahead + off, abs(off) + 1e-6, there + back)
        for there, back, off in answers
    ]
    offset = common_offset(words)
    assert offset.low - 1e-9 <= ahead <= offset.high + 1e-9
    for word, (_, back, _) in zip(words, answers, strict=True):
        told = estimate(word, offset)
        assert told.plausible
        assert abs(told.delay - back) <= told.error + 1e-6
        assert told.error <= (word.heard - word.asked) / 2 + 1e-6, "it took less than it took"


def test_one_who_lies_is_contradicted_by_the_others() -> None:
    honest = [Word(0.0, 50.01, 0.001, 0.02), Word(0.0, 50.02, 0.001, 0.04)]
    liar = Word(0.0, 40.0, 0.001, 0.02)
    offset = common_offset([liar, *honest])
    assert offset.low <= 50.0 <= offset.high
    assert not estimate(liar, offset).plausible
    assert all(estimate(word, offset).plausible for word in honest)


def test_a_member_trusts_its_own_time_against_one_other() -> None:
    word = Word(0.0, 10.0, 0.001, 0.02)
    assert common_offset([word], Interval(-0.002, 0.002)) == (-0.002, 0.002)
    assert common_offset([word, word], Interval(-0.002, 0.002)) == word.offset


def test_a_bdn_tells_the_time_with_its_first_word() -> None:
    """The BDN is 1 ms away, so that a broker 40 ms away is known within 1 ms, or so."""
    node = RequesterNode(pings=1)
    request = node.begin()
    prove = RequestAck(request, 0, "prove", b"cookie", sent_at=7000.001, error=0.0005)
    node.datagram("bdn", BDN_AT, prove, 0.002)
    node.accepted(request, "b1", now=0.004)
    node.respond("b1", request, 0.1, sent_at=7000.06, error=0.0005)
    node.answer_pings({"b1": 0.08})
    (found,) = node.emitted(BrokerFound)
    assert found.winner.plausible
    assert found.winner.estimated_delay == pytest.approx(0.04, abs=0.0021)
    assert found.winner.delay_error == pytest.approx(0.002, abs=0.0005)


def test_a_requester_with_overlay_time_uses_it() -> None:
    node = RequesterNode(pings=1, clock=lambda now: Moment(now + 7000.0, 0.0001))
    request = node.begin()
    node.accepted(request, "b1", now=0.004)
    node.respond("b1", request, 0.1, sent_at=7000.06, error=0.0001)
    node.answer_pings({"b1": 0.08})
    (found,) = node.emitted(BrokerFound)
    assert found.winner.estimated_delay == pytest.approx(0.04)
    assert found.winner.delay_error == pytest.approx(0.0002)


def test_pings_are_stamped_when_they_leave_and_choosing_takes_time() -> None:
    """What comes before a ping in one tick, as the signatures of others, is not on its way."""
    reading = iter((0.020, 0.021, 0.022, 0.023))
    node = RequesterNode(pings=1, moment=lambda: next(reading))
    request = node.begin()
    node.accepted(request, "b1", "b2", now=0.01)
    for name in ("b1", "b2"):
        node.respond(name, request, 0.02)
    node.answer_pings({"b1": 0.01, "b2": 0.01})
    (found,) = node.emitted(BrokerFound)
    assert [one.ping_least for one in found.candidates] == pytest.approx([0.01, 0.01])
    assert found.phases.choosing == pytest.approx(0.001)
    assert found.phases.total == pytest.approx(0.033)
