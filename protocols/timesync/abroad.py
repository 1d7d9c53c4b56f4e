"""One time for all zones: each follows those that come before it, in an order known to all.

The zone with more members leads, by powers of two, so that who comes or goes seldom changes the
order; of equal ones the name decides. A zone that begins is small, and so moves nobody. Delegates
ask delegates of zones that lead theirs: only they have their addresses. Each zone takes its time
from the one above it in a tree, which serves three, so that nobody serves many, however many zones
there are. What delegates tell of it is followed by the first committee of their zone, and so by
all who follow that one.
"""

from __future__ import annotations

from overlay.ids import NodeId
from protocols.zones.interface import ZoneDirectory, ZoneEntry

LEADERS = 3  # delegates asked: two of one zone, and one of another, which has the same time
BELOW = 3  # zones that one zone serves


def above(place: int) -> list[int]:
    """Whom the zone at that place follows: those above it in the tree, then others before it."""
    chain = []
    at = place
    while at > 0:
        at = (at - 1) // BELOW
        chain.append(at)
    return [*chain, *(one for one in reversed(range(place)) if one not in chain)]


def order_of(zone: ZoneEntry) -> tuple[int, str]:
    """The lower leads."""
    return (-zone.size.bit_length(), zone.name)


class Abroad:
    """What one node knows of other zones; without a directory nothing."""

    def __init__(self, me: NodeId, zones: ZoneDirectory | None) -> None:
        self._me = me
        self._zones = zones

    def leaders(self) -> list[NodeId]:
        """Delegates of zones that lead this node's, the zone above it first.

        Only for who is in the management zone; a supervisor, which is in no base zone, comes after
        all of them.
        """
        zones = self._zones
        if zones is None or zones.management is None:
            return []
        ordered = sorted(zones.zones(), key=order_of)
        names = [zone.name for zone in ordered]
        place = len(ordered)
        if zones.zone:
            if zones.zone not in names:
                return []  # where it stands is not known yet
            place = names.index(zones.zone)
        asked = [name for index in above(place) for name in ordered[index].delegates]
        return [name for name in asked if name != self._me][:LEADERS]

    def relays(self) -> list[NodeId]:
        """The delegates of this node's own zone, unless it is one itself."""
        zones = self._zones
        if zones is None or zones.is_delegate:
            return []
        return list(zones.delegates)
