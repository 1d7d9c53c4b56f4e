"""News on its way: which to pass on next, how often, and how much fits into a packet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from protocols.membership.attributes import Attribute
from protocols.membership.counts import MembershipCounts
from protocols.membership.records import Record


class _Item(Protocol):
    @property
    def cost(self) -> int:
        """Bytes in a packet."""


I = TypeVar("I", bound=_Item)  # noqa: E741 - an item


class _Queue(Generic[I]):
    """The newest news first, then what was passed on least recently."""

    __slots__ = ("_counts", "_entries", "_limit", "bytes")

    def __init__(self, limit: int, counts: MembershipCounts) -> None:
        self._entries: OrderedDict[Hashable, tuple[I, int, int]] = OrderedDict()  # left, cost
        self._limit = limit
        self._counts = counts
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, key: Hashable, item: I, repeats: int) -> None:
        """Queue it in front, instead of older news of the same key."""
        older = self._entries.pop(key, None)
        if older is not None:
            self.bytes -= older[2]
        cost = item.cost
        self._entries[key] = (item, repeats, cost)
        self._entries.move_to_end(key, last=False)
        self.bytes += cost
        if len(self._entries) > self._limit:
            _, oldest = self._entries.popitem()
            self.bytes -= oldest[2]
            self._counts.news_dropped += 1

    def update(self, key: Hashable, item: I) -> None:
        """If news of that key is on its way, pass this on instead."""
        entry = self._entries.get(key)
        if entry is not None:
            cost = item.cost
            self._entries[key] = (item, entry[1], cost)
            self.bytes += cost - entry[2]

    def echo(self, key: Hashable) -> None:
        """A peer tells me the same: it goes round without me, so I pass it on once less."""
        entry = self._entries.get(key)
        if entry is not None:
            item, left, cost = entry
            if left > 1:
                self._entries[key] = (item, left - 1, cost)
            else:
                del self._entries[key]
                self.bytes -= cost

    def take(self, room: int, receivers: int) -> tuple[tuple[I, ...], int]:
        """What fits into `room` bytes, but at least one, and what that takes.

        It counts as passed on to `receivers`.
        """
        entries = self._entries
        taken: list[I] = []
        used = 0
        for _ in range(len(entries)):
            key, (item, left, cost) = next(iter(entries.items()))
            if taken and used + cost > room:
                break
            taken.append(item)
            used += cost
            if left <= receivers:
                del entries[key]
                self.bytes -= cost
            else:
                entries[key] = (item, left - receivers, cost)
                entries.move_to_end(key)
        return tuple(taken), used


NOTHING: tuple[tuple[Record, ...], tuple[Attribute, ...]] = ((), ())


class Rumours:
    """States of members and attributes, each with half of every packet reserved.

    So a wave of joins never crowds attributes out (memberlist #299), nor the other way round.
    """

    __slots__ = ("attributes", "states")

    def __init__(self, max_members: int, max_attributes: int, counts: MembershipCounts) -> None:
        self.states: _Queue[Record] = _Queue(max_members, counts)
        self.attributes: _Queue[Attribute] = _Queue(max_attributes, counts)

    def __bool__(self) -> bool:
        return self.states.bytes > 0 or self.attributes.bytes > 0  # everything takes some

    def take(
        self, room: int, receivers: int = 1
    ) -> tuple[tuple[Record, ...], tuple[Attribute, ...]]:
        """The next packet's news."""
        if not self:
            return NOTHING
        states, used = self.states.take(room - min(room // 2, self.attributes.bytes), receivers)
        attributes, _ = self.attributes.take(room - min(used, room // 2), receivers)
        return states, attributes
