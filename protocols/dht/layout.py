"""Who keeps which shard in one zone: every server of the zone computes the same from its view.

A server has `node_points` places on the ring of its zone, and a shard's copies go to the first
servers at or after the shard's place that have room: nobody keeps over 1.3 × of the mean. Which
of a shard's servers leads it is then chosen so that all lead alike; that moves no data. A server
more takes over what becomes its own, and little else moves: loads are bounded loosely, leads, which
cost nothing to move, tightly.

Departs from §2.1, where a server has one place, its VID, and whoever follows keeps what lies
before it: with a place each the largest of a hundred arcs is five times the mean. `node_points = 0`
is §2.1 as printed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from math import ceil, floor
from typing import NamedTuple

from overlay.ids import VID_BITS, NodeId, Ring
from overlay.protocol import Scope
from protocols.dht.placement import Tier, point_of, shares, successors_of, zones_of

SALT = "dht/server/"
FULLEST = 1.3  # × the mean of the copies that servers of the zone keep
POINT_BITS, INDEX_BITS = 64, 20
REMEMBERED = 256  # layouts: nodes of one simulation share them, a process needs one or two


class Terms(NamedTuple):
    """What a layout follows from besides the servers; all servers of a table have the same."""

    bits: int  # of a key's hash that name its shard
    points: int  # of a server; 0: its VID alone
    replicas: int
    lateral: int
    zone: Scope = ""
    tier: Tier = ()
    slice_points: int = 1

    def copies(self, shard: int) -> tuple[int, bool]:
        """How many copies of a shard the zone keeps, and whether it leads it."""
        zones = zones_of(shard, self.bits, self.tier, self.slice_points)
        if self.zone not in zones:
            return (0, False) if zones else (self.replicas, True)
        place = zones.index(self.zone)
        return shares(len(zones), self.replicas, self.lateral)[place], place == 0


@lru_cache(maxsize=16_384)
def places_of(name: NodeId, points: int) -> tuple[int, ...]:
    """A server's places on the ring of its zone: of a salted hash, or its neighbours would be
    those of the membership ring."""
    return tuple(
        int.from_bytes(sha256(f"{SALT}{name}/{at}".encode()).digest()[:8], "big")
        for at in range(points)
    )


class Layout:
    """The servers of one zone, and what each keeps; computed when it is first asked."""

    def __init__(self, servers: tuple[NodeId, ...], terms: Terms) -> None:
        self._servers = servers
        self._terms = terms
        self._ring = Ring(servers) if not terms.points else Ring()
        self._chosen: dict[int, list[NodeId]] | None = None
        self._points: list[int] = []
        self._owners: list[int] = []

    def names(self, shard: int, count: int) -> list[NodeId]:
        """The first `count` servers for a shard, the preferred leader first."""
        terms = self._terms
        if not terms.points:
            return successors_of(self._ring, point_of(shard, terms.bits), count)
        if self._chosen is None:
            self._chosen = self._choose()
        chosen = self._chosen.get(shard, [])
        if len(chosen) >= count:
            return chosen[:count]
        more = (name for name in self._walk(shard) if name not in chosen)
        return [*chosen, *(name for name, _ in zip(more, range(count - len(chosen)), strict=False))]

    def _walk(self, shard: int) -> Iterator[NodeId]:
        """The servers in the order of their places after the shard's, some of them repeatedly."""
        owners = self._owners
        point = point_of(shard, self._terms.bits) >> (VID_BITS - POINT_BITS)
        start = bisect_left(self._points, point << INDEX_BITS)
        seen: dict[int, None] = {}
        for step in range(start, start + len(owners)):
            owner = owners[step % len(owners)]
            if owner not in seen:
                seen[owner] = None
                yield self._servers[owner]
                if len(seen) == len(self._servers):
                    return

    def _choose(self) -> dict[int, list[NodeId]]:
        terms, servers = self._terms, self._servers
        self._points = sorted(
            place << INDEX_BITS | at
            for at, name in enumerate(servers)
            for place in places_of(name, terms.points)
        )
        self._owners = [point & ((1 << INDEX_BITS) - 1) for point in self._points]
        wanted = {shard: terms.copies(shard) for shard in range(1 << terms.bits)}
        mean = sum(copies for copies, _ in wanted.values()) / max(len(servers), 1)
        room = dict.fromkeys(servers, max(floor(FULLEST * mean), ceil(mean)))
        chosen: dict[int, list[NodeId]] = {}
        for shard, (copies, _) in wanted.items():
            if copies:
                chosen[shard] = self._take(shard, copies, room)
        led = [shard for shard, (_, leads) in wanted.items() if leads]
        for shard, leader in _leaders(led, chosen, servers).items():
            chosen[shard].remove(leader)
            chosen[shard].insert(0, leader)
        return chosen

    def _take(self, shard: int, copies: int, room: dict[NodeId, int]) -> list[NodeId]:
        """The first servers with room, and if there are too few the first without."""
        found: list[NodeId] = []
        full: list[NodeId] = []
        for name in self._walk(shard):
            (found if room[name] > 0 else full).append(name)
            if len(found) == copies:
                break
        found += full[: copies - len(found)]
        for name in found:
            room[name] -= 1
        return found


def _leaders(
    led: list[int], chosen: dict[int, list[NodeId]], servers: tuple[NodeId, ...]
) -> dict[int, NodeId]:
    """Who leads each shard: one of those that keep it, and nobody more than the mean, rounded up,
    unless no exchange along shared shards could help."""
    most = ceil(len(led) / max(len(servers), 1))
    leads: dict[NodeId, dict[int, None]] = {name: {} for name in servers}
    for shard in led:
        # Breadth first: from those who keep it, over what they lead, to one who has room.
        came: dict[NodeId, tuple[NodeId | None, int]] = dict.fromkeys(chosen[shard], (None, shard))
        queue = deque(came)
        least = queue[0] if queue else None
        while queue:
            name = queue.popleft()
            if least is None or len(leads[name]) < len(leads[least]):
                least = name
            if len(leads[name]) < most:
                break
            for other in leads[name]:
                for keeper in chosen[other]:
                    if keeper not in came:
                        came[keeper] = (name, other)
                        queue.append(keeper)
        end = least
        while end is not None:
            source, passed = came[end]
            if source is not None:
                del leads[source][passed]
            leads[end][passed] = None
            end = source
    return {shard: name for name, shards in leads.items() for shard in shards}


@lru_cache(maxsize=REMEMBERED)
def layout_of(servers: tuple[NodeId, ...], terms: Terms) -> Layout:
    """The layout of these servers, given in any fixed order."""
    return Layout(servers, terms)
