"""Who keeps a shard in another zone: any server there knows, from the ring of its zone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.dht.core import BATCH_ITEMS, Core
from protocols.dht.groups import Member
from protocols.dht.messages import Locate, Located
from protocols.dht.shard import Shard

MOST_HOPS = 3


class Place:
    """What a zone said about a shard, and when it was asked."""

    __slots__ = ("asked_at", "members", "since", "told_at")

    def __init__(self, now: float) -> None:
        self.since = now
        self.asked_at = float("-inf")
        self.told_at = float("-inf")
        self.members: tuple[Member, ...] | None = None


class Locator:
    """Asks other zones, again and again while this node leads; `changed` hears of news."""

    def __init__(self, core: Core, changed: Callable[[float], None]) -> None:
        self._core = core
        self._changed = changed
        self._places: dict[tuple[Scope, int], Place] = {}

    def find(self, zone: Scope, shard: int, now: float) -> tuple[Member, ...] | None:
        """The servers of a zone for a shard: none when the zone has been silent for long (it may
        be lost), None when it has not been asked for long enough to tell."""
        core = self._core
        place = self._places.setdefault((zone, shard), Place(now))
        patience = 2 * core.settings.silence
        if place.members is None:
            return () if now - place.since > patience else None
        return () if now - place.told_at > patience else place.members

    def ask(self, wanted: Iterable[tuple[Scope, Shard]], count: int, now: float) -> None:
        """Ask the zones of these shards, those that were not asked lately."""
        core = self._core
        letters: dict[tuple[NodeId, Scope], list[int]] = {}
        for zone, shard in wanted:
            place = self._places.setdefault((zone, shard.id), Place(now))
            if now - place.asked_at < core.settings.compare:
                continue
            place.asked_at = now
            peer = self._whom(zone, shard, now)
            if peer is not None:
                letters.setdefault((peer, zone), []).append(shard.id)
        for (peer, zone), shards in letters.items():
            for start in range(0, len(shards), BATCH_ITEMS):
                part = tuple(shards[start : start + BATCH_ITEMS])
                message = Locate(core.number, zone, count, part, core.me, core.here(), 1)
                core.effects.send(peer, message)

    def _whom(self, zone: Scope, shard: Shard, now: float) -> NodeId | None:
        """A member of the group there, or one who was named before; else a delegate of ours."""
        core = self._core
        place = self._places[zone, shard.id]
        known = [member for member in shard.group.members if member.zone == zone]
        known += place.members or ()
        alive = [member.name for member in known if core.reachable(member, now)]
        if alive and core.rng.random() < 0.8:
            return core.rng.choice(alive)
        there = self.delegates_of(zone)
        if there:
            return core.rng.choice(there)
        ours = [] if core.zones is None else [one for one in core.zones.delegates if one != core.me]
        return core.rng.choice(ours) if ours else (alive[0] if alive else None)

    def delegates_of(self, zone: Scope) -> list[NodeId]:
        """The delegates of a zone, where this node can reach them: in the management zone."""
        zones = self._core.zones
        if zones is None or zones.management is None:
            return []
        view = zones.management.view
        return [
            name
            for entry in zones.zones()
            if entry.name == zone
            for name in entry.delegates
            if name in view and name != self._core.me
        ]

    def on_locate(self, src: NodeId, message: Locate, now: float) -> None:
        """Answer for this zone, or pass it on to a delegate of the other."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        core.meet_asker(message.asker, message.endpoints)
        if message.zone != core.zone:
            there = self.delegates_of(message.zone)
            if there and message.hops < MOST_HOPS:
                onward = Locate(
                    core.number,
                    message.zone,
                    message.count,
                    message.shards,
                    message.asker,
                    message.endpoints,
                    message.hops + 1,
                )
                core.effects.send(core.rng.choice(there), onward)
            return
        members: dict[NodeId, int] = {}
        items = []
        for shard in message.shards:
            names = core.layout.names(shard, message.count)
            items.append((shard, tuple(members.setdefault(name, len(members)) for name in names)))
        listed = tuple(core.server(name) for name in members)
        core.effects.send(message.asker, Located(core.number, core.zone, listed, tuple(items)))

    def on_located(self, src: NodeId, message: Located, now: float) -> None:
        """Take what a zone says about itself."""
        core = self._core
        if not core.check_table(src, message.table, now):
            return
        news = False
        for shard, indices in message.items:
            place = self._places.get((message.zone, shard))
            if place is None or any(not 0 <= at < len(message.members) for at in indices):
                core.counts.late += 1
                continue
            members = tuple(message.members[at] for at in indices)
            place.told_at = now
            if place.members is None or [one.name for one in place.members] != [
                one.name for one in members
            ]:
                news = True
            place.members = members
        if news:
            self._changed(now)

    def trim(self, wanted: Iterable[tuple[Scope, int]]) -> None:
        """Forget the rest."""
        keep = dict.fromkeys(wanted)
        self._places = {key: place for key, place in self._places.items() if key in keep}
