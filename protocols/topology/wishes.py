"""Which links a member wants, and why: follows the view, and changes nothing that still serves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from random import Random

from overlay.ids import NodeId
from protocols.membership.interface import MembershipView
from protocols.topology.config import TopologySettings
from protocols.topology.coverage import (
    Topics,
    covered,
    greedy_pick,
    is_redundant,
    lacking,
    random_pick,
)
from protocols.topology.interests import NOTHING, interests
from protocols.topology.kinds import Kind
from protocols.topology.selection import (
    draw_random,
    draw_structured,
    ring_neighbours,
    structured_count,
)


class Wishes:
    """What I want of each member. A choice once made stays until its member goes or refuses."""

    def __init__(self, members: MembershipView, config: TopologySettings, rng: Random) -> None:
        self._members = members
        self._config = config
        self._rng = rng
        self._picks: dict[NodeId, Kind] = {}  # without the ring
        self._drawn_at = 0  # how many members there were when the structured links were drawn
        self.ring: dict[NodeId, None] = {}  # the nearest on either side
        self.missing = 0  # structured and random links that are still to be chosen

    def kinds(self, peer: NodeId) -> Kind:
        """Why I want a link to that member."""
        picked = self._picks.get(peer, Kind.NONE)
        return picked | Kind.RING if peer in self.ring else picked

    def peers(self) -> dict[NodeId, None]:
        """All of whom I want something; the ring first."""
        return {**self.ring, **dict.fromkeys(self._picks)}

    def withdraw(self, peer: NodeId) -> None:
        """Choose that member no longer; the ring is not a choice."""
        self._picks.pop(peer, None)

    def count(self, kind: Kind) -> int:
        """How many of one kind are chosen."""
        return sum(1 for kinds in self._picks.values() if kinds & kind)

    def follow_ring(self) -> None:
        """Want the nearest of the present view, and nothing of those who are gone."""
        members = self._members
        self.ring = ring_neighbours(members.ring(), members.me, self._config.ring_links)
        for peer in [peer for peer in self._picks if peer not in members]:
            del self._picks[peer]

    def choose(self, linked: Iterable[NodeId], avoided: Collection[NodeId], room: int) -> bool:
        """Choose up to `changes` and up to `room` new members; True when some are still missing.

        `linked` are links in any state, wanted or not.
        """
        members, config = self._members, self._config
        n = len(members)
        if not self._drawn_at <= 2 * n <= 4 * self._drawn_at:
            # Symphony's rule: distances drawn for half or twice as many members no longer fit.
            self._shed(Kind.STRUCTURED, 0)
            self._drawn_at = n
        have = {**dict.fromkeys(linked), **self.peers()}
        barred = {**have, **dict.fromkeys(avoided)}
        budget = min(config.changes, room)
        strangers = n - 1 - len(self.ring)
        others: list[NodeId] = []  # clockwise from me, if anybody is to be chosen
        self.missing = 0
        for kind, goal, draw in (
            (Kind.STRUCTURED, structured_count(n, strangers, config), draw_structured),
            (Kind.RANDOM, min(config.random_links, strangers), draw_random),
        ):
            self._shed(kind, goal)
            while (missing := goal - self.count(kind)) > 0:
                if budget == 0:
                    self.missing += missing
                    break
                others = others or members.ring().successors(members.me, n)
                found = draw(others, self._rng, barred)
                if found is None:
                    # Nobody new is left: a link that exists anyway may serve this purpose, too.
                    self._adopt(kind, missing, [peer for peer in have if peer not in avoided])
                    break
                budget -= 1
                have[found] = barred[found] = None
                self._picks[found] = kind
        return self._cover_interests(have, barred, budget) or self.missing > 0

    def _shed(self, kind: Kind, goal: int) -> None:
        """Want at most `goal` of a kind, the oldest ones; what shrinks with the zone's size."""
        chosen = [peer for peer, kinds in self._picks.items() if kinds & kind]
        # A zone at a power of two would flicker: one too many does no harm.
        for peer in chosen[goal + 1 if goal else 0 :]:
            self._without(peer, kind)

    def _without(self, peer: NodeId, kind: Kind) -> None:
        left = self._picks[peer] & ~kind
        if left:
            self._picks[peer] = left
        else:
            del self._picks[peer]

    def _adopt(self, kind: Kind, missing: int, candidates: list[NodeId]) -> None:
        eligible = [
            peer
            for peer in candidates
            if peer in self._members
            and peer not in self.ring
            and not self._picks.get(peer, Kind.NONE) & kind
        ]
        for peer in eligible[:missing]:
            self._picks[peer] = self._picks.get(peer, Kind.NONE) | kind

    # -- interest -------------------------------------------------------------------------------

    def _topics(self, peer: NodeId) -> Topics:
        return interests(self._members.attributes(peer), self._config.interest_key)

    def _sharing(self) -> tuple[Topics, dict[NodeId, Topics], dict[str, int]]:
        """My topics; the others who share some, clockwise from me; how many share each.

        Starting at my own place lets equals be chosen by different members, not all by everybody.
        """
        mine = self._topics(self._members.me) if self._config.interest_key else NOTHING
        if not mine:
            return NOTHING, {}, {}
        ring = self._members.ring()
        sharing = {
            peer: common
            for peer in ring.successors(self._members.me, len(ring))
            if (common := mine & self._topics(peer))
        }
        return mine, sharing, covered(mine, sharing.values())

    def _cover_interests(
        self, have: dict[NodeId, None], barred: dict[NodeId, None], budget: int
    ) -> bool:
        mine, sharing, sharers = self._sharing()
        for peer in [peer for peer, kinds in self._picks.items() if kinds & Kind.INTEREST]:
            if peer not in sharing:
                self._without(peer, Kind.INTEREST)
        counts = covered(mine, (sharing[peer] for peer in have if peer in sharing))
        greedy = self._config.greedy_coverage
        wanted = greedy + self._config.random_coverage
        while lacks := lacking(counts, wanted, sharers):
            candidates = [pair for pair in sharing.items() if pair[0] not in barred]
            first = lacking(counts, greedy, sharers)
            found = greedy_pick(first, candidates) if first else None
            if found is None:
                found = random_pick(lacks, candidates, self._rng)
            if found is None:
                return False  # all who share it are linked or out of question
            if budget == 0:
                return True
            budget -= 1
            barred[found] = None
            self._picks[found] = Kind.INTEREST
            for topic in sharing[found]:
                counts[topic] += 1
        return False

    def release_redundant(self, linked: Iterable[NodeId]) -> NodeId | None:
        """Want one link less whose topics have more neighbours than they need; None if none has.

        One at a time, and only if every topic stays covered: choosing and releasing cannot chase
        each other.
        """
        chosen = [peer for peer, kinds in self._picks.items() if kinds & Kind.INTEREST]
        if not chosen:
            return None
        mine, sharing, sharers = self._sharing()
        counts = covered(mine, (sharing[peer] for peer in linked if peer in sharing))
        wanted = self._config.greedy_coverage + self._config.random_coverage
        for peer in chosen:
            common = sharing.get(peer, NOTHING)
            if is_redundant(common, counts, wanted, sharers):
                self._without(peer, Kind.INTEREST)
                return peer
        return None
