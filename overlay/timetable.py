"""The timers of one machine, which move along when its clock is set back."""

from __future__ import annotations

from collections.abc import Hashable

from overlay.protocol import Effects


class Timetable:
    """Remembers what is due when; a clock set back must not put everything off."""

    __slots__ = ("_due", "_effects", "_latest")

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._due: dict[Hashable, float] = {}
        self._latest = 0.0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._due

    def notice(self, now: float) -> None:
        """Take the node's clock."""
        if now < self._latest:
            back = self._latest - now
            for key, due in list(self._due.items()):
                self.set(key, due - back)
        self._latest = now

    def set(self, key: Hashable, at: float) -> None:
        """Set or replace one."""
        self._due[key] = at
        self._effects.set_timer(key, at)

    def hasten(self, key: Hashable, at: float) -> None:
        """Set it, unless it is due earlier anyway."""
        if at < self._due.get(key, at + 1.0):
            self.set(key, at)

    def cancel(self, key: Hashable) -> None:
        """Forget it; harmless when it is not set."""
        if self._due.pop(key, None) is not None:
            self._effects.cancel_timer(key)

    def rings(self, key: Hashable) -> bool:
        """Whether a timer that fired is one of ours; it is then no longer set."""
        return self._due.pop(key, None) is not None

    def cancel_all(self) -> None:
        """Forget everything."""
        for key in list(self._due):
            self.cancel(key)
