"""What the samples of one source say: a line through those with little delay, and its bound.

NTP's filter takes the sample with the least delay of the last eight. This one weighs all samples by
how much longer than the least their delay was, for that excess bounds what jitter did to them, and
fits offset and drift at once; the one with the least delay still counts most, and alone bounds
the error.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from math import sqrt
from typing import NamedTuple

SLOPE_PRIOR = 1e-4  # how two crystals differ, before anything is known
WANDER = 5e-7  # how a crystal's frequency changes meanwhile
TIMESTAMPS = 5e-6  # s: what reading a clock costs
MOST_PHI = 3e-4  # no honest clocks drift apart faster
ODD_IN_A_ROW = 3
JUDGES_FROM = 8  # samples: fewer do not show what jitter there is


class Sample(NamedTuple):
    """One exchange: how far the source's clock was ahead of ours."""

    at: float  # by our clock, in the middle of the exchange
    offset: float
    delay: float  # there and back


class Verdict(Enum):
    """What a sample did."""

    TAKEN = "taken"
    ODD = "odd"  # it contradicts the others: kept aside
    RESTARTED = "restarted"  # several such in a row: a clock was set, or the way changed


class Estimate(NamedTuple):
    """The source's clock against ours at one moment."""

    offset: float
    slope: float
    delay: float  # of the best sample
    dispersion: float  # what else may be wrong with the offset
    sigma: float  # how far jitter leads it astray, typically

    @property
    def bound(self) -> float:
        """The offset is wrong by no more, however asymmetric the way is."""
        return self.delay / 2 + self.dispersion


class ClockFilter:
    """The last samples of one source."""

    def __init__(self, size: int, age: float) -> None:
        self._samples: deque[Sample] = deque(maxlen=size)
        self._age = age
        self._odd: list[Sample] = []
        self._at = self._offset = self._slope = 0.0
        self._var_offset = self._var_slope = self._covariance = 0.0
        self._least = self._mean = 0.0

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def last(self) -> Sample | None:
        """The newest sample that was taken."""
        return self._samples[-1] if self._samples else None

    def clear(self) -> None:
        """Forget everything."""
        self._samples.clear()
        self._odd.clear()

    def add(self, sample: Sample) -> Verdict:
        """Take a sample, unless it contradicts the others; after three that do, only those."""
        if self._samples and self._contradicts(sample):
            if self._odd and not _fit_together(self._odd[-1], sample):
                self._odd.clear()  # no clock that was set, but one who says now this, now that
            self._odd.append(sample)
            if len(self._odd) < ODD_IN_A_ROW:
                return Verdict.ODD
            odd = self._odd[:]
            self.clear()
            self._samples.extend(odd)
            self._fit()
            return Verdict.RESTARTED
        self._odd.clear()
        self._samples.append(sample)
        while self._samples[0].at < sample.at - self._age or self._samples[0].at > sample.at:
            self._samples.popleft()
        self._fit()
        return Verdict.TAKEN

    def _contradicts(self, sample: Sample) -> bool:
        """Whether jitter cannot explain it: the excess of its delay bounds what that may do."""
        if len(self._samples) < JUDGES_FROM:
            return not _fit_together(self._samples[-1], sample)
        off = abs(sample.offset - self._offset - self._slope * (sample.at - self._at))
        jitter = max(0.0, sample.delay - self._least) / 2 + (self._mean - self._least) / 2
        return off > jitter + 5 * self._sigma(sample.at) + 2 * TIMESTAMPS

    def estimate(self, now: float) -> Estimate:
        """What holds at a time of our clock; there must be a sample."""
        offset = self._offset + self._slope * (now - self._at)
        phi = min(MOST_PHI, 10 * WANDER + 3 * sqrt(self._var_slope))
        best, bound = self._samples[-1], float("inf")
        for sample in self._samples:
            age = abs(now - sample.at)
            if sample.delay / 2 + phi * age < bound:
                best, bound = sample, sample.delay / 2 + phi * age
        age = now - best.at
        astray = abs(offset - best.offset - self._slope * age)
        dispersion = astray + phi * abs(age) + TIMESTAMPS
        return Estimate(offset, self._slope, best.delay, dispersion, self._sigma(now))

    def _sigma(self, at: float) -> float:
        ahead = at - self._at
        variance = self._var_offset + 2 * ahead * self._covariance + ahead * ahead * self._var_slope
        return sqrt(max(0.0, variance))

    def _fit(self) -> None:
        """Weighted least squares of offset and slope, about the newest sample."""
        samples = self._samples
        newest = samples[-1]
        self._least = least = min(sample.delay for sample in samples)
        self._mean = mean = sum(sample.delay for sample in samples) / len(samples)
        # The least delay of n is above the true base by about this: it is no perfect sample.
        blur = (mean - least) / sqrt(len(samples)) + TIMESTAMPS
        s0 = s1 = y0 = y1 = 0.0
        s2 = 1.0 / SLOPE_PRIOR**2
        for at, offset, delay in samples:
            x, y = at - newest.at, offset - newest.offset
            excess = delay - least + blur
            weight = 1.0 / (excess * excess / 12 + (WANDER * x) ** 2)
            s0 += weight
            s1 += weight * x
            s2 += weight * x * x
            y0 += weight * y
            y1 += weight * x * y
        determinant = s0 * s2 - s1 * s1
        self._at = newest.at
        self._offset = newest.offset + (s2 * y0 - s1 * y1) / determinant
        self._slope = (s0 * y1 - s1 * y0) / determinant
        self._var_offset = s2 / determinant
        self._var_slope = s0 / determinant
        self._covariance = -s1 / determinant


def _fit_together(one: Sample, other: Sample) -> bool:
    """Whether one clock, however it drifts, can have given both."""
    off = abs(one.offset - other.offset) - MOST_PHI * abs(one.at - other.at)
    return off <= (one.delay + other.delay) / 2 + 2 * TIMESTAMPS
