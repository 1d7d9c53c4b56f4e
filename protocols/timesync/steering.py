"""Voting on overlay time, and steering to what the winners say."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from overlay.intervals import Interval, agreement
from overlay.protocol import Event
from protocols.timesync.config import TimeSettings
from protocols.timesync.counts import TimeCounts
from protocols.timesync.discipline import Discipline
from protocols.timesync.events import FalsetickerFound, TimeSynchronised
from protocols.timesync.filtering import MOST_PHI
from protocols.timesync.messages import MAX_RATE, UNSYNCHRONISED
from protocols.timesync.roster import Roster
from protocols.timesync.source import CLAIM_DRIFT, Ballot, Claim, Kind, Source

HEAR_ALL = 2.0  # s that a node which starts waits for the slowest of its sources, at most
VAGUE = 8.0  # times the least error of those who agree: more is nothing to follow
ROOT_STRATUM = 1
LAST_STRATUM = UNSYNCHRONISED - 1


class Standing(NamedTuple):
    """What `overlay time` shows of a node."""

    synchronised: bool
    root: NodeId
    stratum: int
    offset: float  # s that are added to the node's clock now
    error: float  # s that overlay time, as told, may be off
    drift: float  # s/s by which the node's clock is slow
    follows: tuple[str, ...]


class Steering:
    """One node's overlay time, and on whose word it stands."""

    def __init__(
        self,
        me: NodeId,
        config: TimeSettings,
        roster: Roster,
        counts: TimeCounts,
        emit: Callable[[Event], None],
    ) -> None:
        self._me = me
        self._config = config
        self._roster = roster
        self._counts = counts
        self._emit = emit
        self.discipline = Discipline(config.slew_over, config.slew_limit, config.step_over)
        self.synchronised = False
        self._root: NodeId = me
        self._stratum = UNSYNCHRONISED
        self._followed: list[Source] = []
        self._joining = True  # has no time of its own yet that others may take
        self._started = 0.0
        self._voice_from = inf
        self._yielded = False
        self._led = False  # by zones that come before this node's own, whose delegates it asks
        self._error = 0.0
        self._error_at = 0.0
        self._error_grows = 0.0

    def start(self, now: float) -> None:
        """From here on sources may answer."""
        self._started = now
        # A time that came a moment ago, perhaps from a liar who was first, is no voice of its own.
        self._voice_from = now + self._config.burst * self._config.burst_every + 1.0

    # -- what is told -------------------------------------------------------------------------

    def error(self, local: float) -> float:
        """How far the line may be off; it grows while nobody confirms it."""
        return self._error + self._error_grows * max(0.0, local - self._error_at)

    def claim(self, local: float) -> Claim:
        """What this node tells others of its own time: the line, not what is still slewed."""
        line = self.discipline
        stratum = UNSYNCHRONISED if self._joining else self._stratum
        offset, error = line.offset(local), self.error(local)
        return Claim(local, offset, line.rate, error, stratum, self._root, local, self._led)

    def standing(self, now: float) -> Standing:
        """What this node knows of its own time."""
        line = self.discipline
        lacks = line.lacks(now)
        return Standing(
            self.synchronised,
            self._root,
            self._stratum,
            line.offset(now) - lacks,
            self.error(now) + abs(lacks),
            line.rate,
            tuple(source.key for source in self._followed),
        )

    # -- deciding -----------------------------------------------------------------------------

    def found(self, now: float) -> None:
        """Begin with this node's own clock: it is the root."""
        self._joining = False
        self._voice_from = now
        self._stand_alone(now)

    def vote(self, now: float) -> None:
        """Ask all sources that know the time, and follow those who agree."""
        ballots = [source.ballot(now) for source in self._roster.ordered() if source.votes()]
        outside = [ballot for ballot in ballots if ballot.source.kind is Kind.NTP]
        if not self.synchronised and self._roster.hears_more() and now < self._started + HEAR_ALL:
            return
        self._led = False
        if not outside and self._follow_abroad(ballots, now):
            return
        ballots = outside or [one for one in ballots if one.source.kind is not Kind.LEADER]
        if not ballots:
            if self.synchronised:
                self._stand_alone(now)
            return
        mine = self.discipline.offset(now)
        own = Interval(mine - self.error(now), mine + self.error(now))
        # This node's own time is one voice more; of equal sets that of the senior source wins.
        place = sum(self._roster.is_senior(ballot.source) for ballot in ballots)
        intervals = [ballot.interval for ballot in ballots]
        counted = not self._joining and not outside and now >= self._voice_from
        if counted:
            intervals.insert(place, own)
        winners = agreement(intervals)
        agreed = [
            ballots[index - (counted and index > place)]
            for index in winners
            if not (counted and index == place)
        ]
        self._follow(agreed, counted and place in winners, now)
        self._mark_false(agreed, ballots, now)

    def _follow_abroad(self, ballots: list[Ballot], now: float) -> bool:
        """Take the time of zones that lead ours; False when nobody tells it, or they disagree.

        Members have no word against it, as against NTP. A delegate takes it from abroad itself,
        so that what it tells is no echo of its own zone; others take it from a senior that has
        it already, which is nearer, or from their delegates.
        """
        told = [one for one in ballots if self._may_lead(one, Kind.LEADER)]
        self._led = bool(told)
        if not told:
            told = [one for one in ballots if self._may_lead(one, Kind.MEMBER)]
        agreed = [told[index] for index in agreement([one.interval for one in told])]
        if 2 * len(agreed) <= len(told):  # also when there are none
            self._led = False
            return False
        core, shared = cluster(precise(agreed))
        leaders = core
        if not self._led:
            root = core[0].source.claim.root if core[0].source.claim else ""
            seniors = [one for one in self._seniors(ballots) if shares(one, shared, root)]
            leaders = seniors or core
        self._joining = self._yielded = False
        self._steer(leaders, shared, now)
        self._mark_false(agreed, told, now)
        return True

    def _may_lead(self, ballot: Ballot, kind: Kind) -> bool:
        """Whether it tells of zones before ours: a delegate of theirs, or one of ours of them."""
        source, claim = ballot.source, ballot.source.claim
        if source.kind is not kind or claim is None or claim.stratum >= LAST_STRATUM:
            return False
        if claim.root == self._me:
            return False  # it has its time from here: orders differ for a moment
        return kind is Kind.LEADER or (claim.led and source.name in self._roster.relays)

    def _follow(self, agreed: list[Ballot], confirmed: bool, now: float) -> None:
        exact = precise(agreed)
        core, shared = cluster(exact)
        leaders = self._seniors(core) or self._seniors(exact)
        self._yielded = not leaders and not confirmed and bool(agreed)
        if self._yielded:
            leaders = core  # all the others contradict this node, or it begins
            self._counts.outvoted += not self._joining
        if leaders:
            self._steer(leaders, shared, now)
        elif self.synchronised:
            self._stand_alone(now)
        if self._joining and self._yielded and self._knows_enough(agreed):
            self._joining, self._voice_from = False, now  # the root, from the next vote on
        elif not self._yielded:
            self._joining = False

    def _knows_enough(self, agreed: list[Ballot]) -> bool:
        """A senior that comes late serves nobody before it has the time of the others well."""
        return any(len(ballot.source.filter) >= self._config.burst // 2 for ballot in agreed)

    def _seniors(self, ballots: list[Ballot]) -> list[Ballot]:
        """Those that may be followed."""
        return [
            ballot
            for ballot in ballots
            if self._roster.is_senior(ballot.source)
            and ballot.source.claim is not None
            and ballot.source.claim.stratum < LAST_STRATUM
        ]

    def _steer(self, leaders: list[Ballot], shared: Interval, now: float) -> None:
        line = self.discipline
        inside = [one for one in leaders if shared.low <= one.offset <= shared.high]
        offset, rate = mean_of(inside or leaders)
        offset = max(shared.low, min(shared.high, offset))
        if not inside:
            rate = line.rate
        # The most senior that was followed gives the root; a combined time is as deep as it is.
        told = leaders[0].source.claim
        assert told is not None, "it voted"
        # An error is one against that root: who follows another root has no word on it.
        akin = [one for one in leaders if one.source.claim and one.source.claim.root == told.root]
        best = min(akin, key=lambda ballot: ballot.error)
        if self.synchronised and offset - line.offset(now) > self._config.step_over:
            self._counts.steps += 1
        line.steer(now, offset, max(-MAX_RATE, min(MAX_RATE, rate)))
        self._error = best.error + abs(offset - best.offset)
        self._error_at, self._error_grows = now, 2 * CLAIM_DRIFT
        self._followed = [ballot.source for ballot in leaders]
        self._stratum = min(told.stratum + 1, LAST_STRATUM)
        root = told.root if not self._yielded else self._me
        self._become(root, now)

    def _stand_alone(self, now: float) -> None:
        """Go on with the time that is: as root, or until somebody is heard again."""
        if self._root != self._me and self._roster.misses_seniors():
            if self._followed:
                # Polls were lost, but they live: a second root would be one too many. What this
                # node has is still their time, and is worth less with every second.
                self._error, self._error_at = self.error(now), now
                self._error_grows = MOST_PHI
            self._followed, self._yielded = [], False
            return
        self._followed, self._yielded = [], False
        if self._root != self._me or self._stratum != ROOT_STRATUM:
            if not self._config.ntp:
                # What this node says is the overlay's time from now on.
                self._error, self._error_at, self._error_grows = 0.0, now, 0.0
            self._stratum = ROOT_STRATUM
            self._become(self._me, now)

    def _become(self, root: NodeId, now: float) -> None:
        if not self.synchronised or root != self._root:
            self.synchronised, self._root = True, root
            offset = self.discipline.offset(now)
            self._emit(TimeSynchronised(root, offset, self.error(now)))

    def _mark_false(self, agreed: list[Ballot], ballots: list[Ballot], now: float) -> None:
        for ballot in ballots:
            false = ballot not in agreed
            if false and not ballot.source.false:
                self._counts.falsetickers += 1
                off_by = ballot.offset - self.discipline.offset(now)
                self._emit(FalsetickerFound(ballot.source.key, off_by))
            ballot.source.false = false

    def check_invariants(self) -> None:
        """Nobody is followed who may follow this node, but by a root that is outvoted."""
        if abs(self.discipline.rate) > MAX_RATE or self._error < 0:
            raise InvariantViolation(f"{self._me}: rate {self.discipline.rate}, {self._error}")
        if self._yielded:
            return
        wrong = [source.key for source in self._followed if source.claim is None]
        if wrong:
            raise InvariantViolation(f"{self._me} follows {wrong}, who told nothing")


def precise(ballots: list[Ballot]) -> list[Ballot]:
    """Without those who say next to nothing: a wide interval agrees with all, and leads nobody."""
    vague = VAGUE * min((ballot.error for ballot in ballots), default=0.0)
    return [ballot for ballot in ballots if ballot.error <= vague]


def shares(ballot: Ballot, shared: Interval, root: NodeId) -> bool:
    """Whether a source has the time of that root, and so says nothing else."""
    claim = ballot.source.claim
    agrees = ballot.interval.low <= shared.high and shared.low <= ballot.interval.high
    return agrees and claim is not None and claim.root == root


def mean_of(ballots: list[Ballot]) -> tuple[float, float]:
    """Offset and rate, weighed by how much is stated: half the error counts four times."""
    weights = [1.0 / max(ballot.error, 1e-9) ** 2 for ballot in ballots]
    total = sum(weights)
    pairs = list(zip(weights, ballots, strict=True))
    offset = sum(weight * one.offset for weight, one in pairs) / total
    return offset, sum(weight * one.rate for weight, one in pairs) / total


def cluster(ballots: list[Ballot]) -> tuple[list[Ballot], Interval]:
    """Leave out who is farthest from the rest until all bear the mean; and what all bear."""
    kept = list(ballots)
    while True:
        shared = Interval(
            max((ballot.offset - ballot.error for ballot in kept), default=-inf),
            min((ballot.offset + ballot.error for ballot in kept), default=inf),
        )
        if len(kept) <= 2:
            return kept, shared
        offset, _ = mean_of(kept)
        if shared.low <= offset <= shared.high:
            return kept, shared
        kept.remove(max(kept, key=lambda ballot: abs(ballot.offset - offset)))
