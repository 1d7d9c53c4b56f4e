"""Who takes the time from whom: an order that all members know alike, in committees of three."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

from overlay.ids import NodeId
from protocols.membership.interface import MembershipView

COMMITTEE = 3  # members: two outvote one
BELOW = 3  # committees that one committee serves: nine members and a few voters ask each of it

Rank: TypeAlias = tuple[int, int, NodeId]


class Order:
    """The members by seniority, kept until the view changes."""

    def __init__(self, members: MembershipView) -> None:
        self._members = members
        self._version = -1
        self._names: list[NodeId] = []
        self._place = 0

    def rank(self, name: NodeId) -> Rank | None:
        """Its place in the order of all lives; None for who is not present."""
        record = self._members.record(name)
        if record is None or not record.present:
            return None
        return (*record.seniority, name)

    def seniors(self) -> list[NodeId]:
        """Whom this node takes the time from, the most senior first; the root has none."""
        self._refresh()
        mine = self._place // COMMITTEE
        if mine == 0:
            return self._names[: self._place]
        first = (mine - 1) // BELOW * COMMITTEE
        return self._names[first : first + COMMITTEE]

    @property
    def is_first_committee(self) -> bool:
        """Whether this node is one of those whom all others follow in the end."""
        self._refresh()
        return self._place < COMMITTEE

    def others(self, rng: Random, count: int, besides: tuple[NodeId, ...]) -> list[NodeId]:
        """Random members, neither this node nor those."""
        self._refresh()
        without = (*besides, self._members.me)
        most = min(len(self._names), count + len(without))
        return [name for name in rng.sample(self._names, most) if name not in without][:count]

    def _refresh(self) -> None:
        if self._version == self._members.version:
            return
        self._version = self._members.version
        ranks = sorted(filter(None, map(self.rank, self._members.members())))
        self._names = [rank[2] for rank in ranks]
        self._place = self._names.index(self._members.me) if self._members.me in self._names else 0
