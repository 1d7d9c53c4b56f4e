"""Whom a message is for: everybody, or the members whose attributes show an interest."""

from __future__ import annotations

from bisect import bisect_left

from overlay.ids import NodeId, Vid, vid_of
from protocols.membership.interface import MembershipView
from protocols.routing.arcs import Arc, members_in
from protocols.routing.interface import Interest
from protocols.topology.interface import interests

REMEMBERED_INTERESTS = 32


class Audience:
    """Who is interested in what, by this node's view; counted once per version of the view."""

    def __init__(self, members: MembershipView) -> None:
        self._members = members
        self._version = -1
        self._places: dict[Interest, list[Vid]] = {}  # of interested members, ascending

    def includes(self, member: NodeId, interest: Interest | None) -> bool:
        """Whether a message for that interest is for this member."""
        if interest is None:
            return True
        return interest.word in interests(self._members.attributes(member), interest.key)

    def anybody(self, arc: Arc, interest: Interest | None) -> bool:
        """Whether a message for that interest may be for somebody in that arc."""
        if interest is None:
            return True
        places = self._interested(interest)
        return bool(places) and arc.holds(places[bisect_left(places, arc.start) % len(places)])

    def count(self, arc: Arc, interest: Interest | None) -> int:
        """For how many members in that arc it is."""
        inside = members_in(arc, self._members.ring())
        return sum(1 for member in inside if self.includes(member, interest))

    def _interested(self, interest: Interest) -> list[Vid]:
        if self._version != self._members.version:
            self._version = self._members.version
            self._places.clear()
        places = self._places.get(interest)
        if places is None:
            if len(self._places) >= REMEMBERED_INTERESTS:
                del self._places[next(iter(self._places))]
            ring = self._members.ring()
            places = [vid_of(name) for name in ring if self.includes(name, interest)]
            self._places[interest] = places
        return places
