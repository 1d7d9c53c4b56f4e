"""One shard on one node: what it promised and accepted, its records, and whether it leads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overlay.ids import NodeId
from protocols.dht.groups import Group, place_of, version_of
from protocols.dht.shelf import Shelf

if TYPE_CHECKING:
    from protocols.dht.electing import Bid
    from protocols.dht.leading import Reign


class Shard:
    """The acceptor's state, and beside it what this node does with it as a leader."""

    __slots__ = (
        "bid",
        "floor",
        "group",
        "id",
        "idle_since",
        "next_ballot",
        "next_group",
        "promised",
        "reign",
        "seated",
        "shelf",
    )

    def __init__(self, number: int, group: Group, *, seated: bool, now: float) -> None:
        self.id = number
        self.group = group
        self.seated = seated  # whether this life of this node is a member of the group
        self.promised = 0
        self.next_ballot = 0  # under which `next_group` was accepted here
        self.next_group: Group | None = None
        self.shelf = Shelf()
        self.floor = (0, 0)  # writes up to here were compared: what is not kept was removed
        self.reign: Reign | None = None
        self.bid: Bid | None = None
        self.idle_since = now  # when somebody was last heard to lead it, or to want to

    @property
    def leader(self) -> NodeId | None:
        """Who holds the ballot that was promised, if it is one of this group."""
        if version_of(self.promised) != self.group.version:
            return None
        return self.group.members[place_of(self.promised)].name

    @property
    def sealed(self) -> bool:
        """Whether the holder of the ballot may have let another group begin."""
        return self.next_group is not None and self.next_ballot == self.promised

    def owns(self, name: NodeId, ballot: int) -> bool:
        """Whether that ballot is one of this group, and that member's."""
        members = self.group.members
        place = place_of(ballot)
        return (
            version_of(ballot) == self.group.version
            and place < len(members)
            and members[place].name == name
        )
