"""How a table begins, and how servers find the one that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overlay.ids import NodeId, vid_of
from protocols.dht.core import Core, founding_of
from protocols.dht.events import TableJoined
from protocols.dht.messages import MOST, TableKnown, TableRequest

FOUND = "found"
ASKED_AT_ONCE = 3
OTHERS_WAIT = 4  # × found_after


class Founder:
    """`joined` hears that this node knows its table; `tables` names delegates that show one."""

    def __init__(
        self,
        core: Core,
        joined: Callable[[float], None],
        tables: Callable[[], Mapping[NodeId, int]],
    ) -> None:
        self._core = core
        self._tables = tables
        self._joined = joined
        self._alone_since: float | None = None

    def begin(self, now: float) -> None:
        """Look for a table, until one is known."""
        if FOUND not in self._core.timers:
            self._alone_since = now
            self._core.timers.set(FOUND, now)

    def on_alarm(self, now: float) -> None:
        """Ask around; found a table when it is this node's turn and nobody knows of any."""
        core, settings = self._core, self._core.settings
        if core.table is not None:
            return
        core.timers.set(FOUND, now + settings.retry)
        inside = [name for name, (_, table) in core.shown.items() if table]
        chosen = core.rng.sample(inside, min(ASKED_AT_ONCE, len(inside)))
        senior = self._senior()
        shown: list[NodeId] = []
        if core.zones is not None and settings.serve:  # others ask through a server
            chosen += [name for name in core.zones.delegates if name != core.me]
            shown += [name for name in self._tables() if name != core.me]
        chosen += core.rng.sample(shown, min(ASKED_AT_ONCE, len(shown)))
        for name in dict.fromkeys(chosen):
            core.effects.send(name, TableRequest())
        if self._alone_since is None or not self._federated():
            self._alone_since = now
        if inside or shown or core.oldest:
            return  # somebody has one, and tells of it when asked
        # Of several zones without a table the first one founds it; the others wait longer.
        first = not core.tier or core.tier[0][0] == core.zone
        patience = settings.found_after * (1 if first else OTHERS_WAIT)
        turn = senior == core.me and len(core.lives) >= settings.founders > 0
        if turn and now - self._alone_since >= patience:
            self._found(now)

    def _federated(self) -> bool:
        """Whether delegates of this zone have had a look at the others."""
        zones = self._core.zones
        return zones is None or bool(zones.zones())

    def _senior(self) -> NodeId | None:
        view = self._core.base.view
        born = {}
        for name in self._core.lives:
            record = view.record(name)
            if record is not None:
                born[name] = (record.born, vid_of(name))
        return min(born, key=lambda name: born[name]) if born else None

    def _found(self, now: float) -> None:
        core, settings = self._core, self._core.settings
        servers = tuple(core.server(name) for name in core.servers)[:MOST]
        number = max(int(now * 1000.0), 1) << 20 | core.rng.getrandbits(20)  # the older is less
        table = TableKnown(
            number, settings.shard_bits, settings.replicas, servers, settings.node_points
        )
        self._join(table, now, founded=True)
        others = [name for name in core.lives if name != core.me]
        if others:
            core.say_all(others, table)

    def on_table_request(self, src: NodeId, _message: TableRequest, now: float) -> None:
        """Tell of the table, if one is known."""
        core = self._core
        core.heard[src] = now
        if core.table is not None:
            core.effects.send(src, core.table)

    def on_table_known(self, src: NodeId, message: TableKnown, now: float) -> None:
        """Take part in it; who has a table stays with it."""
        core = self._core
        core.heard[src] = now
        if core.table is None:
            self._join(message, now, founded=False)
        elif core.table.table != message.table:
            core.counts.other_table += 1

    def _join(self, table: TableKnown, now: float, *, founded: bool) -> None:
        core = self._core
        core.vault.put_table(table)
        self.take(table)
        core.timers.cancel(FOUND)
        core.effects.emit(TableJoined(table.table, founded))
        self._joined(now)

    def take(self, table: TableKnown) -> None:
        """Compute the first groups of a table."""
        self._core.table = table
        self._core.founding = founding_of(table)
