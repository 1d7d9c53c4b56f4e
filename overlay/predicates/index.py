"""A table of constraints by key that answers each relation without a loop over them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import compress
from typing import Generic, TypeVar

from overlay.errors import LocalProtocolError
from overlay.predicates.constraint import Constraint
from overlay.predicates.items import Item
from overlay.predicates.lines import Bits, Relation, numbers
from overlay.predicates.relations import advertisement_covers, covers, intersects
from overlay.predicates.segment import Segment

K = TypeVar("K", bound=Hashable)

SPARSE = 12  # of so many constraints one at most is found: then each is looked for by itself
FLAGS = bytes.maketrans(b"01", b"\0\1")


class ConstraintIndex(Generic[K]):
    """Constraints under keys; every answer lists keys in the order in which they were added."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._owners: list[list[tuple[int, K]]] = []  # of each segment, by number; or what was
        self._places: dict[K, tuple[int, int]] = {}  # segment and number
        self._added = 0

    def add(self, key: K, constraint: Constraint) -> None:
        """Hold the constraint under a key that is not taken."""
        if key in self._places:
            raise LocalProtocolError(f"the index already has a constraint {key!r}")
        at = self._segment_for(constraint)
        number = self._segments[at].add(constraint)
        owners = self._owners[at]
        owner = (self._added, key)
        if number == len(owners):
            owners.append(owner)
        else:
            owners[number] = owner
        self._places[key] = (at, number)
        self._added += 1

    def remove(self, key: K) -> Constraint:
        """Forget the constraint under a key, and return it; LocalProtocolError if there is none."""
        constraint = self.get(key)
        if constraint is None:
            raise LocalProtocolError(f"the index has no constraint {key!r}")
        at, number = self._places.pop(key)
        self._segments[at].remove(number)
        return constraint

    def get(self, key: K) -> Constraint | None:
        """The constraint under a key, if there is one."""
        place = self._places.get(key)
        return None if place is None else self._segments[place[0]][place[1]]

    def matching(self, item: Item) -> list[K]:
        """Of subscriptions: those that the item matches."""
        found = [
            owners[number]
            for segment, owners in zip(self._segments, self._owners, strict=True)
            for number in segment.matching(item)
        ]
        return _in_order(found)

    def covering(self, subscription: Constraint) -> list[K]:
        """Of subscriptions: those that cover this one."""
        return self._keys(lambda segment: segment.named_by(subscription, Relation.COVERING, covers))

    def covered_by(self, subscription: Constraint) -> list[K]:
        """Of subscriptions: those that this one covers."""
        return self._keys(
            lambda segment: segment.naming(
                subscription, Relation.WITHIN, lambda held, given: covers(given, held)
            )
        )

    def intersecting(self, subscription: Constraint) -> list[K]:
        """Of advertisements: those that intersect the subscription."""
        return self._keys(
            lambda segment: segment.naming(subscription, Relation.MEETING, intersects)
        )

    def intersected_by(self, advertisement: Constraint) -> list[K]:
        """Of subscriptions: those that the advertisement intersects."""
        return self._keys(
            lambda segment: segment.named_by(
                advertisement, Relation.MEETING, lambda held, given: intersects(given, held)
            )
        )

    def advertisement_covering(self, advertisement: Constraint) -> list[K]:
        """Of advertisements: those that cover this one."""
        return self._keys(
            lambda segment: segment.naming(advertisement, Relation.COVERING, advertisement_covers)
        )

    def advertisement_covered_by(self, advertisement: Constraint) -> list[K]:
        """Of advertisements: those that this one covers."""
        return self._keys(
            lambda segment: segment.named_by(
                advertisement,
                Relation.WITHIN,
                lambda held, given: advertisement_covers(given, held),
            )
        )

    def __getitem__(self, key: K) -> Constraint:
        constraint = self.get(key)
        if constraint is None:
            raise KeyError(key)
        return constraint

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[K]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _segment_for(self, constraint: Constraint) -> int:
        for at, segment in enumerate(self._segments):
            if segment.has_room_for(constraint):
                return at
        self._segments.append(Segment())
        self._owners.append([])
        return len(self._segments) - 1

    def _keys(self, ask: Callable[[Segment], Bits]) -> list[K]:
        found: list[tuple[int, K]] = []
        for segment, owners in zip(self._segments, self._owners, strict=True):
            bits = ask(segment)
            if bits.bit_count() * SPARSE < len(owners):
                found += [owners[number] for number in numbers(bits)]
            else:
                found += compress(owners, f"{bits:b}"[::-1].encode().translate(FLAGS))
        return _in_order(found)


def _in_order(found: list[tuple[int, K]]) -> list[K]:
    found.sort()  # by when they were added: no two are equal there, so keys never compare
    return [key for _, key in found]
