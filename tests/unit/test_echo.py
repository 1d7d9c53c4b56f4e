"""Echo: the exact effects of every message, timer and command."""

from random import Random

import pytest

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from protocols.echo import (
    Echo,
    EchoAnswered,
    EchoConfig,
    EchoReply,
    EchoRequest,
    EchoTimedOut,
)
from protocols.echo.machine import REGULAR, TIMEOUT
from tests.recording import Emit, RecordingEffects, Send, SetTimer


def make_echo(config: EchoConfig | None = None, seed: int = 1) -> tuple[Echo, RecordingEffects]:
    effects = RecordingEffects()
    echo = Echo("ada", effects, Random(seed), config or EchoConfig(timeout=1.0, retries=1))
    echo.on_start(0.0, {})
    return echo, effects


def deliver(echo: Echo, src: str, msg: EchoRequest | EchoReply, now: float) -> None:
    echo.message_handlers()[type(msg)](src, msg, now)


def test_a_question_is_sent_and_gets_a_deadline() -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 5.0)
    assert effects.drain() == [Send("bob", EchoRequest(request, b"hi")), SetTimer(TIMEOUT, 6.0)]
    assert echo.open_requests == 1


def test_a_second_question_needs_no_second_timer() -> None:
    echo, effects = make_echo()
    echo.ask("bob", b"1", 5.0)
    effects.drain()
    second = echo.ask("eve", b"2", 5.5)
    assert effects.drain() == [Send("eve", EchoRequest(second, b"2"))]


def test_a_question_of_a_peer_is_answered() -> None:
    echo, effects = make_echo()
    deliver(echo, "bob", EchoRequest(7, b"hi"), 1.0)
    assert effects.drain() == [Send("bob", EchoReply(7, b"hi"))]
    assert echo.counts.served == 1


def test_an_answer_ends_the_request_once() -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 5.0)
    effects.drain()
    deliver(echo, "bob", EchoReply(request, b"hi"), 5.25)
    assert effects.drain() == [Emit(EchoAnswered("bob", request, 0.25, 1))]
    deliver(echo, "bob", EchoReply(request, b"hi"), 5.5)
    assert effects.drain() == []
    assert (echo.counts.answered, echo.counts.late, echo.open_requests) == (1, 1, 0)


def test_silence_is_asked_again_and_then_ends() -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 0.0)
    effects.drain()
    echo.on_timer(TIMEOUT, 1.0)
    assert effects.drain() == [Send("bob", EchoRequest(request, b"hi")), SetTimer(TIMEOUT, 2.0)]
    echo.on_timer(TIMEOUT, 2.0)
    assert effects.drain() == [Emit(EchoTimedOut("bob", request, 2))]
    deliver(echo, "bob", EchoReply(request, b"hi"), 2.1)
    assert effects.drain() == []
    assert (echo.counts.timed_out, echo.counts.retried, echo.counts.late) == (1, 1, 1)


def test_an_answer_to_the_second_try_counts_from_the_first() -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 0.0)
    echo.on_timer(TIMEOUT, 1.0)
    effects.drain()
    deliver(echo, "bob", EchoReply(request, b"hi"), 1.5)
    assert effects.drain() == [Emit(EchoAnswered("bob", request, 1.5, 2))]


def test_the_timer_serves_the_next_deadline() -> None:
    echo, effects = make_echo()
    first = echo.ask("bob", b"1", 0.0)
    echo.ask("eve", b"2", 0.25)
    deliver(echo, "bob", EchoReply(first, b"1"), 0.5)
    effects.drain()
    echo.on_timer(TIMEOUT, 1.0)
    assert effects.drain() == [SetTimer(TIMEOUT, 1.25)]


def test_the_timer_rests_when_nothing_is_open() -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 0.0)
    deliver(echo, "bob", EchoReply(request, b"hi"), 0.5)
    effects.drain()
    echo.on_timer(TIMEOUT, 1.0)
    assert effects.drain() == []
    echo.ask("bob", b"again", 3.0)
    assert SetTimer(TIMEOUT, 4.0) in effects.drain()


@pytest.mark.parametrize(
    ("src", "payload", "reason"),
    [("eve", b"hi", "echo-not-asked"), ("bob", b"ho", "echo-altered")],
)
def test_an_answer_that_fits_badly_is_refused(src: str, payload: bytes, reason: str) -> None:
    echo, effects = make_echo()
    request = echo.ask("bob", b"hi", 0.0)
    effects.drain()
    with pytest.raises(RemoteProtocolError) as refused:
        deliver(echo, src, EchoReply(request, payload), 0.1)
    assert refused.value.reason == reason
    assert effects.drain() == []
    assert echo.open_requests == 1


def test_open_requests_are_bounded() -> None:
    echo, effects = make_echo(EchoConfig(max_open=2))
    echo.ask("bob", b"1", 0.0)
    echo.ask("bob", b"2", 0.0)
    effects.drain()
    with pytest.raises(LocalProtocolError, match=r"2 echo requests are open: wait .*max_open"):
        echo.ask("bob", b"3", 0.0)
    assert effects.drain() == []
    assert echo.counts.asked == 2


def test_regular_peers_are_asked_in_rounds_but_never_myself() -> None:
    echo, effects = make_echo(EchoConfig(regular=("bob", "ada", "eve"), every=10.0, timeout=1.0))
    (start,) = effects.drain()
    assert isinstance(start, SetTimer)
    assert start.key == REGULAR
    assert 0.0 <= start.at <= 10.0
    echo.on_timer(REGULAR, 3.0)
    round_one = effects.drain()
    assert [effect.to for effect in round_one if isinstance(effect, Send)] == ["bob", "eve"]
    assert round_one[-1] == SetTimer(REGULAR, 13.0)


def test_a_regular_round_skips_what_has_no_room() -> None:
    echo, effects = make_echo(EchoConfig(regular=("bob", "eve"), max_open=1))
    echo.on_timer(REGULAR, 3.0)
    assert [effect.to for effect in effects.drain() if isinstance(effect, Send)] == ["bob"]
    assert echo.counts.skipped == 1


def test_two_lives_number_their_requests_apart() -> None:
    one, _ = make_echo(seed=1)
    two, _ = make_echo(seed=2)
    assert one.ask("bob", b"", 0.0) != two.ask("bob", b"", 0.0)


def test_an_open_request_without_a_timer_is_a_broken_invariant() -> None:
    echo, _ = make_echo()
    echo.ask("bob", b"hi", 0.0)
    echo._armed = False
    with pytest.raises(InvariantViolation, match="without a timer"):
        echo.check_invariants()


def test_a_request_with_two_ends_is_a_broken_invariant() -> None:
    echo, _ = make_echo()
    echo.counts.answered += 1
    with pytest.raises(InvariantViolation, match="no end or two"):
        echo.check_invariants()
