"""Access points: a node that keeps no keys asks its delegates for servers to ask through (§2.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overlay.ids import NodeId
from protocols.dht.core import Core
from protocols.dht.groups import Group, Member
from protocols.dht.messages import Bind, Bound

MOST_SERVERS = 4
MOST_HOPS = 2


class Binder:
    """Both sides; `tables` names delegates that show a table, `bound` hears of servers."""

    def __init__(
        self,
        core: Core,
        tables: Callable[[], Mapping[NodeId, int]],
        bound: Callable[[float], None],
    ) -> None:
        self._core = core
        self._tables = tables
        self._bound = bound
        self._asked_at = float("-inf")
        self.table = 0
        self.servers: tuple[Member, ...] = ()

    # -- the client -------------------------------------------------------------------------------

    def ask(self, now: float) -> None:
        """Ask for servers, unless that was done just now."""
        core = self._core
        if now - self._asked_at < core.settings.retry:
            return
        self._asked_at = now
        if core.shown:  # servers of the own zone speak for themselves
            chosen = [core.rng.choice([*core.shown])]
        else:
            chosen = [] if core.zones is None else list(core.zones.delegates)
        if core.me in chosen:
            self._answer(core.me, now)
        for name in chosen:
            if name != core.me:
                core.effects.send(name, Bind(core.me, core.here(), 1))

    def on_bound(self, src: NodeId, message: Bound, now: float) -> None:
        """Ask through these from now on; an older table wins."""
        core = self._core
        core.heard[src] = now
        if not message.servers or (self.servers and 0 < self.table < message.table):
            return
        self.table, self.servers = message.table, message.servers
        core.meet(Group(0, message.servers))
        self._bound(now)

    def drop(self, name: NodeId) -> None:
        """That server does not answer: take another one, or ask for more."""
        self.servers = tuple(one for one in self.servers if one.name != name)

    # -- who is asked -----------------------------------------------------------------------------

    def on_bind(self, src: NodeId, message: Bind, now: float) -> None:
        """Name servers, if any are known here; else a delegate of this zone may know."""
        core = self._core
        core.heard[src] = now
        core.meet_asker(message.asker, message.endpoints)
        if not self._answer(message.asker, now) and message.hops < MOST_HOPS:
            delegates = () if core.zones is None else core.zones.delegates
            onward = [name for name in delegates if name not in (core.me, src, message.asker)]
            if onward:
                asked = Bind(message.asker, message.endpoints, message.hops + 1)
                core.effects.send(onward[0], asked)

    def _answer(self, asker: NodeId, now: float) -> bool:
        """The oldest table that delegates show, or this node's own."""
        core = self._core
        tables = {name: table for name, table in self._tables().items() if table}
        oldest = min(tables.values(), default=0)
        if core.number and (not oldest or core.number <= oldest) and core.lives:
            names = core.rng.sample(list(core.lives), min(MOST_SERVERS, len(core.lives)))
            servers = tuple(core.server(name) for name in names)
            self._tell(asker, Bound(core.number, core.bits, servers), now)
            return True
        zones = core.zones
        management = None if zones is None else zones.management
        if not oldest or management is None:
            return False
        found = []
        for name, table in tables.items():
            record = management.view.record(name)
            if table == oldest and record is not None:
                found.append(Member(name, 0, "", record.endpoints))
        core.rng.shuffle(found)
        self._tell(asker, Bound(oldest, 0, tuple(found[:MOST_SERVERS])), now)
        return bool(found)

    def _tell(self, asker: NodeId, message: Bound, now: float) -> None:
        if asker == self._core.me:
            self.on_bound(asker, message, now)
        else:
            self._core.effects.send(asker, message)
