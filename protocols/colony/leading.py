"""The leader's side: who is in its colony, what they offer, and who is lazy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from overlay.ids import NodeId
from protocols.colony.attaching import CYCLE, MOVED, UNKNOWN
from protocols.colony.core import Core
from protocols.colony.events import IndividualLoggedIn, IndividualLoggedOut
from protocols.colony.messages import (
    MAX_DEPTH,
    Ancestry,
    Beat,
    LogIn,
    LogInRefused,
    LogOut,
    Offers,
    Welcome,
)
from protocols.colony.services import same_text
from protocols.colony.table import Child

SWEEP = "sweep"  # the next look for individuals that fell silent
BANNED = 1024  # lazy individuals that are remembered
LAZY = "lazy: too many refusals and timeouts"
NO_LEADER = "not a leader"


class Registry:
    """Registers individuals while this unit leads, and forgets who leaves, dies or is lazy."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.on_gone: Callable[[Child, float], None] = lambda child, now: None
        self.on_first: Callable[[], None] = lambda: None
        self.on_offers_grown: Callable[[], None] = lambda: None
        self._banned: dict[NodeId, float] = {}  # until when

    # -- leading --------------------------------------------------------------------------------

    def lead(self, now: float) -> None:
        """Take individuals from now on; those to come have as long as log-ins take."""
        core = self._core
        core.leads = True
        core.forming = now + min(2 * core.settings.login_within, core.settings.lease)

    def stop_leading(self, reason: str, now: float) -> None:
        """Send all individuals away, to find other leaders."""
        core = self._core
        others = [name for name in core.table.children if name != core.me]
        if others:
            core.effects.send(others, LogOut(reason))
        for name in others:
            self.forget(name, reason, now)
        core.leads = False

    def path_changed(self, now: float) -> None:
        """Everybody below hears the path to the root."""
        core = self._core
        for name, child in core.table.children.items():
            if name != core.me:
                core.effects.send(name, self._ancestry(0, child))

    def _ancestry(self, number: int, child: Child) -> Ancestry:
        core = self._core
        return Ancestry(number, self._path(), child.version, core.card().endpoints, core.above)

    def _path(self) -> tuple[NodeId, ...]:
        return self._core.path[: MAX_DEPTH - 1]

    # -- log and delog ----------------------------------------------------------------------------

    def on_log_in(self, src: NodeId, msg: LogIn, now: float) -> None:
        """Register a unit, or say why not."""
        core = self._core
        refusal, again = self._refusal(src, now)
        if refusal:
            core.counts.refused += 1
            core.effects.send(src, LogInRefused(msg.serial, refusal, again))
            return
        services = self._checked(msg.services)
        child = Child(src, msg.unit, msg.version, now)
        known = core.table.children.get(src)
        if known is not None:
            child.asked, child.accepted = known.asked, known.accepted
            self._broke_away(known, now)
        core.table.add(child, services)
        here = core.card().endpoints
        core.effects.send(src, Welcome(msg.serial, self._path(), child.version, here, core.above))
        if known is None:
            core.counts.logged_in += 1
            self.on_first()
            core.effects.emit(IndividualLoggedIn(src, msg.unit, len(child.services)))
        core.timers.hasten(SWEEP, now + core.settings.lease / 2)
        self.on_offers_grown()

    def _broke_away(self, child: Child, now: float) -> None:
        """A colony fell silent, or its leader restarted: its individuals may be here soon."""
        core = self._core
        if child.unit == "broker":
            core.unsettled = now + core.settings.lease
            core.table.remember(child, core.unsettled)
            core.timers.hasten(SWEEP, core.unsettled)

    def _refusal(self, src: NodeId, now: float) -> tuple[str, float]:
        core = self._core
        if not core.leads:
            return NO_LEADER, 0.0
        if src == core.me or src in core.path:
            way = " → ".join((core.me, *core.path[: core.path.index(src) + 1]))
            return f"{CYCLE}: {way}"[:256], 0.0
        if len(core.path) >= MAX_DEPTH - 1:
            return f"the tree is {MAX_DEPTH} levels deep", 0.0
        if (until := self._banned.get(src, 0.0)) > now:
            return LAZY, until - now
        full = len(core.table.children) - (core.me in core.table.children)
        if src not in core.table.children and full >= core.settings.max_individuals:
            return f"full: {core.settings.max_individuals} individuals", 0.0
        return "", 0.0

    def _checked(self, services: Sequence[str]) -> list[str]:
        """By the texts that this node uses; a bad one spoils the message."""
        most = self._core.settings.max_services
        self._core.counts.services_cut += max(0, len(services) - most)
        return [same_text(service) for service in islice(services, most)]

    def on_log_out(self, src: NodeId, msg: LogOut, now: float) -> None:
        """An individual left, or restarted and knows nothing of this leader yet."""
        child = self._core.table.children.get(src)
        if child is not None and msg.reason == UNKNOWN:
            self._broke_away(child, now)
        self.forget(src, msg.reason, now)

    def forget(self, name: NodeId, reason: str, now: float) -> None:
        """It is no individual of this colony any more."""
        core = self._core
        child = None if name == core.me else core.table.remove(name)
        if child is None:
            return
        core.counts.logged_out += 1
        core.effects.emit(IndividualLoggedOut(name, reason))
        if reason != MOVED:
            self.on_gone(child, now)

    # -- signs of life ----------------------------------------------------------------------------

    def on_beat(self, src: NodeId, msg: Beat, now: float) -> None:
        """Answer it."""
        core = self._core
        child = core.table.children.get(src)
        if child is None:
            core.counts.strangers += 1
            core.effects.send(src, LogOut(UNKNOWN if core.leads else NO_LEADER))
            return
        child.heard = now
        child.rtt = msg.rtt or child.rtt
        core.effects.send(src, self._ancestry(msg.number, child))

    def on_offers(self, src: NodeId, msg: Offers, now: float) -> None:
        """What a colony below offers now."""
        core = self._core
        child = core.table.children.get(src)
        if child is None:
            core.counts.strangers += 1
            core.effects.send(src, LogOut(UNKNOWN if core.leads else NO_LEADER))
            return
        if not msg.base:
            core.table.replace(child, self._checked(msg.added))
            child.version = msg.version
        elif msg.base == child.version:
            room = core.settings.max_services - len(child.services) + len(msg.removed)
            added = self._checked(msg.added)
            core.counts.services_cut += max(0, len(added) - room)
            core.table.change(child, added[:room], self._checked(msg.removed))
            child.version = msg.version
        core.effects.send(src, self._ancestry(0, child))
        if msg.added:
            self.on_offers_grown()

    def on_link_lost(self, peer: NodeId, now: float) -> None:
        """A hint: it has `probe` seconds for a sign of life."""
        core = self._core
        child = core.table.children.get(peer)
        if child is not None and peer != core.me:
            child.heard = min(child.heard, now - core.settings.lease + core.settings.probe)
            core.timers.hasten(SWEEP, now + 1.01 * core.settings.probe)

    def on_sweep_timer(self, now: float) -> None:
        """Forget who was silent for a lease."""
        core = self._core
        least = now - core.settings.lease
        silent = [
            name
            for name, child in core.table.children.items()
            if child.heard < least and name != core.me
        ]
        for name in silent:
            core.effects.send(name, LogOut(UNKNOWN))
            self._broke_away(core.table.children[name], now)
            self.forget(name, "silent", now)
        due = core.table.forget_lost(now)
        if any(name != core.me for name in core.table.children):
            later = now + core.settings.lease / 2
            due = later if due is None else min(due, later)
        if due is not None:
            core.timers.set(SWEEP, due)

    # -- laziness ---------------------------------------------------------------------------------

    def accepted(self, name: NodeId) -> None:
        """An individual found somebody, or serves itself."""
        child = self._core.table.children.get(name)
        if child is not None:
            child.accepted += 1
            child.silent = 0

    def refused(self, name: NodeId, now: float, *, timed_out: bool) -> None:
        """It did not. A colony that found nobody willing is not lazy; one that is silent is."""
        core = self._core
        child = core.table.children.get(name)
        if child is None or name == core.me or (child.unit == "broker" and not timed_out):
            return
        child.silent += 1
        if core.settings.lazy_after and child.silent >= core.settings.lazy_after:
            core.counts.lazy += 1
            if core.settings.lazy_ban:
                self._ban(name, now)
            core.effects.send(name, LogOut(LAZY))
            self.forget(name, LAZY, now)

    def expel(self, name: NodeId, now: float) -> None:
        """Delog an individual, by a person's word; it may come again after `lazy_ban`."""
        self._ban(name, now)
        self._core.effects.send(name, LogOut("expelled"))
        self.forget(name, "expelled", now)

    def _ban(self, name: NodeId, now: float) -> None:
        for one in [one for one, until in self._banned.items() if until <= now]:
            del self._banned[one]
        if len(self._banned) >= BANNED:
            del self._banned[next(iter(self._banned))]
        self._banned[name] = now + self._core.settings.lazy_ban
