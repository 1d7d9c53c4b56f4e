"""Who subscribes to what, who knows whom, and what an overlay of them is like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from random import Random
from statistics import mean
from typing import NamedTuple, TypeAlias

from overlay.ids import NodeId, Ring
from overlay.protocol import Scope
from protocols.membership.attributes import Value
from protocols.membership.records import Record, State
from protocols.topology.interests import TOPICS

Subscriptions: TypeAlias = dict[NodeId, frozenset[str]]
Links: TypeAlias = dict[NodeId, dict[NodeId, None]]  # both ways


def subscriptions(nodes: int, topics: int, each: int, skew: float, rng: Random) -> Subscriptions:
    """`each` topics for every node; the popularity of topic number i falls as 1 / i^skew."""
    names = [f"t{number}" for number in range(topics)]
    heights = list(accumulate((number + 1) ** -skew for number in range(topics)))
    found: Subscriptions = {}
    for number in range(nodes):
        chosen: dict[str, None] = {}
        while len(chosen) < each:
            chosen.update(dict.fromkeys(rng.choices(names, cum_weights=heights, k=each)))
        found[f"n{number}"] = frozenset(list(chosen)[:each])
    return found


class KnownMembers:
    """Implements `MembershipView` for a member that knows some of the others."""

    zone: Scope = "zone"
    version = 0

    def __init__(
        self, me: NodeId, known: Ring, attributes: Mapping[NodeId, Mapping[str, Value]]
    ) -> None:
        self.me = me
        self._ring = known
        self._attributes = attributes

    def __len__(self) -> int:
        return len(self._ring)

    def __contains__(self, name: object) -> bool:
        return name in self._ring

    def members(self) -> tuple[NodeId, ...]:
        """All who are known."""
        return tuple(self._ring)

    def record(self, name: NodeId) -> Record | None:
        """Everybody is alive."""
        return Record(name, 1, State.ALIVE, 1, 1) if name in self._ring else None

    def ring(self) -> Ring:
        """All who are known."""
        return self._ring

    def attributes(self, name: NodeId) -> Mapping[str, Value]:
        """Their topics."""
        return self._attributes[name]

    def roles(self, name: NodeId) -> tuple[str, ...]:
        """Nobody has any."""
        return ()


def views(
    interest: Subscriptions, share: float, nearest: int, rng: Random
) -> dict[NodeId, KnownMembers]:
    """Everybody knows a random share of all, and the nearest on the ring of all on either side."""
    attributes: dict[NodeId, dict[str, Value]] = {
        name: {TOPICS: ",".join(sorted(topics))} for name, topics in interest.items()
    }
    names = list(interest)
    everybody = Ring(names)
    found = {}
    for name in names:
        known = everybody
        if share < 1:
            some = rng.sample(names, round(share * len(names)))
            near = (*everybody.successors(name, nearest), *everybody.predecessors(name, nearest))
            known = Ring([name, *near, *some])
        found[name] = KnownMembers(name, known, attributes)
    return found


class Overlay(NamedTuple):
    """What an overlay is like."""

    degree: float  # mean
    largest: int  # degree
    connected: float  # share of topics whose subscribers reach each other over subscribers alone
    apart: float  # share of subscriptions outside of the largest such group of their topic


def judge(links: Links, interest: Subscriptions) -> Overlay:
    """Look at every topic's subscribers, and the links between them."""
    subscribers: dict[str, list[NodeId]] = {}
    for name, topics in interest.items():
        for topic in sorted(topics):
            subscribers.setdefault(topic, []).append(name)
    whole = outside = 0
    for topic, members in subscribers.items():
        largest = _largest_group(members, links, topic, interest)
        whole += largest == len(members)
        outside += len(members) - largest
    degrees = [len(links[name]) for name in interest]
    return Overlay(
        mean(degrees),
        max(degrees),
        whole / len(subscribers),
        outside / sum(len(members) for members in subscribers.values()),
    )


def _largest_group(
    members: Iterable[NodeId], links: Links, topic: str, interest: Subscriptions
) -> int:
    unseen = dict.fromkeys(members)
    largest = 0
    while unseen:
        first = next(iter(unseen))
        del unseen[first]
        group = [first]
        for name in group:  # it grows meanwhile
            for peer in links[name]:
                if peer in unseen and topic in interest[peer]:
                    del unseen[peer]
                    group.append(peer)
        largest = max(largest, len(group))
    return largest


def no_links(interest: Subscriptions) -> Links:
    """An overlay to be built."""
    return {name: {} for name in interest}


def link(links: Links, one: NodeId, other: NodeId) -> None:
    """Join two, both ways."""
    links[one][other] = links[other][one] = None
