"""Grafts: from where, besides its anchor, publications of an advertisement come.

An advertisement's tree is rooted at its *anchor*, the broker that told it. A publisher that moved
is a *source* elsewhere on that tree. Each broker between sources knows on which sides of it there
are any: branches tell it upwards, to their last hop, whenever there is one behind them; and the
last hop answers whether there is any other. Nobody else is told, since nothing changes for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from overlay.ids import NodeId
from protocols.content.interface import Advertised, EntryId
from protocols.content.messages import GraftLine
from protocols.content.srt import Srt


class Graft(NamedTuple):
    """What one hop says of the sources on its side: a row of the table."""

    id: EntryId
    epoch: int
    up: bool
    live: bool
    hop: NodeId


_NOBODY: Mapping[NodeId, Graft] = MappingProxyType({})


class Grafts:
    """All rows by id and hop, and what follows from them for an advertisement."""

    def __init__(self, me: NodeId, srt: Srt) -> None:
        self._me = me
        self._srt = srt
        self._rows: dict[EntryId, dict[NodeId, Graft]] = {}
        self.resting: dict[EntryId, None] = {}  # this broker is their anchor, and has no publisher

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, entry: EntryId) -> Mapping[NodeId, Graft]:
        """What each hop says of it."""
        return self._rows.get(entry, _NOBODY)

    def put(self, row: Graft) -> None:
        """A hop says so."""
        self._rows.setdefault(row.id, {})[row.hop] = row

    def remove(self, entry: EntryId, hop: NodeId) -> bool:
        """A hop says nothing of it any more."""
        rows = self._rows.get(entry)
        gone = None if rows is None else rows.pop(hop, None)
        if not rows:
            self._rows.pop(entry, None)
        return gone is not None

    def branches(self, one: Advertised) -> list[NodeId]:
        """The neighbours behind which there are sources, as seen from the anchor."""
        return [
            hop
            for hop, row in self.rows(one.id).items()
            if row.up and row.epoch == one.epoch and hop != one.hop
        ]

    def is_source(self, one: Advertised) -> bool:
        """Whether somebody publishes it here: a client, this node, or who they may soon be."""
        return any(
            self._publishes(offer, one)
            for offer in self._srt.offers(one.id).values()
            if not offer.path
        )

    def _publishes(self, offer: Advertised, one: Advertised) -> bool:
        if self._srt.is_withheld(offer) or (offer.hop == self._me and offer.id in self.resting):
            return False
        return offer == one or 0 < offer.graft <= one.epoch <= offer.epoch

    def is_live_above(self, one: Advertised) -> bool:
        """Whether there may be a source on the anchor's side; it may, until it says no."""
        row = self.rows(one.id).get(one.hop)
        return row is None or row.up or row.epoch != one.epoch or row.live

    def towards(self, one: Advertised) -> tuple[NodeId, ...]:
        """The hops to which subscriptions go that want it."""
        branches = self.branches(one)
        if not branches and (not one.path or not self.is_source(one)):
            return (one.hop,)
        return (*branches, one.hop) if self.is_live_above(one) else tuple(branches)

    def line(self, peer: NodeId, one: Advertised, *, covers: bool) -> GraftLine | None:
        """What a neighbour must be told; `covers`: subscriptions to others come here for it."""
        branches = self.branches(one)
        if peer == one.hop:
            if branches or self.is_source(one):
                return GraftLine(one.id, one.epoch, True)
        elif peer in branches:
            live = covers or len(branches) > 1 or self.is_source(one)
            live = live or (bool(one.path) and self.is_live_above(one))
            return GraftLine(one.id, one.epoch, False, live)
        return None
