"""Who is suspected, since when, and who must verify it."""

from __future__ import annotations

from collections.abc import Hashable

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from protocols.membership.core import Core
from protocols.membership.probing import Prober
from protocols.membership.records import Record, State
from protocols.membership.suspicion import suspicion_timeout
from protocols.membership.watching import Watcher

SUSPECT = "suspect"  # the alarm ("suspect", name): a suspect had its time
RIPE = 0.5  # of the shortest suspicion: so much may news of it be late against its verdict
SECOND_HAND = 2.0  # probe periods that those who only heard of a suspicion wait for its accusers


class Suspects(Watcher):
    """Runs one timeout for each suspect; more accusers shorten it."""

    def __init__(self, core: Core, prober: Prober) -> None:
        self._core = core
        self._prober = prober
        core.is_ripe = self.is_ripe
        self._since: dict[NodeId, tuple[int, float]] = {}  # incarnation, and when it was accused

    def __len__(self) -> int:
        return len(self._since)

    def check(self) -> None:
        """There are never more suspects than members."""
        if len(self._since) >= max(1, len(self._core.table)):
            raise InvariantViolation(f"{self._core.me}: suspects more than all others")

    def audit(self) -> None:
        """Every suspect has an alarm that ends the suspicion, and nobody else has."""
        core = self._core
        suspects = [record.name for record in core.table.present() if record.state == State.SUSPECT]
        if sorted(suspects) != sorted(self._since):
            raise InvariantViolation(f"{core.me}: its suspects are not those in its view")
        if not all((SUSPECT, name) in core.alarms for name in suspects):
            raise InvariantViolation(f"{core.me}: a suspicion would never end")

    def member_suspected(self, record: Record, now: float) -> None:
        """Start or shorten its timeout; verify it, if I am near it on the ring."""
        core = self._core
        incarnation, since = self._since.get(record.name, (-1, now))
        first = incarnation != record.incarnation
        if first:
            since = now
            self._since[record.name] = (record.incarnation, now)
        timeout = suspicion_timeout(
            core.settings, len(core.table), len(record.accusers), record.abrupt
        )
        timeout *= core.health.factor
        if core.me not in record.accusers:
            # A refutation reaches the accusers first: the verdict is theirs, unless they die too.
            timeout += SECOND_HAND * core.settings.probe_period
        core.alarms.set((SUSPECT, record.name), max(0.0, since + timeout - now))
        if first and core.me not in record.accusers and self._is_witness(record.name):
            self._prober.witness(record.name, now)

    def is_ripe(self, known: Record, now: float) -> bool:
        """Whether it is suspected for so long that others may well have given it up."""
        incarnation, since = self._since.get(known.name, (-1, now))
        settings = self._core.settings
        shortest = suspicion_timeout(
            settings, len(self._core.table), settings.confirmations + 1, known.abrupt
        )
        return incarnation == known.incarnation and now - since >= RIPE * shortest

    def _is_witness(self, suspect: NodeId) -> bool:
        """The nearest members before it verify: chosen without a vote, since views agree."""
        core = self._core
        return core.me in core.table.ring().predecessors(suspect, core.settings.witnesses)

    def member_cleared(self, record: Record, now: float) -> None:
        """It refuted."""
        self._drop(record.name)

    def member_gone(self, record: Record, now: float) -> None:
        """It is dead or left."""
        self._drop(record.name)

    def _drop(self, name: NodeId) -> None:
        if self._since.pop(name, None) is not None:
            self._core.alarms.cancel((SUSPECT, name))

    def on_alarm(self, name: Hashable, now: float) -> None:
        """Nobody refuted in time."""
        assert isinstance(name, str)
        self._since.pop(name, None)
        self._core.condemn(name, now)
