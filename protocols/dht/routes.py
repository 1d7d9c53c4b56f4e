"""Who leads a shard: remembered, asked for, and forgotten when it proves wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.dht.core import Core
from protocols.dht.groups import Group, place_of, version_of
from protocols.dht.messages import Route, RouteRequest
from protocols.dht.placement import zones_of

MOST_HOPS = 3
ASKED_IN_ZONE = 2  # servers past the replicas that are asked before the round begins again


class Way(NamedTuple):
    """How to reach who leads a shard."""

    group: Group
    ballot: int
    leader: NodeId


class Search:
    """A shard whose leader is being looked for."""

    __slots__ = ("asked_at", "tries")

    def __init__(self) -> None:
        self.tries = 0
        self.asked_at = float("-inf")


class Routes:
    """`found` hears of each shard whose leader becomes known."""

    def __init__(self, core: Core, found: Callable[[int, float], None]) -> None:
        self._core = core
        self._found = found
        self._ways: dict[int, Way] = {}
        self._over: dict[int, int] = {}  # the highest ballot that is known to have ended
        self._searches: dict[int, Search] = {}
        self._hints: dict[int, Group] = {}  # later groups than this node belongs to, as told

    def __len__(self) -> int:
        return len(self._ways)

    def find(self, number: int, now: float) -> Way | None:
        """What is known: a member of the group knows best."""
        shard = self._core.shards.get(number)
        way = self._ways.get(number)
        latest = max(self._over.get(number, 0), 0 if way is None else way.ballot)
        if shard is not None and shard.seated and shard.promised > latest:
            leader = shard.leader
            if leader is not None:
                return Way(shard.group, shard.promised, leader)
        return way

    def drop(self, number: int, way: Way) -> None:
        """That way was wrong."""
        if self._ways.get(number) == way:
            del self._ways[number]

    def end(self, number: int, way: Way) -> None:
        """Nobody leads with that ballot any more."""
        self.drop(number, way)
        self._over[number] = max(way.ballot, self._over.get(number, 0))

    def invalidate(self, gone: NodeId) -> None:
        """A node left or failed: whatever it led is led by somebody else."""
        for number, way in list(self._ways.items()):
            if way.leader == gone:
                del self._ways[number]

    def clear(self) -> None:
        """Everything is placed anew."""
        self._ways.clear()
        self._hints.clear()

    # -- asking -----------------------------------------------------------------------------------

    def ask(self, number: int, now: float) -> None:
        """Ask somebody who may know; another one each time."""
        core = self._core
        search = self._searches.setdefault(number, Search())
        if now - search.asked_at < core.settings.retry * 0.9:
            return
        search.asked_at = now
        peers = self.candidates(number, now)
        if not peers:
            return
        peer = peers[search.tries % len(peers)]
        known = core.known_group(number)
        if known is not None:
            core.meet(known)
        search.tries += 1
        core.counts.route_requests += 1
        core.send(peer, RouteRequest(core.number, number, core.me, core.here(), 1))

    def candidates(self, number: int, now: float) -> list[NodeId]:
        """Whom to ask about a shard, the likeliest first; never this node."""
        core = self._core
        names: dict[NodeId, None] = {}
        zones = zones_of(number, core.bits, core.tier, core.settings.slice_points)
        here = not zones or zones[0] == core.zone
        if here:
            names.update(dict.fromkeys(self._in_zone(number)))
        for group in (self._hints.get(number), core.known_group(number)):
            if group is not None:
                for member in group.members:
                    if member.zone != core.zone or member.name in core.lives:
                        names[member.name] = None
        if not here:
            asked = dict.fromkeys(self._delegates(zones[0]))
            later = group is not None and group.version > 1
            names = {**names, **asked} if later else {**asked, **names}
            names.update(dict.fromkeys(self._in_zone(number)))
        names.pop(core.me, None)
        return list(names)

    def _delegates(self, zone: Scope) -> list[NodeId]:
        """§2.2: this zone's delegates know those of the other; a delegate knows them itself."""
        zones = self._core.zones
        if zones is None:
            return []
        if zones.management is None:
            return list(zones.delegates)
        return [name for one in zones.zones() if one.name == zone for name in one.delegates]

    def _in_zone(self, number: int) -> list[NodeId]:
        core = self._core
        count = core.settings.replicas + ASKED_IN_ZONE
        return core.layout.names(number, count)

    def on_route(self, src: NodeId, message: Route, now: float) -> None:
        """Somebody knows, or knows a later group whose members may."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        number, group, ballot = message.shard, message.group, message.ballot
        core.meet(group)
        known = self._hints.get(number)
        if known is None or group.version > known.version:
            if len(self._hints) >= core.settings.cached_routes:
                del self._hints[next(iter(self._hints))]
            self._hints[number] = group
        if not ballot:
            way = self._ways.get(number)
            if way is not None and way.leader == src:
                self.drop(number, way)  # it leads no more
            search = self._searches.get(number)
            if search is not None and (known is None or group.version > known.version):
                search.tries = 0
                search.asked_at = float("-inf")
                self.ask(number, now)
            return
        place = place_of(ballot)
        if version_of(ballot) != group.version or place >= len(group.members):
            raise core.not_in_group(src, number)
        way = Way(group, ballot, group.members[place].name)
        old = self._ways.pop(number, None)
        if ballot <= self._over.get(number, 0):
            return
        if old is None or old.ballot < ballot:
            if len(self._ways) >= core.settings.cached_routes:
                del self._ways[next(iter(self._ways))]
            old = way
        self._ways[number] = old
        if self._searches.pop(number, None) is not None:
            core.counts.routes += 1
            core.counts.route_hops += message.hops
        self._found(number, now)

    # -- answering --------------------------------------------------------------------------------

    def on_request(self, src: NodeId, message: RouteRequest, now: float) -> None:
        """Answer as a member of the group, or pass it on towards one."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        number = message.shard
        core.meet_asker(message.asker, message.endpoints)
        shard = core.shards.get(number)
        if shard is not None and shard.seated:
            ballot = 0 if shard.leader is None else shard.promised
            self._answer(message, shard.group, ballot)
            return
        onward = self._onward(message, now) if message.hops < MOST_HOPS else None
        if onward is not None:
            asked = RouteRequest(
                core.number, number, message.asker, message.endpoints, message.hops + 1
            )
            core.send(onward, asked)
            return
        group = self._hints.get(number) or core.known_group(number)
        known = core.known_group(number)
        if known is not None and (group is None or known.version > group.version):
            group = known
        if group is not None:
            self._answer(message, group, 0)

    def _answer(self, message: RouteRequest, group: Group, ballot: int) -> None:
        core = self._core
        core.send(message.asker, Route(core.number, message.shard, group, ballot, message.hops))

    def _onward(self, message: RouteRequest, now: float) -> NodeId | None:
        """§2.2: a delegate asks a delegate of the shard's zone, and that one the member."""
        core = self._core
        number = message.shard
        zones = zones_of(number, core.bits, core.tier, core.settings.slice_points)
        if not zones or zones[0] == core.zone:
            return next((one for one in self._in_zone(number) if one != core.me), None)
        if core.zones is None or core.zones.management is None:
            return None
        others = [one for one in self._delegates(zones[0]) if one not in (core.me, message.asker)]
        return core.rng.choice(others) if others else None
