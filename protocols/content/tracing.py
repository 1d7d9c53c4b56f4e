"""What content-based routing leaves in the traces: one row for the publications of a tick."""

from __future__ import annotations

import msgspec

from overlay.protocol import Effects
from overlay.tracing import Kind, Level, Trace
from overlay.tracing.kinds import CONTENT_DELIVERED, CONTENT_HANDED_ON, CONTENT_PUBLISHED
from protocols.content.interface import EntryId, owner_of
from protocols.content.messages import Publication


class Run(msgspec.Struct):
    """What one tick did with the publications of one advertisement."""

    kind: Kind
    first: int
    count: int
    hops: int


class Rows:
    """Gathers rows until the tick ends."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._runs: dict[tuple[str, EntryId, int], Run] = {}

    def published(self, msg: Publication) -> None:
        """This node published it."""
        if self._effects.tracing:
            self._add(CONTENT_PUBLISHED, msg, 1)

    def delivered(self, msg: Publication) -> None:
        """A subscription of this node got it."""
        if self._effects.tracing:
            self._add(CONTENT_DELIVERED, msg, 1)

    def handed_on(self, msg: Publication, copies: int) -> None:
        """It went on to so many."""
        if self._effects.tracing >= Level.MESSAGES:
            self._add(CONTENT_HANDED_ON, msg, copies)

    def _add(self, kind: Kind, msg: Publication, count: int) -> None:
        key = (kind.name, msg.advertisement, msg.epoch)
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = Run(kind, msg.sequence, 0, msg.hops)
            self._effects.at_tick_end(self._flush)
        run.count += count
        run.hops = max(run.hops, msg.hops)

    def _flush(self, now: float) -> None:
        runs, self._runs = self._runs, {}
        for (_, entry, epoch), run in runs.items():
            self._effects.trace(
                Trace(
                    run.kind,
                    origin=owner_of(entry),
                    stream=epoch,
                    first=run.first,
                    count=run.count,
                    hops=run.hops,
                    key=entry,
                )
            )
