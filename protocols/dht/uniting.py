"""Two tables that meet become one: the younger moves its records into the older, and ends.

Servers that could not see each other may each have founded a table (`founders` prevents it). When
one hears of an older table it leaves its own: each leader stops, puts its records into the older
table where their keys are absent there, and lets its group decide to be empty.
"""

from __future__ import annotations

from collections.abc import Callable

from overlay.ids import NodeId
from protocols.dht.binding import Binder
from protocols.dht.changing import Changer
from protocols.dht.core import BATCH_BYTES, BATCH_ITEMS, Core
from protocols.dht.interface import Kind, Status
from protocols.dht.messages import Op, Reply, Request, Row
from protocols.dht.shard import Shard


class Removal:
    """The records of one shard that the older table does not have yet."""

    __slots__ = ("rows", "sent_at", "waiting")

    def __init__(self, rows: dict[bytes, Row]) -> None:
        self.rows = rows
        self.waiting: dict[int, bytes] = {}  # operations under way
        self.sent_at = float("-inf")


class Union:
    """`leave` ends this node's part in its own table, when nothing of it is left here."""

    def __init__(
        self,
        core: Core,
        changer: Changer,
        binder: Binder,
        leave: Callable[[float], None],
    ) -> None:
        self._core = core
        self._changer = changer
        self._binder = binder
        self._leave = leave
        self._removals: dict[int, Removal] = {}

    def __len__(self) -> int:
        return len(self._removals)

    def older(self) -> int:
        """The number of an older table than this node's; 0: there is none."""
        core = self._core
        known = [core.oldest, *(table for _, table in core.shown.values())]
        number = min((table for table in known if table), default=0)
        return number if 0 < number < core.number else 0

    def review(self, now: float) -> bool:
        """Go on with leaving this table; false when there is no older one."""
        core = self._core
        number = self.older() if core.table is not None else 0
        if not number:
            return False
        contacts = [name for name, (_, table) in core.shown.items() if table == number]
        if not contacts and self._binder.table == number:
            contacts = [one.name for one in self._binder.servers]
        if not contacts:
            self._binder.ask(now)
        seats = False
        for shard in list(core.shards.values()):
            seats = seats or shard.seated
            reign = shard.reign
            if reign is None or reign.recovering or shard.id in self._changer.changes:
                continue
            reign.closed = reign.frozen = True
            if not reign.inflight:
                self._move(shard, number, contacts, now)
        if not seats and not len(self._changer):  # all members know
            self._removals.clear()
            self._leave(now)
        return True

    def _move(self, shard: Shard, table: int, contacts: list[NodeId], now: float) -> None:
        core = self._core
        removal = self._removals.get(shard.id)
        if removal is None:
            rows = {key: shard.shelf.row(key, now) for key in shard.shelf.records}
            removal = Removal({key: row for key, row in rows.items() if row.value is not None})
            self._removals[shard.id] = removal
        if not removal.rows:
            del self._removals[shard.id]
            self._changer.begin(shard, (), now)
        elif contacts and now - removal.sent_at >= 4 * core.settings.retry:
            self._send(removal, table, core.rng.choice(contacts), now)

    def _send(self, removal: Removal, table: int, to: NodeId, now: float) -> None:
        core = self._core
        removal.sent_at = now
        removal.waiting.clear()
        ops: list[Op] = []
        size = 0
        for key, row in removal.rows.items():
            size += len(key) + len(row.value or b"")
            if ops and (size > BATCH_BYTES or len(ops) >= BATCH_ITEMS):
                break
            number = core.next_id()
            removal.waiting[number] = key
            ops.append(Op(number, 0, 0, Kind.PUT_IF_ABSENT, key, row.value or b"", b"", row.ttl))
        floor = min(removal.waiting)
        core.effects.send(to, Request(table, core.session, floor, tuple(ops)))

    def on_reply(self, _src: NodeId, message: Reply, now: float) -> None:
        """The older table has some more of them."""
        for removal in list(self._removals.values()):
            for result in message.results:
                key = removal.waiting.pop(result.id, None)
                if key is not None and result.status == Status.DONE:
                    self._core.counts.united += 1
                    self._core.counts.conflicts += not result.applied
                    removal.rows.pop(key, None)
                    if not removal.waiting:
                        removal.sent_at = float("-inf")
        if self._removals:
            self.review(now)
