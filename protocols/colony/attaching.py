"""The individual's side: whose colony this unit is in, and how it finds another leader."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import ContactLearned
from protocols.colony.core import Core
from protocols.colony.events import LeaderFound, LeaderLost, LeaderRefused, LeaderWanted
from protocols.colony.messages import (
    Ancestry,
    Beat,
    LogIn,
    LogInRefused,
    LogOut,
    Offers,
    Unit,
    Welcome,
)

BEAT = "beat"
LOGIN = "login"  # the answer to a LogIn is overdue, or a pause is over
LOST = "lost"  # nothing was heard of the leader
UNKNOWN = "unknown here"  # a leader's word to who is not in its table: log in again
MOST_OTHERS = 32  # leaders to turn to; those told last are kept
LOGIN_TRIES = 3  # within `login_within`: one may be lost
MOVED = "moved"  # to another leader: what it was asked it still answers
CYCLE = "that would close a cycle of leaders"


class Attachment:
    """Logs in, gives signs of life, notices a leader's end, and looks for the next one."""

    def __init__(self, core: Core, path_changed: Callable[[float], None]) -> None:
        self._core = core
        self._path_changed = path_changed
        self.on_lost: Callable[[NodeId, float], None] = lambda leader, now: None
        self.on_found: tuple[Callable[[float], None], ...] = ()
        self.home: NodeId = ""  # the leader that this unit was told to have
        self.others: dict[NodeId, None] = {}  # more that it was told of
        self._serial = 0  # of the LogIn under way
        self._tries = 0
        self._queue: list[NodeId] = []  # whom it asks next
        self._pause = 0.0
        self._tried: dict[NodeId, None] = {}
        self._said: dict[NodeId, str] = {}  # refusals that were told
        self._ancestors: tuple[NodeId, ...] = ()  # of the leader that was lost
        self._grandparent: tuple[str, ...] = ()  # where it is reached
        self._heard = 0.0
        self._number = 0  # of the last Beat
        self._beat_at = 0.0
        self._rtt = 0.0
        self._home_at = 0.0
        self._known = 0  # the version of its offers that the leader has

    # -- commands -------------------------------------------------------------------------------

    def follow(self, leader: NodeId, now: float) -> None:
        """Have that leader from now on; empty: none, as a root or a split-off colony."""
        core = self._core
        if leader == core.me:
            raise LocalProtocolError(f"{leader} cannot be its own leader: {CYCLE}")
        self.home = leader
        self._said.clear()
        if not leader:
            self.leave("split off", now)
            self._stop_seeking()
        elif core.leader != leader and self._core.pending != leader:
            self._seek((leader,), now)

    def learn(self, leaders: Iterable[NodeId], now: float) -> None:
        """Turn to these, too, when no other leader is left."""
        for leader in leaders:
            if leader != self._core.me:
                self.others.pop(leader, None)
                self.others[leader] = None
                if len(self.others) > MOST_OTHERS:
                    del self.others[next(iter(self.others))]
        if self.is_seeking and not self._core.pending:
            self._seek(self._candidates(), now)

    @property
    def is_told(self) -> bool:
        """Whether the leader has all that this colony offers."""
        table = self._core.table
        return bool(self._core.leader) and not table.changed and self._known == table.version

    @property
    def is_seeking(self) -> bool:
        """Whether it has no leader and wants one."""
        return not self._core.leader and (bool(self._core.pending) or LOGIN in self._core.timers)

    def leave(self, reason: str, now: float) -> None:
        """Delog, if there is a leader."""
        leader = self._core.leader
        if leader:
            self._core.effects.send(leader, LogOut(reason))
            self._forget_leader(reason, now)

    def come_again(self, reason: str, now: float) -> None:
        """This unit is of another kind now, which its leader has to know."""
        leader = self._core.leader
        if leader:
            self._core.effects.send(leader, LogOut(reason))
            self._forget_leader(reason, now)
            self._seek((leader,), now)
        elif self._core.pending:
            self._seek((self._core.pending, *self._queue), now)

    # -- logging in -----------------------------------------------------------------------------

    def _candidates(self) -> tuple[NodeId, ...]:
        """Everybody to turn to: those above the lost leader, the told one, the others."""
        known = dict.fromkeys((*self._ancestors, *filter(None, (self.home,)), *self.others))
        return tuple(name for name in known if name != self._core.me)

    def _seek(self, leaders: Iterable[NodeId], now: float) -> None:
        self._queue = list(leaders)
        self._tried.clear()
        self._pause = self._core.settings.retry
        self._ask_next(now)

    def _ask_next(self, now: float) -> None:
        core = self._core
        self._core.pending = ""
        self.tell_changes(now)
        if not self._queue:
            if core.leader:
                core.timers.cancel(LOGIN)
                return
            core.unsettled = now + core.settings.lease  # while it seeks, one may turn up
            core.effects.emit(LeaderWanted(tuple(self._tried)))
            core.timers.set(LOGIN, now + self._pause * (0.75 + 0.5 * core.rng.random()))
            self._pause = min(2 * self._pause, core.settings.retry_most)
            return
        self._core.pending = self._queue.pop(0)
        self._tried[self._core.pending] = None
        self._serial = core.next_serial()
        self._tries = 0
        self._knock(now)

    def _knock(self, now: float) -> None:
        core = self._core
        unit: Unit = "broker" if core.leads else "computer"
        msg = LogIn(self._serial, unit, core.table.version, core.table.union)
        core.effects.send(self._core.pending, msg)
        self._tries += 1
        core.timers.set(LOGIN, now + core.settings.login_within / LOGIN_TRIES)

    def _stop_seeking(self) -> None:
        self._core.pending = ""
        self._queue.clear()
        self._ancestors = ()
        self._core.timers.cancel(LOGIN)

    def on_login_timer(self, now: float) -> None:
        """Nobody answered, or a pause is over."""
        if self._core.pending and self._tries < LOGIN_TRIES:
            self._knock(now)
        elif self._core.pending or self._queue:
            self._ask_next(now)
        elif not self._core.leader:
            self._queue = list(self._candidates())
            self._tried.clear()
            self._ask_next(now)

    def on_welcome(self, src: NodeId, msg: Welcome, now: float) -> None:
        """In."""
        core = self._core
        if src != self._core.pending or msg.serial != self._serial:
            if src != core.leader:
                core.effects.send(src, LogOut("not wanted any more"))
            return
        if core.me in msg.path or src == core.me:
            self._told(src, CYCLE)
            core.effects.send(src, LogOut(CYCLE))
            self._ask_next(now)
            return
        old = core.leader
        if old and old != src:
            core.effects.send(old, LogOut(MOVED))
            self._forget_leader(MOVED, now)
        self._stop_seeking()
        self._said.clear()
        core.leader = src
        core.path = (src, *msg.path)
        core.counts.leaders += 1
        self._heard = now
        self._rtt = 0.0
        self._number = 0
        self._home_at = now + core.settings.home_every
        core.tracer.leader(src, "found", len(core.path))
        core.effects.emit(LeaderFound(src, core.path))
        self._learn_places(msg)
        self._path_changed(now)
        self._reconcile(msg.known)
        self._beat(now)
        for step in self.on_found:
            core.inside(step)

    def on_refused(self, src: NodeId, msg: LogInRefused, now: float) -> None:
        """Try the next."""
        if src == self._core.pending and msg.serial == self._serial:
            self._told(src, msg.reason)
            self._ask_next(now)
            if self._core.leader or self._queue or self._core.pending:
                return
            if msg.again > self._pause:
                self._core.timers.set(LOGIN, now + msg.again)

    def _told(self, leader: NodeId, reason: str) -> None:
        """Tell each reason once, as it may be tried again and again."""
        if self._said.get(leader) != reason:
            self._said[leader] = reason
            self._core.effects.emit(LeaderRefused(leader, reason))

    # -- staying --------------------------------------------------------------------------------

    def on_beat_timer(self, now: float) -> None:
        """Give a sign of life, or find that the leader gives none."""
        core = self._core
        if not core.leader:
            return
        if now - self._heard > core.settings.lease:
            self.lost("silent", now)
            return
        self._beat(now)
        away = self.home and self.home != core.leader
        if away and not self._core.pending and now >= self._home_at:
            self._home_at = now + core.settings.home_every
            self._queue = [self.home]
            self._ask_next(now)

    def _beat(self, now: float) -> None:
        core = self._core
        self._number = core.next_serial()
        self._beat_at = now
        core.effects.send(core.leader, Beat(self._number, core.table.version, self._rtt))
        told = self._known == core.table.version
        pause = core.settings.beat if told else min(core.settings.resend, core.settings.beat)
        pause *= 0.9 + 0.2 * core.rng.random()  # not all in step
        core.timers.set(BEAT, now + pause)

    def on_link_lost(self, peer: NodeId, now: float) -> None:
        """A hint: ask for a sign of life."""
        if peer == self._core.leader and LOST not in self._core.timers:
            self._beat(now)
            self._core.timers.set(LOST, now + self._core.settings.probe)

    def on_link_up(self, peer: NodeId, now: float) -> None:
        """The leader may have restarted, and know nothing of this unit."""
        if peer == self._core.leader:
            self._beat(now)

    def on_lost_timer(self, now: float) -> None:
        """No sign of life after a lost link."""
        if self._core.leader and now - self._heard > 0.9 * self._core.settings.probe:
            self.lost("link lost", now)

    def on_ancestry(self, src: NodeId, msg: Ancestry, now: float) -> None:
        """A sign of life, the path, and what the leader knows of this unit."""
        core = self._core
        if src != core.leader:
            core.counts.strangers += 1
            core.effects.send(src, LogOut("not wanted any more"))
            return
        self._heard = now
        core.timers.cancel(LOST)
        if msg.number and msg.number == self._number:
            self._rtt = max(0.0, now - self._beat_at)
        path = (src, *msg.path)
        if core.me in path:
            path = path[: path.index(core.me)]
            if core.me == min(core.me, *path):
                self._break_cycle(now)
                return
        moved = self._learn_places(msg)
        if path != core.path or moved:
            core.path = path
            self._path_changed(now)
        self._reconcile(msg.known)

    def _learn_places(self, msg: Welcome | Ancestry) -> bool:
        """Where the leader and the one above it are reached; whether the leader has moved."""
        core = self._core
        if msg.above and msg.path and msg.above != self._grandparent:
            self._grandparent = msg.above
            core.effects.emit(ContactLearned(msg.path[0], msg.above))
        moved = bool(msg.here) and msg.here != core.above
        if moved:
            core.above = msg.here
        return moved

    def _break_cycle(self, now: float) -> None:
        """Several closed it at one moment; the one with the least name opens it again.

        All others hand the path on, so that it gets to that one.
        """
        self._core.counts.cycles += 1
        self._told(self._core.leader, CYCLE)
        self.leave(CYCLE, now)

    def on_log_out(self, src: NodeId, msg: LogOut, now: float) -> None:
        """The leader does not know this unit (any more)."""
        if src != self._core.leader:
            return
        if msg.reason == UNKNOWN:
            self._forget_leader(msg.reason, now)
            self._seek((src, *self._candidates()), now)
        else:
            self.lost(msg.reason, now)

    def lost(self, reason: str, now: float) -> None:
        """Look for another leader: the grandparent first (§2: topology is dynamic)."""
        core = self._core
        self._ancestors = core.path[1:]
        self._forget_leader(reason, now)
        self._seek(self._candidates(), now)

    def _forget_leader(self, reason: str, now: float) -> None:
        core = self._core
        leader = core.leader
        core.leader = ""
        core.path = ()
        core.above = ()
        core.counts.leaders_lost += 1
        core.unsettled = now + core.settings.lease
        core.timers.cancel(BEAT)
        core.timers.cancel(LOST)
        core.tracer.leader(leader, reason, 0)
        core.effects.emit(LeaderLost(leader, reason))
        self._path_changed(now)
        self.on_lost(leader, now)

    # -- what this colony offers ------------------------------------------------------------------

    def tell_changes(self, now: float) -> None:
        """The union changed: the leader hears what."""
        core = self._core
        if not core.table.changed:
            return
        base = core.table.version
        added, removed = core.table.take_changes()
        if core.leader:
            core.effects.send(core.leader, Offers(core.table.version, base, added, removed))
            core.timers.hasten(BEAT, now + core.settings.resend)

    def _reconcile(self, known: int) -> None:
        """Tell all, if the leader has another version."""
        core = self._core
        self._known = known
        if known != core.table.version and not core.table.changed:
            core.effects.send(core.leader, Offers(core.table.version, 0, core.table.union))
