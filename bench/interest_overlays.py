"""Overlays for subscribers: ours, by the selection that peers run, and others to compare it with.

All but the rings cover each topic of each node by `k` neighbours who share it, where the node knows
as many, and count the links that others made. They differ in whom they pick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random

from bench.interest_workload import KnownMembers, Links, Subscriptions, link, no_links
from overlay.ids import NodeId, Vid, key_of, vid_of
from protocols.topology.config import TopologySettings
from protocols.topology.coverage import covered
from protocols.topology.wishes import Wishes

CHECKS = 100  # at most; in each a member may release one link


class Ours:
    """Members take turns, as their reviews do, until none wants another link or one less."""

    def __init__(
        self, views: Mapping[NodeId, KnownMembers], config: TopologySettings, rng: Random
    ) -> None:
        self._config = config
        self._views = views
        self._wishes = {
            name: Wishes(view, config, Random(rng.random())) for name, view in views.items()
        }
        self._avoided: dict[NodeId, dict[NodeId, None]] = {name: {} for name in views}
        self._order = list(views)
        rng.shuffle(self._order)
        self._changed: dict[NodeId, None] = {}  # whose links did
        self.links: Links = {name: {} for name in views}
        for wishes in self._wishes.values():
            wishes.follow_ring()

    def build(self) -> Links:
        """Choose links, then release those that later ones made redundant, and choose again.

        A link that one end released goes when the other releases it, too; the first may then need
        another one.
        """
        self._review_all(self._order)
        checking = self._order
        for _ in range(CHECKS):
            self._changed.clear()
            released = [name for name in checking if self._release(name)]
            self._review_all(list(self._changed))
            checking = list({**dict.fromkeys(released), **self._changed})
            if not checking:
                break
        return self.links

    def _review_all(self, names: list[NodeId]) -> None:
        while names:
            names = [name for name in names if self._review(name)]

    def _besides_ring(self, name: NodeId) -> int:
        links = self.links[name]
        return len(links) - sum(peer in links for peer in self._wishes[name].ring)

    def _review(self, me: NodeId) -> bool:
        """What a peer does in a review; true when it has to do it again."""
        wishes, room = self._wishes[me], self._config.max_degree - self._besides_ring(me)
        again = wishes.choose(self.links[me], self._avoided[me], max(0, room)) and room > 0
        for peer in wishes.peers():
            if peer not in self.links[me]:
                again |= not self._ask(me, peer)
        return again

    def _ask(self, me: NodeId, peer: NodeId) -> bool:
        theirs = self._wishes[peer]
        room = self._config.max_degree - theirs.missing
        if me not in theirs.ring and self._besides_ring(peer) >= room:
            self._wishes[me].withdraw(peer)
            self._avoided[me][peer] = None
            return False
        link(self.links, me, peer)
        self._changed[me] = self._changed[peer] = None
        self._views[peer].ring().add(me)  # a link tells who is at its other end
        return True

    def _release(self, me: NodeId) -> bool:
        released = self._wishes[me].release_redundant(self.links[me])
        if released is None:
            return False
        if not self._wishes[me].kinds(released) and not self._wishes[released].kinds(me):
            del self.links[me][released], self.links[released][me]
            self._changed[me] = self._changed[released] = None
        return True


def ring_per_topic(interest: Subscriptions, order: Callable[[str, NodeId], Vid]) -> Links:
    """The subscribers of each topic in a ring of their own, each at its place in that ring."""
    links = no_links(interest)
    members: dict[str, list[NodeId]] = {}
    for name, topics in interest.items():
        for topic in sorted(topics):
            members.setdefault(topic, []).append(name)
    for topic, names in members.items():
        ring = sorted(names, key=partial(order, topic))
        for one, other in zip(ring, [*ring[1:], ring[0]], strict=True):
            if one != other:
                link(links, one, other)
    return links


def own_order(topic: str, name: NodeId) -> Vid:
    """Rings that know nothing of each other, as overlays made for one topic are."""
    return key_of(f"{topic}/{name}")


def one_order(topic: str, name: NodeId) -> Vid:
    """The same order in all rings: neighbours in one are often neighbours in others, too."""
    return vid_of(name)


def random_picks(
    candidates: Mapping[NodeId, frozenset[str]], wanted: set[str], rng: Random
) -> Iterator[NodeId]:
    """Anybody who shares a topic that lacks neighbours."""
    for name in rng.sample(list(candidates), len(candidates)):
        if wanted & candidates[name]:
            yield name


def similar_picks(
    candidates: Mapping[NodeId, frozenset[str]], wanted: set[str], rng: Random
) -> Iterator[NodeId]:
    """Those first who share the most topics, covered or not."""
    yield from sorted(candidates, key=lambda name: -len(candidates[name]))


def useful_similar_picks(
    candidates: Mapping[NodeId, frozenset[str]], wanted: set[str], rng: Random
) -> Iterator[NodeId]:
    """The same without those who share no topic that lacks neighbours: halfway to greedy."""
    for name in similar_picks(candidates, wanted, rng):
        if wanted & candidates[name]:
            yield name


def covering(
    interest: Subscriptions,
    views: Mapping[NodeId, KnownMembers],
    k: int,
    rng: Random,
    picks: Callable[[Mapping[NodeId, frozenset[str]], set[str], Random], Iterator[NodeId]],
) -> Links:
    """One node after the other takes picks until each of its topics has k neighbours."""
    links = no_links(interest)
    order = list(interest)
    rng.shuffle(order)
    for me in order:
        mine = interest[me]
        lacks = dict.fromkeys(sorted(mine), k)
        for peer in links[me]:
            for topic in mine & interest[peer]:
                lacks[topic] -= 1
        known = (name for name in views[me].members() if name != me and name not in links[me])
        candidates = {name: common for name in known if (common := mine & interest[name])}
        reachable = covered(mine, candidates.values())
        wanted = {topic for topic, lack in lacks.items() if lack > 0 and reachable[topic]}
        for peer in picks(candidates, wanted, rng):
            if not wanted:
                break
            link(links, me, peer)
            for topic in candidates[peer]:
                lacks[topic] -= 1
                reachable[topic] -= 1
                if lacks[topic] <= 0 or not reachable[topic]:
                    wanted.discard(topic)
    return links
