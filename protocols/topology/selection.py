"""Whom to choose: pure functions of the ring, the randomness given, and who is out of question."""

from __future__ import annotations

from collections.abc import Container
from math import exp, log, log2
from random import Random

from overlay.ids import VID_BITS, NodeId, Ring
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


def harmonic_offset(n: int, rng: Random) -> int:
    """A clockwise distance whose logarithm is uniform between 1/n and 1 of the key space.

    Symphony's distribution: every scale of distance is equally likely, so greedy routing halves
    what remains in a constant number of hops.
    """
    return int(exp(log(max(n, 2)) * (rng.random() - 1.0)) * (1 << VID_BITS))


def draw_structured(
    ring: Ring, me: NodeId, rng: Random, barred: Container[NodeId]
) -> NodeId | None:
    """One member at a harmonic distance; None when luck or eligible members ran out."""
    origin = ring.vid(me)
    for _ in range(DRAWS):
        at = ring.space.add(origin, harmonic_offset(len(ring), rng))
        found = ring.responsible_for(at)
        if found != me and found not in barred:
            return found
    return None


def draw_random(ring: Ring, me: NodeId, rng: Random, barred: Container[NodeId]) -> NodeId | None:
    """One member anywhere, each about equally likely."""
    for _ in range(DRAWS):
        found = ring.responsible_for(rng.getrandbits(VID_BITS))
        if found != me and found not in barred:
            return found
    return None
