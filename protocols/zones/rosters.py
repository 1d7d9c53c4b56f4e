"""What a supervisor knows of its zones: their delegates announce it, the supervisor fetches it."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.zones.answers import roster_digest
from protocols.zones.core import Core
from protocols.zones.directory import Directory
from protocols.zones.interface import MemberEntry
from protocols.zones.messages import UNASKED, RosterDigest
from protocols.zones.questions import Questions
from protocols.zones.seeking import Seeker

ANNOUNCE = "announce"  # a delegate tells its supervisors the digest of its zone
CALL = "call"  # a supervisor calls the members of a zone without delegates
CALLED = 3  # members called at once


class Rosters:
    """Announces this node's zone to its supervisors, or keeps the rosters of supervised zones."""

    def __init__(
        self, core: Core, directory: Directory, questions: Questions, seeker: Seeker
    ) -> None:
        self._core = core
        self._directory = directory
        self._questions = questions
        self._seeker = seeker
        self._digests: dict[Scope, bytes] = {}  # of the rosters held
        self._announced = -1  # the version of the view that was
        self._own = RosterDigest("-", b"")
        self._told: tuple[NodeId, ...] = ()

    # -- a delegate -----------------------------------------------------------------------------

    def announce(self, now: float, *, anyway: bool = False) -> None:
        """Tell the supervisors of my zone, if something changed or it is time to."""
        core = self._core
        if core.base is None or core.management is None:
            return
        entry = self._directory.entry(core.zone)
        supervisors = entry.supervisors if entry is not None else ()
        before = self._own
        view = core.base.view
        if view.version != self._announced:
            self._announced = view.version
            lives = []
            for name in view.members():
                record = view.record(name)
                if record is not None:
                    lives.append((name, record.born))
            self._own = RosterDigest(core.zone, roster_digest(lives))
        if anyway or self._own != before:
            receivers = list(supervisors)
        else:
            receivers = [name for name in supervisors if name not in self._told]
        self._told = supervisors
        if receivers:
            core.effects.send(receivers, self._own)

    def on_announce_alarm(self, now: float) -> None:
        """Announce regularly: an announcement may be lost."""
        core = self._core
        self.announce(now, anyway=True)
        pause = core.settings.roster_period * (0.75 + core.rng.random() / 2)
        core.timers.set(ANNOUNCE, now + pause)

    # -- a supervisor ---------------------------------------------------------------------------

    def on_digest(self, src: NodeId, told: RosterDigest, now: float) -> None:
        """Fetch the roster if mine is another one."""
        core = self._core
        mine = self._is_mine(told.zone)
        if not mine or src not in self._directory.delegates(told.zone):
            core.counts.strangers += 1  # its view or mine lags: it tells again
            return
        if self._digests.get(told.zone) == told.digest or self._questions.is_fetching(told.zone):
            return

        def collected(members: tuple[MemberEntry, ...]) -> None:
            if self._is_mine(told.zone):
                core.counts.rosters_heard += 1
                self._questions.rosters[told.zone] = members
                lives = [(member.name, member.born) for member in members]
                self._digests[told.zone] = roster_digest(lives)

        self._questions.fetch(told.zone, src, collected, now)

    def _is_mine(self, zone: Scope) -> bool:
        entry = self._directory.entry(zone)
        return entry is not None and self._core.me in entry.supervisors

    def zones_changed(self, zones: list[Scope], now: float) -> None:
        """Forget what is not mine to know any more; look after who lost all delegates."""
        core = self._core
        for zone in zones:
            if not self._is_mine(zone):
                self._questions.rosters.pop(zone, None)
                self._digests.pop(zone, None)
        if core.base is None and CALL not in core.timers and self._orphans():
            core.timers.set(CALL, now + core.settings.seek_retry)
        if core.zone in zones:
            self.announce(now)

    def _orphans(self) -> list[Scope]:
        return [zone for zone in self._questions.rosters if not self._directory.delegates(zone)]

    def on_call_alarm(self, now: float) -> None:
        """Tell members of zones without delegates where the management zone is."""
        core = self._core
        orphans = self._orphans()
        contacts = self._seeker.answer(UNASKED)
        for zone in orphans:
            names = [member.name for member in self._questions.rosters[zone]]
            for name in core.rng.sample(names, min(CALLED, len(names))):
                core.effects.send(name, contacts)
        if orphans:
            core.timers.set(CALL, now + core.settings.seek_period)

    def left(self) -> None:
        """This node is not in the management zone any more."""
        self._questions.rosters.clear()
        self._digests.clear()
        self._core.timers.cancel(ANNOUNCE)
        self._core.timers.cancel(CALL)
        self._told = ()
