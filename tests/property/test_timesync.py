"""Time under any order of answers never goes back; no better intersection can be found."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from hypothesis.strategies import DataObject, data, floats, integers, lists, sampled_from, tuples

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.intervals import Interval, agreement
from protocols.timesync import TimeReply, TimeSettings
from protocols.timesync.discipline import Discipline
from protocols.timesync.filtering import ClockFilter, Sample
from tests.recording import Cast
from tests.unit.timesync.zone import Node

ends = integers(-8, 8).map(float)
intervals = tuples(ends, ends).map(lambda pair: Interval(min(pair), max(pair)))
clocks = floats(-1e6, 1e6)


@given(lists(intervals, max_size=7))
def test_no_set_that_agrees_is_larger_or_more_senior(votes: list[Interval]) -> None:
    def agrees(chosen: tuple[int, ...]) -> bool:
        return max(votes[i].low for i in chosen) <= min(votes[i].high for i in chosen)

    indices = range(len(votes))
    sets = [s for size in indices for s in combinations(indices, size + 1) if agrees(s)]
    best = min(sets, key=lambda chosen: (-len(chosen), chosen), default=())
    assert agreement(votes) == best


@given(lists(tuples(floats(0, 5), floats(-10, 10), floats(-5e-4, 5e-4)), max_size=30))
def test_whatever_it_is_steered_to_time_never_goes_back(
    steps: list[tuple[float, float, float]],
) -> None:
    clock = Discipline(1.0, 0.8, 0.25)
    local, told = 100.0, clock.time(100.0)
    for pause, offset, rate in steps:
        for part in (0.1, 0.5, 1.0):
            now = clock.time(local + part * pause)
            assert now >= told
            told = now
        local += pause
        clock.steer(local, offset, rate)
        assert clock.time(local) >= told
    # And it arrives: after all slews the line is what is told.
    last = clock.time(local + 100)
    assert last - (local + 100 + clock.offset(local + 100)) < 1e-6 or not steps


@given(
    offset=floats(-1000, 1000),
    drift=floats(-1e-4, 1e-4),
    ways=lists(tuples(floats(1e-5, 0.5), floats(1e-5, 0.5)), min_size=1, max_size=40),
    pause=floats(0.1, 64),
)
def test_the_true_offset_is_always_inside_of_the_bound(
    offset: float, drift: float, ways: list[tuple[float, float]], pause: float
) -> None:
    clock = ClockFilter(64, 3000)
    for number, (there, back) in enumerate(ways):
        at = number * pause
        truth = offset + drift * at
        clock.add(Sample(at, truth + (there - back) / 2, there + back))
        estimate = clock.estimate(at)
        assert abs(estimate.offset - truth) <= estimate.bound + 1e-9


class AnyAnswers(RuleBasedStateMachine):
    """One member, sources that answer what they like when they like, and clocks that are set."""

    @initialize(place=integers(0, 5))
    def start(self, place: int) -> None:
        names = [f"n{number}" for number in range(6)]
        self.node = Node(names[place], names, TimeSettings(burst=4, poll_longest=4.0))
        self.open: list[tuple[NodeId, int]] = []
        self.told = self.node.machine.overlay_time(self.node.now)

    @rule(seconds=floats(0.0, 3.0))
    def pass_time(self, seconds: float) -> None:
        self.node.advance(seconds)
        for step in self.node.effects.drain():
            if isinstance(step, Cast):
                self.open.append((step.address.host, step.msg.id))  # type: ignore[attr-defined]

    @rule(by=floats(-5.0, 5.0))
    def set_the_clock(self, by: float) -> None:
        self.node.now += by
        timers = self.node.effects.timers
        for key in timers:
            timers[key] = max(timers[key], self.node.now)

    @rule(choices=data(), ahead=sampled_from([0.0, 0.001, -0.5, 60.0, -1e6]), claimed=clocks)
    def answer(self, choices: DataObject, ahead: float, claimed: float) -> None:
        if not self.open:
            return
        name, request = self.open.pop(choices.draw(integers(0, len(self.open) - 1)))
        received = self.node.now + ahead
        offset = choices.draw(sampled_from([0.0, 0.5, claimed]))
        error = choices.draw(sampled_from([0.0, 0.01, 1e3]))
        rate = choices.draw(sampled_from([0.0, 5e-4, -5e-4]))
        stratum = choices.draw(sampled_from([1, 2, 15, 16]))
        reply = TimeReply(request, received, received, offset, rate, error, stratum, "n0")
        self._receive(choices.draw(sampled_from([name, name, "n3"])), reply)

    @rule(request=integers(0, 1 << 62))
    def answer_what_nobody_asked(self, request: int) -> None:
        self._receive("n1", TimeReply(request, 0.0, 0.0, 0.0, 0.0, 0.0, 1, "n1"))

    def _receive(self, name: NodeId, reply: TimeReply) -> None:
        reason = "time-not-asked"
        try:
            self.node.receive(name, reply, self.node.now)
        except RemoteProtocolError as error:
            reason = error.reason
        assert reason in ("time-not-asked", "time-impossible")

    @rule()
    def look(self) -> None:
        self.node.machine.check_invariants()
        told = self.node.machine.overlay_time(self.node.now)
        assert told >= self.told
        self.told = told
        standing = self.node.machine.standing(self.node.now)
        assert standing.error >= 0


TestAnyAnswers = AnyAnswers.TestCase
