"""Entering a zone, and letting others in."""

from __future__ import annotations

from collections.abc import Iterable

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.membership.core import Core, Source
from protocols.membership.events import ZoneEntered
from protocols.membership.horizon import CLOCK_ERROR
from protocols.membership.messages import Join, JoinRefused, JoinReply
from protocols.membership.pieces import cut
from protocols.membership.probing import Prober
from protocols.membership.reconciling import Reconciler
from protocols.membership.records import MAX_INCARNATION, Record, State

JOIN = "join"
MAX_CONTACTS = 256
MAX_ADMISSIONS = 64  # newcomers at once whose name is being verified


class Contact:
    """Somebody who is asked to let me in."""

    __slots__ = ("pieces", "tries")

    def __init__(self, tries: int) -> None:
        self.pieces: set[int] = set()  # of its view, that came
        self.tries = tries  # that are left; negative: for ever


class Joiner:
    """Asks every contact at the same time until each answered; the first answer suffices."""

    def __init__(self, core: Core, reconciler: Reconciler) -> None:
        self._core = core
        self._reconciler = reconciler
        self._contacts: dict[NodeId, Contact] = {}  # who did not answer with all yet
        self._pause = core.settings.join_retry
        self.entered = False

    def add(self, contacts: Iterable[NodeId], tries: int = -1) -> None:
        """Ask these too, now, and again until they answer or `tries` are used up."""
        fresh = [
            name for name in dict.fromkeys(contacts)
            if name != self._core.me and name not in self._contacts
        ][: MAX_CONTACTS - len(self._contacts)]  # fmt: skip
        for name in fresh:
            self._contacts[name] = Contact(tries)
        if fresh and not self._core.silent:
            self._ask(fresh[: self._core.settings.join_parallel])
            self._pause = self._core.settings.join_retry
            self._core.alarms.set(JOIN, self._pause)

    def start(self, now: float) -> None:
        """Ask all contacts that were named before the start."""
        if self._contacts:
            self.on_alarm(now)

    def on_alarm(self, now: float) -> None:
        """Ask those who kept silent again, a random few of them at once."""
        core = self._core
        self._contacts = {
            name: contact
            for name, contact in self._contacts.items()
            # Whoever is a member of my zone by now need not let me in again.
            if contact.tries and not (self.entered and name in core.table)
        }
        silent = list(self._contacts)
        if not silent:
            return
        self._ask(core.rng.sample(silent, min(len(silent), core.settings.join_parallel)))
        core.alarms.set(JOIN, self._pause * (0.75 + core.rng.random() / 2))
        self._pause = min(2 * self._pause, core.settings.join_retry_max)

    def _ask(self, contacts: list[NodeId]) -> None:
        core = self._core
        mine = core.myself
        for name in contacts:
            self._contacts[name].tries -= 1
        attributes = tuple(core.table.attribute_set(core.me))
        core.effects.send(
            contacts, Join(mine.life, mine.born, mine.incarnation, mine.endpoints, attributes)
        )

    def on_reply(self, src: NodeId, reply: JoinReply, now: float) -> None:
        """Take one piece of a contact's view; with the last one I am a member."""
        core = self._core
        contact = self._contacts.get(src)
        if reply.life != core.myself.life or contact is None:
            return  # meant for a namesake, or not asked for
        if reply.piece >= reply.pieces or reply.pieces > core.settings.max_members:
            raise RemoteProtocolError("member-list-too-long", f"{reply.pieces} pieces")
        if reply.floor >= core.myself.incarnation:
            if reply.floor >= MAX_INCARNATION:  # nobody could ever refute above it
                raise RemoteProtocolError("far-future-incarnation", f"floor {reply.floor}")
            core.raise_floor(reply.floor, now)
            self._ask([src])
        contact.pieces.add(reply.piece)
        if len(contact.pieces) == reply.pieces:
            del self._contacts[src]
            if not self._contacts:
                core.alarms.cancel(JOIN)
            if not self.entered:
                self.entered = True
                core.emit(ZoneEntered(core.zone, src))
            self._reconciler.hasten(now)
        core.learn(src, reply.news, reply.attributes, now, Source.WELCOME)

    def on_refused(self, src: NodeId, refusal: JoinRefused, now: float) -> None:
        """The name is taken, or the zone is full or closed to me."""
        if refusal.life == self._core.myself.life and src in self._contacts:
            self._core.yield_name(refusal.reason)


class Doorkeeper:
    """Lets newcomers in, after a look whether their name is free."""

    def __init__(self, core: Core, prober: Prober) -> None:
        self._core = core
        self._prober = prober
        self._admissions: dict[NodeId, Join] = {}

    def on_join(self, src: NodeId, join: Join, now: float) -> None:
        """Admit, refuse, or first find out whether the holder of that name still lives."""
        core = self._core
        if src == core.me:
            core.effects.send(src, JoinRefused(join.life, self._taken(src)))
            return
        if not core.may_join(src, core.zone):
            self._refuse(src, join, f"your certificate does not allow zone {core.zone!r}")
            raise RemoteProtocolError("zone-not-allowed", f"{src} in zone {core.zone!r}")
        known = core.table.record(src)
        if known is None and len(core.table) >= core.settings.max_members:
            self._refuse(src, join, f"zone {core.zone!r} is full: join another one")
            raise RemoteProtocolError("too-many-members", f"{src} in zone {core.zone!r}")
        if known is None or not known.present or known.life == join.life:
            self._admit(src, join, now)
        elif len(self._admissions) < MAX_ADMISSIONS and src not in self._admissions:

            def decide(answered: bool, later: float) -> None:
                del self._admissions[src]
                if answered:
                    self._refuse(src, join, self._taken(src))
                else:
                    self._admit(src, join, later)

            if self._prober.confront(src, known.life, decide, now):
                self._admissions[src] = join

    def _taken(self, name: NodeId) -> str:
        return f"zone {self._core.zone!r} has a member called {name!r}: choose another name"

    def _refuse(self, src: NodeId, join: Join, reason: str) -> None:
        self._core.effects.send(src, JoinRefused(join.life, reason))

    def _admit(self, src: NodeId, join: Join, now: float) -> None:
        core = self._core
        known = core.table.record(src)
        if join.incarnation > core.horizon.limit:
            days = round((join.incarnation - core.horizon.limit) / CLOCK_ERROR) + 1
            self._refuse(src, join, f"your clock is {days} days ahead of this zone's: set it")
            raise RemoteProtocolError("far-future-incarnation", f"{src} joins {core.zone!r}")
        floor = known.incarnation if known is not None and known.life != join.life else 0
        if floor < join.incarnation:  # otherwise it asks again, above the floor that it is told
            newcomer = Record(
                src, join.incarnation, State.ALIVE, join.life, join.born, join.endpoints
            )
            core.learn(src, (newcomer,), join.attributes, now)
        everybody = list(cut(core.table, core.table.present(), core.settings))
        for piece, (news, attributes) in enumerate(everybody):
            core.effects.send(
                src, JoinReply(join.life, piece, len(everybody), floor, news, attributes)
            )
