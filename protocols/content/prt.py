"""The publication routing table: subscriptions, and the hops that they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from overlay.ids import NodeId
from overlay.predicates import Constraint, ConstraintIndex, Item
from protocols.content.interface import EntryId, Subscribed

_NOBODY: Mapping[NodeId, Subscribed] = MappingProxyType({})


class Prt:
    """All subscriptions by id and hop."""

    def __init__(self, me: NodeId) -> None:
        self._me = me
        self._rows: dict[EntryId, dict[NodeId, Subscribed]] = {}
        self._by_model: dict[str, ConstraintIndex[tuple[EntryId, NodeId]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Subscribed]:
        return (row for rows in self._rows.values() for row in rows.values())

    def ids(self) -> list[EntryId]:
        """The ids of all subscriptions."""
        return list(self._rows)

    def rows(self, entry: EntryId) -> Mapping[NodeId, Subscribed]:
        """The subscription as each hop told it."""
        return self._rows.get(entry, _NOBODY)

    def best(self, entry: EntryId) -> Subscribed | None:
        """The shortest way to its subscriber that does not lead through this broker.

        None: nobody keeps it alive. What came back around a cycle is no reason to tell it on.
        """
        rows = self._rows.get(entry)
        if rows is None:
            return None
        ways = [row for row in rows.values() if self._me not in row.path]
        return min(ways, key=lambda row: (len(row.path), row.path, row.hop)) if ways else None

    def put(self, row: Subscribed) -> None:
        """A hop wants it."""
        self.remove(row.id, row.hop)
        self._rows.setdefault(row.id, {})[row.hop] = row
        self._by_model.setdefault(row.model, ConstraintIndex()).add(
            (row.id, row.hop), row.constraint
        )

    def remove(self, entry: EntryId, hop: NodeId) -> Subscribed | None:
        """A hop wants it no more."""
        rows = self._rows.get(entry)
        gone = None if rows is None else rows.pop(hop, None)
        if gone is not None:
            index = self._by_model[gone.model]
            index.remove((entry, hop))
            if not index:
                del self._by_model[gone.model]
            if not rows:
                del self._rows[entry]
        return gone

    def matching(self, item: Item, model: str) -> dict[NodeId, list[EntryId]]:
        """Who wants the item: the ids by hop."""
        found: dict[NodeId, list[EntryId]] = {}
        index = self._by_model.get(model)
        if index is not None:
            for entry, hop in index.matching(item):
                found.setdefault(hop, []).append(entry)
        return found

    def intersected_by(self, advertisement: Constraint, model: str) -> dict[EntryId, None]:
        """The ids of all subscriptions that an advertisement intersects."""
        index = self._by_model.get(model)
        if index is None:
            return {}
        return {entry: None for entry, _hop in index.intersected_by(advertisement)}
