"""The delegates of this node's zone, and whether this node is one of them."""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.membership.interface import ROLES, MembershipView
from protocols.zones.core import Core
from protocols.zones.election import AVAILABLE, Rank, elect, rank, serving
from protocols.zones.events import DelegateAppointed, DelegateDismissed
from protocols.zones.interface import DELEGATE

ELECTION = "election"  # look at the view again
APPOINT = "appoint"
DISMISS = "dismiss"
UNBAR = "unbar"


class Office:
    """Follows the view; takes office when elected for a while, leaves it when no longer."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._elected: list[Rank] = []
        self._not_before = 0.0
        self._reviewed = -1  # the version of the view at the last review
        self.delegates: tuple[NodeId, ...] = ()  # who serve, the most senior first
        self.serves = False  # whether this node does

    def start(self, now: float) -> None:
        """Begin to look; nobody serves before views had time to fill."""
        core = self._core
        assert core.base is not None
        if not core.settings.eligible:
            core.write(core.base, AVAILABLE, False, now)
        self._not_before = now + core.settings.settle
        self.review_soon(now)

    # -- what changed ---------------------------------------------------------------------------

    def joined(self, name: NodeId, now: float) -> None:
        """A newcomer rarely changes anything: who serves stays, and others are older."""
        core = self._core
        assert core.base is not None
        found = rank(core.base.view, name)
        if found is None:
            return
        if len(self._elected) < core.settings.delegates or found < self._elected[-1]:
            self.review_soon(now)

    def gone(self, name: NodeId, now: float) -> None:
        """One of the elected must be replaced."""
        if any(name == elected for *_, elected in self._elected):
            self.review_soon(now)

    def attributes_changed(self, name: NodeId, keys: tuple[str, ...], now: float) -> None:
        """Somebody took office, left it, or is no candidate any more."""
        if ROLES in keys or AVAILABLE in keys:
            self.review_soon(now)

    def review_soon(self, now: float) -> None:
        """Look at the view, in company of what else changes in a moment."""
        timers = self._core.timers
        if ELECTION not in timers:
            timers.set(ELECTION, now + self._core.settings.review_delay)

    def look_again(self, now: float) -> None:
        """Now and then: a life may change its birth, which no event tells."""
        base = self._core.base
        if base is not None and base.view.version != self._reviewed:
            self.review_soon(now)

    # -- elections ------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Elect, tell who serves, and see whether this node should."""
        core = self._core
        assert core.base is not None
        if core.base.stopped:
            self.resign(now)
            return
        view = core.base.view
        self._reviewed = view.version
        self._elected = elect(view, core.settings.delegates)
        chosen = any(name == core.me for *_, name in self._elected)
        if self.serves and DELEGATE not in view.roles(core.me):
            self._set_role(view, now)  # the application wrote other roles over it
        elif chosen and not self.serves:
            core.timers.cancel(DISMISS)
            if APPOINT not in core.timers:
                at = max(now + core.settings.appoint_after, self._not_before)
                core.timers.set(APPOINT, at)
        elif chosen:
            core.timers.cancel(DISMISS)
        else:
            core.timers.cancel(APPOINT)
            if self.serves and DISMISS not in core.timers:
                core.timers.set(DISMISS, now + core.settings.dismiss_after)
        self._tell(serving(self._elected))

    def take(self, now: float) -> None:
        """Still elected after a while: serve."""
        core = self._core
        assert core.base is not None
        self._elected = elect(core.base.view, core.settings.delegates)
        if core.base.stopped or self.serves:
            return
        if not any(name == core.me for *_, name in self._elected):
            return
        self.serves = True
        if not self._set_role(core.base.view, now):
            self.serves = False  # nobody would know; the next look at the view tries again
            return
        core.counts.appointed += 1
        self._tell(serving(self._elected))

    def resign(self, now: float) -> None:
        """Serve no more: others do, or this node is no member any more."""
        core = self._core
        assert core.base is not None
        core.timers.cancel(APPOINT)
        core.timers.cancel(DISMISS)
        if not self.serves:
            return
        self.serves = False
        core.counts.dismissed += 1
        if not core.base.stopped:
            self._set_role(core.base.view, now)
        self._tell(tuple(name for name in self.delegates if name != core.me))

    def bar(self, now: float) -> None:
        """The management zone refused this node: let others be candidates for a while."""
        core = self._core
        if core.base is None:
            return
        if not core.base.stopped:
            core.write(core.base, AVAILABLE, False, now)
            core.timers.set(UNBAR, now + core.settings.barred)
        self.resign(now)

    def unbar(self, now: float) -> None:
        """Be a candidate again."""
        core = self._core
        if core.base is None or core.base.stopped or not core.settings.eligible:
            return
        if AVAILABLE in core.base.view.attributes(core.me):
            core.base.remove_attribute(AVAILABLE, now)

    def _set_role(self, view: MembershipView, now: float) -> bool:
        """Add or remove the role among the others that the application set."""
        core = self._core
        assert core.base is not None
        roles = [role for role in view.roles(core.me) if role != DELEGATE]
        if self.serves:
            roles.append(DELEGATE)
        return core.write(core.base, ROLES, ",".join(roles), now)

    def _tell(self, delegates: tuple[NodeId, ...]) -> None:
        core = self._core
        if self.serves and core.me not in delegates:
            delegates = (*delegates, core.me)  # until it resigns
        elif not self.serves:
            delegates = tuple(name for name in delegates if name != core.me)
        before, self.delegates = self.delegates, delegates
        for name in before:
            if name not in delegates:
                core.effects.emit(DelegateDismissed(core.zone, name))
        for name in delegates:
            if name not in before:
                core.effects.emit(DelegateAppointed(core.zone, name))
