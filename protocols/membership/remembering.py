"""The dead: remembered for a while, and tried now and then, since a partition may have healed."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from overlay.ids import NodeId
from protocols.membership.core import Core
from protocols.membership.messages import Ping
from protocols.membership.records import Record, State
from protocols.membership.watching import Watcher

KNOCK = "knock"
KNOCKERS = 4  # members that knock in each period, however many there are
BURST = 16  # of the dead tried at most at once after one of them answered: a partition healed
TOLD = 4  # members that try each of the dead in one burst of all: one must get through
BURST_PAUSE = 0.25  # of the knock period, between two bursts
STRAY_SEQUENCE = 0  # no probe has it: the answer to a knock brings news, not a verdict


class Remembrance(Watcher):
    """Knocks at the dead, a few per period; more eagerly once one of them answers."""

    def __init__(self, core: Core, healed: Callable[[float], None]) -> None:
        self._core = core
        self._healed = healed  # told when one of the dead is back
        self._dead: dict[NodeId, None] = {}  # of those who are gone: who left is not knocked at
        self._next_burst = 0.0

    def member_gone(self, record: Record, now: float) -> None:
        """Remember it, within bounds."""
        core = self._core
        gone = core.table.gone()
        while len(gone) > core.settings.max_dead:
            self._forget(next(iter(gone)))
        if record.state == State.DEAD and record.name in gone:
            self._dead[record.name] = None
        if gone and KNOCK not in core.alarms:
            core.alarms.set(KNOCK, self._pause())

    def _pause(self) -> float:
        """The larger the zone, the rarer each member knocks: one that hears an answer suffices."""
        core = self._core
        turns = max(1.0, len(core.table) / KNOCKERS)
        return core.settings.knock_period * turns * (0.5 + core.rng.random())

    def member_present(self, record: Record, now: float) -> None:
        """If it was dead for me, others may be back as well."""
        if self._dead.pop(record.name, 0) is None:
            self._healed(now)
            self.burst(now)

    def on_alarm(self, now: float) -> None:
        """Forget who is dead for too long, knock at one of the others."""
        core = self._core
        gone = core.table.gone()
        for name in list(gone):
            if now - gone[name] < core.settings.remember_dead:
                break
            self._forget(name)
        self._knock(1)
        if gone:
            core.alarms.set(KNOCK, self._pause())

    def burst(self, now: float) -> None:
        """Knock at many, at most every now and then; all members of this side do so."""
        if now >= self._next_burst and self._dead:
            self._next_burst = now + BURST_PAUSE * self._core.settings.knock_period
            share = ceil(TOLD * len(self._dead) / len(self._core.table))
            self._knock(min(BURST, share))

    def _forget(self, name: NodeId) -> None:
        self._core.table.forget(name)
        self._core.counts.forgotten += 1
        self._dead.pop(name, None)

    def _knock(self, count: int) -> None:
        core = self._core
        for name in core.rng.sample(list(self._dead), min(count, len(self._dead))):
            verdict = core.table.record(name)
            if verdict is not None:
                core.effects.send(name, Ping(STRAY_SEQUENCE, core.table.digest, (verdict,)))
