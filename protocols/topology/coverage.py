"""K-coverage: enough neighbours for each of my topics, over few links (SpiderCast, DEBS 2007).

A link covers every topic that its two ends share, so one well-chosen neighbour serves many topics.
Greedy picks share the most topics that still lack neighbours; random picks share any one of them,
since greedy ones alone would fall into clusters of the like-minded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TypeAlias

from overlay.ids import NodeId

Topics: TypeAlias = frozenset[str]


def covered(mine: Topics, neighbours: Iterable[Topics]) -> dict[str, int]:
    """How many neighbours share each of my topics."""
    counts = dict.fromkeys(sorted(mine), 0)
    for topics in neighbours:
        for topic in mine & topics:
            counts[topic] += 1
    return counts


def lacking(counts: Mapping[str, int], k: int, sharers: Mapping[str, int]) -> dict[str, int]:
    """How many neighbours each topic still lacks, where that many others share it at all."""
    gaps = {topic: min(k, sharers[topic]) - have for topic, have in counts.items()}
    return {topic: gap for topic, gap in gaps.items() if gap > 0}


def greedy_pick(
    lacks: Mapping[str, int], candidates: Iterable[tuple[NodeId, Topics]]
) -> NodeId | None:
    """The candidate who shares the most lacking topics; the first of equals."""
    wanted = lacks.keys()
    best, most = None, 0
    for name, topics in candidates:
        shared = len(wanted & topics)
        if shared > most:
            best, most = name, shared
    return best


def random_pick(
    lacks: Mapping[str, int], candidates: Sequence[tuple[NodeId, Topics]], rng: Random
) -> NodeId | None:
    """Anybody who shares one topic that lacks neighbours, drawn among the lacking ones."""
    for topic in rng.sample(list(lacks), len(lacks)):
        sharing = [name for name, topics in candidates if topic in topics]
        if sharing:
            return rng.choice(sharing)
    return None


def is_redundant(
    common: Topics, counts: Mapping[str, int], k: int, sharers: Mapping[str, int]
) -> bool:
    """Whether every topic that the two ends share keeps its k neighbours without this link."""
    return all(counts[topic] > min(k, sharers[topic]) for topic in common)
