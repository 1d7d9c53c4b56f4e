"""What all parts of the zones machine share: memberships, settings, time and counts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.protocol import Effects, Scope
from overlay.timetable import Timetable
from protocols.zones.config import ZonesSettings
from protocols.zones.counts import ZonesCounts
from protocols.zones.interface import ZoneMembership

MayJoin = Callable[[NodeId, Scope], bool]
MayBe = Callable[[NodeId, str], bool]


class Core:
    """One node's place in the overlay: a base zone, the management zone, or both."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: ZonesSettings,
        base: ZoneMembership | None,
        may_join: MayJoin,
        may_be: MayBe,
    ) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.base = base
        self.management: ZoneMembership | None = None  # while this node is in that zone
        self.may_join = may_join
        self.may_be = may_be
        self.timers = Timetable(effects)
        self.counts = ZonesCounts()
        self.stopped = True
        # A random start, so that a reply to an earlier life of this node matches nothing.
        self._next_id = 1 + rng.getrandbits(48)

    @property
    def zone(self) -> Scope:
        """This node's base zone; empty on a supervisor."""
        return "" if self.base is None else self.base.view.zone

    def is_fellow(self, name: NodeId) -> bool:
        """Whether that node is a member of this node's base zone, in this view."""
        return self.base is not None and name in self.base.view

    def is_manager(self, name: NodeId) -> bool:
        """Whether that node is in the management zone, in this view."""
        return self.management is not None and name in self.management.view

    def write(
        self, membership: ZoneMembership, key: str, value: str | float | bool, now: float
    ) -> bool:
        """Set an attribute; false when the application's own leave no room for it."""
        try:
            membership.set_attribute(key, value, now)
        except LocalProtocolError:
            self.counts.attributes_refused += 1
            return False
        return True

    def next_id(self) -> int:
        """A number for one request."""
        self._next_id += 1
        return self._next_id
