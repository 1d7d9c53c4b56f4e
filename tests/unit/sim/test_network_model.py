"""Latency distributions are what their names say."""

from __future__ import annotations

from random import Random
from statistics import fmean, median

import pytest

from overlay.sim import Constant, Exponential, Latency, LogNormal, NodeClock, Uniform


def draw(latency: Latency, count: int = 4000) -> list[float]:
    sample = latency.sampler(Random(1))
    return [sample() for _ in range(count)]


def test_constant() -> None:
    assert set(draw(Constant(0.5))) == {0.5}


def test_uniform() -> None:
    drawn = draw(Uniform(1.0, 3.0))
    assert min(drawn) >= 1.0
    assert max(drawn) <= 3.0
    assert fmean(drawn) == pytest.approx(2.0, rel=0.05)


def test_exponential() -> None:
    drawn = draw(Exponential(mean=2.0, floor=1.0))
    assert min(drawn) >= 1.0
    assert fmean(drawn) == pytest.approx(3.0, rel=0.1)


def test_lognormal() -> None:
    drawn = draw(LogNormal(median=0.1, sigma=1.0))
    assert median(drawn) == pytest.approx(0.1, rel=0.1)
    assert fmean(drawn) > 0.14


def test_a_clock_and_its_inverse() -> None:
    clock = NodeClock(offset=100.0, drift=0.25)
    assert clock.read(8.0) == 110.0
    assert clock.when(110.0) == 8.0
    clock.jump(-5.0, world=8.0)
    assert clock.read(8.0) == 105.0
    assert clock.when(110.0) == 12.0


def test_a_clock_that_stands_still_is_refused() -> None:
    with pytest.raises(ValueError, match="stand still"):
        NodeClock(drift=-1.0)
