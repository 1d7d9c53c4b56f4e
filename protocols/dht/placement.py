"""Where a shard belongs: on the ring of a zone, and on the upper tier ring of all storage zones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

from overlay.ids import VID_BITS, Ring, Vid, key_of
from overlay.protocol import Scope

SALT = b"dht/upper-tier/"

Tier: TypeAlias = tuple[tuple[Scope, int], ...]
"""Storage zones by name, each with its number of slices: what the UTR is computed from."""


def shard_of(key: bytes, bits: int) -> int:
    """The shard of a key: the first bits of its hash."""
    return int.from_bytes(sha256(key).digest()[:4], "big") >> (32 - bits)


def point_of(shard: int, bits: int, space_bits: int = VID_BITS) -> Vid:
    """Where a shard lies on the ring of a zone: at its first key."""
    return shard << (space_bits - bits)


def successors_of(ring: Ring, point: Vid, count: int) -> list[str]:
    """The first `count` names at or after a point: the responsible one and those that follow."""
    if not len(ring):
        return []
    first = ring.responsible_for(point)
    return [first, *ring.successors(first, count - 1)]


@lru_cache(maxsize=64)
def upper_tier(tier: Tier, points: int) -> tuple[tuple[Vid, ...], tuple[Scope, ...]]:
    """The UTR: `points` places for each slice `zone:k`, sorted, and whose they are."""
    placed = sorted(
        (key_of(f"{zone}:{number}/{point}"), zone)
        for zone, slices in tier
        for number in range(1, slices + 1)
        for point in range(points)
    )
    return tuple(place for place, _ in placed), tuple(zone for _, zone in placed)


@lru_cache(maxsize=1 << 17)
def upper_point(shard: int, bits: int) -> Vid:
    """Where a shard lies on the UTR: by a second hash, or zones would keep only the keys near
    their own places."""
    return key_of(SALT + bits.to_bytes(1, "big") + shard.to_bytes(4, "big"))


@lru_cache(maxsize=1 << 17)
def zones_of(shard: int, bits: int, tier: Tier, points: int, most: int = 8) -> tuple[Scope, ...]:
    """The storage zones of a shard: the one that it belongs to, then those that follow."""
    places, owners = upper_tier(tier, points)
    if not places:
        return ()
    at = bisect_left(places, upper_point(shard, bits))
    found: dict[Scope, None] = {}
    wanted = min(most, len(tier))
    for step in range(len(owners)):
        found[owners[(at + step) % len(owners)]] = None
        if len(found) >= wanted:
            break
    return tuple(found)


def spread(
    candidates: Sequence[tuple[Scope, Sequence[str]]], replicas: int, lateral: int
) -> list[str]:
    """Choose a group from the candidates of each zone, both in order of preference.

    One zone: `replicas` of it. Two: `lateral` more of the other. Three or more: as many, but of no
    zone half or more, so that the rest is a majority without it.
    """
    present = [(zone, list(names)) for zone, names in candidates if names]
    if len(present) < 2:
        return present[0][1][:replicas] if present else []
    if len(present) == 2:
        return present[0][1][:replicas] + present[1][1][:lateral]
    for size in range(max(replicas + lateral, 3), 2, -1):
        cap = (size - 1) // 2
        chosen: list[str] = []
        for at, (_, names) in enumerate(present):
            room = size - len(chosen)
            chosen += names[: min(cap, room, replicas if at == 0 else cap)]
        if len(chosen) == size:
            return chosen
    return [names[0] for _, names in present[:3]]


@lru_cache(maxsize=256)
def shares(zones: int, replicas: int, lateral: int) -> tuple[int, ...]:
    """How many of a group lie in each of its zones, where all of them have servers enough."""
    each = [(str(zone), [f"{zone}"] * (replicas + lateral)) for zone in range(max(zones, 1))]
    chosen = spread(each, replicas, lateral)
    return tuple(chosen.count(zone) for zone, _ in each)


def keys_per_zone(tier: Tier, bits: int, points: int) -> Mapping[Scope, int]:
    """How many shards belong to each zone: what balances the load between them."""
    counts = dict.fromkeys((zone for zone, _ in tier), 0)
    places, owners = upper_tier(tier, points)
    for shard in range(1 << bits):
        counts[owners[bisect_left(places, upper_point(shard, bits)) % len(owners)]] += 1
    return counts
