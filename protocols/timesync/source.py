"""One source of time: how it is polled, what it answered, and where it says overlay time is."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from overlay.ids import NodeId
from overlay.intervals import Interval
from overlay.protocol import UdpAddress
from protocols.timesync.config import TimeSettings
from protocols.timesync.filtering import ClockFilter, Sample, Verdict
from protocols.timesync.messages import MAX_RATE, UNSYNCHRONISED
from protocols.timesync.seniority import Rank

MISSED = 4  # polls in a row without an answer: the source is gone for now
CLAIM_DRIFT = 1e-5  # s/s that what a source told of itself may have become wrong since


class Kind(IntEnum):
    """What a source is; the lower one is the more senior."""

    NTP = 0
    SERVER = 1  # an overlay node that the user named
    LEADER = 2  # a delegate of a zone that leads ours
    MEMBER = 3


class Claim(NamedTuple):
    """What a source makes of its own clock."""

    at: float  # by its clock
    offset: float
    rate: float
    error: float
    stratum: int
    root: NodeId
    heard_at: float  # by ours
    led: bool = False  # by zones that come before its own


class Ballot(NamedTuple):
    """Where one source puts overlay time, against our clock."""

    source: Source
    offset: float
    rate: float
    error: float

    @property
    def interval(self) -> Interval:
        """What it votes for."""
        return Interval(self.offset - self.error, self.offset + self.error)


class Source:
    """Its samples and claims; the machine polls it."""

    def __init__(
        self,
        key: str,
        kind: Kind,
        address: UdpAddress | None,
        config: TimeSettings,
        *,
        name: NodeId = "",
        votes_only: bool = False,
        burst: int = 0,
    ) -> None:
        self.key = key
        self.kind = kind
        self.address = address  # None: looked up by name, or none of ours
        self.name = name  # empty: whoever answers there
        self.filter = ClockFilter(config.samples, config.sample_age)
        self.claim: Claim | None = None
        self.votes_only = votes_only
        self.place = 0  # among the delegates of leading zones
        self.false = False
        self.missed = 0
        self.polls = 0
        self._config = config
        self._burst = self._again = burst or config.burst
        # Only who is followed must be known well; a vote needs no more than an interval.
        self._pause = config.poll_longest if votes_only else config.poll_first
        self._at_this_pause = 0

    def hurry(self, polls: int, *, anew: bool = False) -> None:
        """Poll it often for a while; `anew`: and then less and less, as after the start."""
        self._burst = self._again = max(self._burst, polls)
        if anew and not self.votes_only:
            self._pause = self._config.poll_first
            self._at_this_pause = 0

    def polled(self) -> float:
        """Count a poll; returns the pause until the next."""
        self.polls += 1
        self.missed += 1
        if self._burst > 1:
            # What a burst is worth are its answers: lost ones are asked for again, up to as many.
            if self.missed > 1 and self._again > 0:
                self._again -= 1
            else:
                self._burst -= 1
            return self._config.burst_every
        self._burst = 0
        pause = self._pause
        self._at_this_pause += 1
        if self._at_this_pause >= self._config.poll_double:
            self._at_this_pause = 0
            self._pause = min(2 * pause, self._config.poll_longest)
        return pause

    def take(self, sample: Sample, claim: Claim) -> Verdict:
        """Take one answer."""
        self.missed = 0
        verdict = self.filter.add(sample)
        if verdict is not Verdict.ODD:  # what it claims then belongs to a clock we do not know yet
            self.claim = claim
        return verdict

    @property
    def answers(self) -> bool:
        """Whether it was heard of late."""
        return self.claim is not None and self.missed < MISSED

    @property
    def is_pending(self) -> bool:
        """Whether it answers, and only more samples are lacking; or may still answer."""
        if self.missed >= MISSED or self.votes():
            return False
        return self.claim is None or self.claim.stratum < UNSYNCHRONISED

    def votes(self) -> bool:
        """Whether it knows the time, and we know its clock well enough."""
        return (
            self.answers
            and self.claim is not None
            and self.claim.stratum < UNSYNCHRONISED
            and len(self.filter) >= min(self._config.first_samples, self._config.samples)
        )

    def ballot(self, now: float) -> Ballot:
        """Where it puts overlay time; only if it votes."""
        claim = self.claim
        assert claim is not None, "it votes"
        clock = self.filter.estimate(now)
        since = now + clock.offset - claim.at
        age = abs(now - claim.heard_at)
        rate = max(-MAX_RATE, min(MAX_RATE, clock.slope + claim.rate))
        offset = clock.offset + claim.offset + claim.rate * since
        return Ballot(self, offset, rate, clock.bound + claim.error + CLAIM_DRIFT * age)

    def sort_key(self, rank: Rank | None) -> tuple[int, int, Rank, str]:
        """The most senior first; members that are gone last."""
        return (self.kind, self.place, rank or (1 << 62, 0, ""), self.key)
