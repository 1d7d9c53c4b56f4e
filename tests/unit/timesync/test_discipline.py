"""Overlay time: smooth, never backwards, and forward at once where it is far behind."""

from itertools import pairwise

import pytest

from protocols.timesync.discipline import Discipline


def fresh() -> Discipline:
    return Discipline(slew_over=1.0, slew_limit=0.8, step_over=0.25)


def test_it_begins_with_the_nodes_clock() -> None:
    assert fresh().time(100.0) == 100.0


def test_before_anybody_read_it_it_may_be_set_anywhere() -> None:
    clock = fresh()
    clock.steer(100.0, -50.0, 0.0)
    assert clock.time(100.0) == 50.0


def test_a_small_correction_is_spread_over_a_second() -> None:
    clock = fresh()
    assert clock.time(100.0) == 100.0
    clock.steer(100.0, 0.1, 0.0)
    assert clock.time(100.0) == 100.0
    assert clock.time(100.5) == pytest.approx(100.55)
    assert clock.time(101.0) == pytest.approx(101.1)
    assert clock.lacks(101.0) == 0.0


def test_a_correction_back_slows_time_down_and_never_turns_it() -> None:
    clock = fresh()
    clock.time(100.0)
    clock.steer(100.0, -2.0, 0.0)
    told = [clock.time(100.0 + step / 100) for step in range(400)]
    assert all(earlier < later for earlier, later in pairwise(told))
    assert told[250] == pytest.approx(100.5)  # 2 s, at 0.8 a second
    assert told[249] > 100.49
    assert told[-1] == pytest.approx(101.99)


def test_a_large_step_forward_is_made_at_once() -> None:
    clock = fresh()
    clock.time(100.0)
    clock.steer(100.0, 5.0, 0.0)
    assert clock.time(100.0) == 105.0


def test_steering_again_does_not_slow_a_slew_down() -> None:
    clock = fresh()
    clock.time(100.0)
    clock.steer(100.0, -0.5, 0.0)
    for step in range(1, 11):
        clock.steer(100.0 + step / 10, -0.5, 0.0)
    assert clock.lacks(101.0) == pytest.approx(0.0, abs=1e-9)


def test_rate_carries_time_on_between_corrections() -> None:
    clock = fresh()
    clock.steer(100.0, 1.0, 50e-6)
    assert clock.time(200.0) == pytest.approx(201.005)


def test_when_the_nodes_clock_is_set_back_time_stands_still() -> None:
    clock = fresh()
    assert clock.time(100.0) == 100.0
    assert clock.time(90.0) == 100.0
    assert clock.time(101.0) == 101.0
