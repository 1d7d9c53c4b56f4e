"""The clock filter: little delay counts most, drift shows, and the bound is never too small."""

from random import Random

import pytest

from protocols.timesync.filtering import ClockFilter, Sample, Verdict


def jittered(rng: Random, at: float, offset: float, *, base: float = 0.01) -> Sample:
    there, back = (base + rng.expovariate(1 / 0.005) for _ in range(2))
    return Sample(at, offset + (there - back) / 2, there + back)


def test_one_sample_is_believed_within_half_its_delay() -> None:
    clock = ClockFilter(64, 1000)
    clock.add(Sample(10.0, 0.5, 0.02))
    estimate = clock.estimate(10.0)
    assert estimate.offset == pytest.approx(0.5)
    assert estimate.bound >= 0.01
    assert clock.estimate(100.0).bound > estimate.bound


def test_the_sample_with_the_least_delay_counts_most() -> None:
    clock = ClockFilter(64, 1000)
    for number in range(8):
        clock.add(Sample(number, 0.5 + 0.02 * number, 0.02 + 0.04 * number))
    assert clock.estimate(7.0).offset == pytest.approx(0.5, abs=0.02)  # the mean is 0.57
    assert clock.estimate(7.0).delay == 0.02


def test_drift_is_learned_and_the_error_is_far_below_the_jitter() -> None:
    rng = Random(1)
    clock = ClockFilter(64, 1000)
    for second in range(0, 300, 5):
        clock.add(jittered(rng, second, 0.3 + 50e-6 * second))
    estimate = clock.estimate(300.0)
    assert estimate.slope == pytest.approx(50e-6, abs=10e-6)
    assert estimate.offset == pytest.approx(0.315, abs=0.0015)


def test_a_constant_asymmetry_stays_inside_of_the_bound() -> None:
    rng = Random(2)
    clock = ClockFilter(64, 1000)
    for second in range(200):
        there, back = 0.03 + rng.expovariate(1000), 0.002 + rng.expovariate(1000)
        clock.add(Sample(second, 0.1 + (there - back) / 2, there + back))
        estimate = clock.estimate(second)
        assert abs(estimate.offset - 0.1) > 0.01  # nobody can see it
        assert abs(estimate.offset - 0.1) <= estimate.bound


def test_a_clock_that_was_set_is_noticed_after_three_samples() -> None:
    clock = ClockFilter(64, 1000)
    for second in range(20):
        assert clock.add(Sample(second, 0.5, 0.002)) is Verdict.TAKEN
    assert clock.add(Sample(20, 1.5, 0.002)) is Verdict.ODD
    assert clock.estimate(20.0).offset == pytest.approx(0.5)
    assert clock.add(Sample(21, 1.5, 0.002)) is Verdict.ODD
    assert clock.add(Sample(22, 1.5, 0.002)) is Verdict.RESTARTED
    assert clock.estimate(22.0).offset == pytest.approx(1.5)
    assert len(clock) == 3


def test_a_single_spike_changes_nothing() -> None:
    clock = ClockFilter(64, 1000)
    for second in range(20):
        clock.add(Sample(second, 0.5, 0.002))
    assert clock.add(Sample(20, 9.0, 0.002)) is Verdict.ODD
    assert clock.add(Sample(21, 0.5, 0.002)) is Verdict.TAKEN
    assert clock.add(Sample(22, 9.0, 0.002)) is Verdict.ODD  # the count began again
    assert clock.estimate(22.0).offset == pytest.approx(0.5)


def test_a_slow_sample_is_no_contradiction() -> None:
    clock = ClockFilter(64, 1000)
    for second in range(20):
        clock.add(Sample(second, 0.5, 0.002))
    # All of its 400 ms were on the way there: it says +0.2, and bounds itself by that.
    assert clock.add(Sample(20, 0.699, 0.4)) is Verdict.TAKEN
    assert clock.estimate(20.0).offset == pytest.approx(0.5, abs=0.001)


def test_old_samples_and_those_over_the_size_are_forgotten() -> None:
    clock = ClockFilter(4, 1000)
    for second in range(10):
        clock.add(Sample(second, 0.0, 0.01))
    assert len(clock) == 4
    clock.add(Sample(5000.0, 0.0, 0.01))
    assert len(clock) == 1
