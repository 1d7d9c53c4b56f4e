"""With whom news is exchanged: a few members to whom links are open anyway.

A link costs a handshake, and far more than a message. Who draws members at random from the whole
view has soon linked with everybody; so a member keeps some partners, those with whom it has the
newest links, and exchanges the oldest of them for somebody drawn from the whole view after each
round of probes. Departs from SWIM, which draws from all: a graph of a dozen random links each
spreads news as fast, and is mixed all the time. That nobody is partner of too few, each packet of
news goes to a neighbour on the ring, too.
"""

from __future__ import annotations

from random import Random

from overlay.ids import NodeId
from protocols.membership.records import Record
from protocols.membership.table import MemberTable, draw_from
from protocols.membership.watching import Watcher


class Partners(Watcher):
    """Follows links and members; in a zone of hardly more than `limit` everybody is a partner."""

    def __init__(self, table: MemberTable, rng: Random, limit: int) -> None:
        self._table = table
        self._rng = rng
        self._limit = limit
        self._linked: dict[NodeId, None] = {}  # open links, members or not, the oldest first
        self._partners: list[NodeId] = []  # the oldest first
        self._clockwise = False  # which neighbour gets the next packet of news

    def link_up(self, peer: NodeId) -> None:
        """A link with that peer is open."""
        self._linked[peer] = None
        if peer in self._table:
            self._adopt(peer)

    def link_lost(self, peer: NodeId) -> bool:
        """It broke: another one is a better partner until it is open again. Whether it was open."""
        was_open = self._linked.pop(peer, 0) is None
        self._leave(peer)
        return was_open

    def member_present(self, record: Record, now: float) -> None:
        """Whoever linked before it was known to be a member."""
        if record.name in self._linked:
            self._adopt(record.name)

    def member_gone(self, record: Record, now: float) -> None:
        """One partner less; another link takes its place."""
        self._leave(record.name)

    def _adopt(self, peer: NodeId) -> None:
        if peer in self._partners:
            return
        self._partners.append(peer)
        if len(self._partners) > self._limit:
            del self._partners[0]

    def _leave(self, peer: NodeId) -> None:
        if peer in self._partners:
            self._partners.remove(peer)
            for other in self._linked:
                if other in self._table and other not in self._partners:
                    self._partners.append(other)
                    break

    def receivers(self, count: int) -> list[NodeId]:
        """Who gets the next packet of news: partners, and each neighbour on the ring in turn."""
        table = self._table
        if len(table) - 1 <= self._limit:
            return table.draw(self._rng, count)
        self._clockwise = not self._clockwise
        ring = table.ring()
        near = (ring.successors if self._clockwise else ring.predecessors)(table.me, 1)
        return near + self.draw(count - 1, *near)

    def draw(self, count: int, *besides: NodeId) -> list[NodeId]:
        """Up to `count` different partners; where they are too few, any other members too."""
        if len(self._table) - 1 <= self._limit:
            return self._table.draw(self._rng, count, *besides)
        # While I have few partners, most are drawn from all members, and become partners: else
        # the contacts of a zone, whom everybody met first, would get most of what it sends.
        share = min(count, 2 * count * len(self._partners) // self._limit)
        drawn = draw_from(self._partners, self._rng, share, besides)
        if len(drawn) < count:
            drawn += self._table.draw(self._rng, count - len(drawn), *besides, *drawn)
        return drawn

    def round(self) -> list[NodeId]:
        """Whom to probe before asking again, last first: all partners, then one new partner."""
        if len(self._table) - 1 <= self._limit:
            members = [name for name in self._table.members() if name != self._table.me]
            self._rng.shuffle(members)
            return members
        members = list(self._partners)
        self._rng.shuffle(members)
        newcomers = self._table.draw(self._rng, 1, *members)
        for newcomer in newcomers:
            self._adopt(newcomer)
        return newcomers + members
