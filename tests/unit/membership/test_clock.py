"""Time that nobody witnessed does not count."""

import pytest

from protocols.membership.clock import Alarms, SteadyClock
from protocols.membership.horizon import CLOCK_ERROR, Horizon
from protocols.membership.records import MAX_INCARNATION
from tests.recording import RecordingEffects


class Watched:
    """A clock with a largest gap of a second, and one alarm after two."""

    def __init__(self) -> None:
        self.gaps = 0
        self.effects = RecordingEffects()
        self.alarms = Alarms(self.effects)
        self.clock = SteadyClock(1.0, self._gap, self.alarms.rearm)
        self.alarms.follow(self.clock)
        self.clock.start(100.0)
        self.alarms.set("ring", 2.0)

    def _gap(self) -> None:
        self.gaps += 1


def test_time_that_passes_in_small_steps_counts() -> None:
    watched = Watched()
    for now in (100.5, 101.0, 101.9):
        watched.clock.read(now)
        assert not watched.alarms.rings("ring")
    assert watched.effects.timers["ring"] == pytest.approx(102.0)
    watched.clock.read(102.0)
    assert watched.alarms.rings("ring")
    assert "ring" not in watched.alarms
    assert not watched.alarms.rings("ring")
    assert watched.gaps == 0


def test_a_hang_or_a_jump_ahead_counts_as_one_gap() -> None:
    watched = Watched()
    assert watched.clock.read(5000.0) == 1.0
    assert watched.gaps == 1
    assert not watched.alarms.rings("ring")
    assert watched.effects.timers["ring"] == 5001.0, "one of its two seconds was lived through"


def test_a_clock_set_back_takes_its_alarms_along() -> None:
    watched = Watched()
    watched.clock.read(100.5)
    assert watched.clock.read(40.0) == 0.5
    assert watched.effects.timers["ring"] == 41.5
    watched.clock.read(41.0)
    watched.clock.read(41.5)
    assert watched.alarms.rings("ring")


def test_an_alarm_that_rings_late_is_put_off_once() -> None:
    late: list[str] = []
    effects = RecordingEffects()
    alarms = Alarms(effects, 0.25, lambda: late.append("late"))
    clock = SteadyClock(1.0, lambda: None, alarms.rearm)
    alarms.follow(clock)
    clock.start(100.0)
    alarms.set("ring", 0.5)
    alarms.set("other", 0.4)
    clock.read(100.8)
    assert not alarms.rings("ring", judges=True), "what came meanwhile is read first"
    assert not alarms.rings("other", judges=True)
    assert late == ["late"], "one fault, however many alarms it delays"
    assert effects.timers["ring"] == pytest.approx(101.05)
    alarms.set("news", 0.1)
    clock.read(101.6)
    assert alarms.rings("news"), "it judges nobody"
    clock.read(101.7)
    assert alarms.rings("ring", judges=True), "once, or a slow node would never find out anything"
    alarms.set("ring", 0.5)
    clock.read(102.4)
    assert alarms.rings("ring", judges=True), "hardly late"


def test_alarms_can_be_cancelled_one_and_all() -> None:
    watched = Watched()
    watched.alarms.set("other", 1.0)
    watched.alarms.cancel("ring")
    watched.alarms.cancel("ring")
    assert list(watched.effects.timers) == ["other"]
    watched.alarms.cancel_all()
    assert watched.effects.timers == {}


def test_the_horizon_follows_my_clock_and_my_contacts_only() -> None:
    watched = Watched()
    horizon = Horizon(watched.clock)
    assert horizon.limit == 100_000 + CLOCK_ERROR
    watched.clock.read(50.0)
    assert horizon.limit == 100_000 + CLOCK_ERROR, "a clock set back takes nothing away"
    horizon.trust(1_700_000_000_000)  # my own clock stands at 1970
    assert horizon.limit == 1_700_000_000_000 + CLOCK_ERROR
    watched.clock.read(200.0)
    assert horizon.limit == 1_700_000_100_000 + CLOCK_ERROR, "and goes on from there"
    horizon.trust(5)
    assert horizon.limit == 1_700_000_100_000 + CLOCK_ERROR
    horizon.trust(MAX_INCARNATION)
    assert horizon.limit == MAX_INCARNATION
