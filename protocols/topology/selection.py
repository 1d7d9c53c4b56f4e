"""Whom to choose: pure functions of the ring, the randomness given, and who is out of question."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import log2
from random import Random

from overlay.ids import NodeId, Ring
from protocols.topology.config import TopologySettings

DRAWS = 12  # tries per pick: each misses seldom while most members are eligible


def ring_neighbours(ring: Ring, me: NodeId, k: int) -> dict[NodeId, None]:
    """The k nearest on either side: the same pair of members choose each other."""
    return dict.fromkeys((*ring.successors(me, k), *ring.predecessors(me, k)))


def structured_count(n: int, strangers: int, config: TopologySettings) -> int:
    """How many structured links a member of a zone of n wants: none when the ring reaches all."""
    if strangers <= 0 or config.structured_links == 0:
        return 0
    return min(strangers, max(1, round(config.structured_links * log2(n))))


def draw_structured(
    others: Sequence[NodeId], rng: Random, barred: Container[NodeId]
) -> NodeId | None:
    """One of `others`, clockwise from me, at a harmonic distance; None when luck ran out.

    The logarithm of the distance is uniform (Symphony), so every scale of distance is equally
    likely, and greedy routing halves what remains in a constant number of hops. Departs from
    Symphony, which draws distances in the key space: with the full view they are counted in
    members. So nobody is chosen seven times as often because the gap before it is wide.
    """
    for _ in range(DRAWS):
        found = others[int((len(others) + 1) ** rng.random()) - 1]
        if found not in barred:
            return found
    return None


def draw_random(others: Sequence[NodeId], rng: Random, barred: Container[NodeId]) -> NodeId | None:
    """One of `others`, each equally likely; None when luck ran out."""
    for _ in range(DRAWS):
        found = others[int(len(others) * rng.random())]
        if found not in barred:
            return found
    return None
