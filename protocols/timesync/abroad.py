"""One time for all zones: each follows those that come before it, in an order known to all.

The zone with more members leads, by powers of two, so that who comes or goes seldom changes the
order; of equal ones the name decides. A zone that begins is small, and so moves nobody. Delegates
ask delegates of zones that lead theirs: only they have their addresses. What they tell of it is
followed by the first committee of their zone, and so by all who follow that one.
"""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.zones.interface import ZoneDirectory, ZoneEntry

LEADERS = 3  # delegates asked: two of one zone, and one of the next, which has the same time


def order_of(zone: ZoneEntry) -> tuple[int, str]:
    """The lower leads."""
    return (-zone.size.bit_length(), zone.name)


class Abroad:
    """What one node knows of other zones; without a directory nothing."""

    def __init__(self, me: NodeId, zones: ZoneDirectory | None) -> None:
        self._me = me
        self._zones = zones

    def leaders(self) -> list[NodeId]:
        """Delegates of zones that lead this node's, the first zone's first.

        Only for who is in the management zone; a supervisor, which is in no base zone, is led by
        all of them.
        """
        zones = self._zones
        if zones is None or zones.management is None:
            return []
        ordered = sorted(zones.zones(), key=order_of)
        names = [zone.name for zone in ordered]
        if zones.zone:
            if zones.zone not in names:
                return []  # where it stands is not known yet
            ordered = ordered[: names.index(zones.zone)]
        asked = [name for zone in ordered for name in zone.delegates]
        return [name for name in asked if name != self._me][:LEADERS]

    def relays(self) -> list[NodeId]:
        """The delegates of this node's own zone, unless it is one itself."""
        zones = self._zones
        if zones is None or zones.is_delegate:
            return []
        return list(zones.delegates)
