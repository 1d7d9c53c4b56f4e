"""What membership leaves in the traces besides its events: a digest of each new view."""

from __future__ import annotations

from functools import reduce
from operator import xor

from overlay.ids import NodeId, vid_of
from overlay.protocol import Effects
from overlay.tracing import Trace
from overlay.tracing.kinds import VIEW_CHANGED
from protocols.membership.records import Record
from protocols.membership.table import MemberTable
from protocols.membership.watching import Watcher


class ViewTracer(Watcher):
    """Tells the view once for each tick that changed it, while somebody records."""

    def __init__(self, effects: Effects, table: MemberTable) -> None:
        self._effects = effects
        self._table = table
        self._known: dict[NodeId, None] | None = None  # who is in the digest; None: nobody records
        self._digest = 0

    def member_present(self, record: Record, now: float) -> None:
        """One came."""
        self._changed(record.name)

    def member_gone(self, record: Record, now: float) -> None:
        """One went, if it was there."""
        self._changed(record.name)

    def _changed(self, name: NodeId) -> None:
        known = self._known
        if not self._effects.tracing:
            self._known = None
            return
        if known is not None:
            if (name in known) == (name in self._table):
                return
            self._digest ^= vid_of(name)
            if name in known:
                del known[name]
            else:
                known[name] = None
        self._effects.at_tick_end(self._tell)

    def _tell(self, _now: float) -> None:
        if self._known is None:
            self._known = dict.fromkeys(self._table.members())
            self._digest = reduce(xor, map(vid_of, self._known), 0)
        self._effects.trace(Trace(VIEW_CHANGED, count=len(self._known), key=f"{self._digest:032x}"))
