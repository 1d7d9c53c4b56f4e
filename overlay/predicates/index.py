"""A table of constraints by key that answers each relation at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from overlay.errors import LocalProtocolError
from overlay.predicates.constraint import Constraint
from overlay.predicates.items import Item
from overlay.predicates.relations import advertisement_covers, covers, intersects, matches

K = TypeVar("K", bound=Hashable)


class ConstraintIndex(Generic[K]):
    """Constraints under keys; every answer lists keys in the order in which they were added."""

    def __init__(self) -> None:
        self._constraints: dict[K, Constraint] = {}

    def add(self, key: K, constraint: Constraint) -> None:
        """Hold the constraint under a key that is not taken."""
        if key in self._constraints:
            raise LocalProtocolError(f"the index already has a constraint {key!r}")
        self._constraints[key] = constraint

    def remove(self, key: K) -> Constraint:
        """Forget the constraint under a key, and return it; LocalProtocolError if there is none."""
        if key not in self._constraints:
            raise LocalProtocolError(f"the index has no constraint {key!r}")
        return self._constraints.pop(key)

    def matching(self, item: Item) -> list[K]:
        """Of subscriptions: those that the item matches."""
        return [key for key, held in self._constraints.items() if matches(item, held)]

    def covering(self, subscription: Constraint) -> list[K]:
        """Of subscriptions: those that cover this one."""
        return [key for key, held in self._constraints.items() if covers(held, subscription)]

    def covered_by(self, subscription: Constraint) -> list[K]:
        """Of subscriptions: those that this one covers."""
        return [key for key, held in self._constraints.items() if covers(subscription, held)]

    def intersecting(self, subscription: Constraint) -> list[K]:
        """Of advertisements: those that intersect the subscription."""
        return [key for key, held in self._constraints.items() if intersects(held, subscription)]

    def intersected_by(self, advertisement: Constraint) -> list[K]:
        """Of subscriptions: those that the advertisement intersects."""
        return [key for key, held in self._constraints.items() if intersects(advertisement, held)]

    def advertisement_covering(self, advertisement: Constraint) -> list[K]:
        """Of advertisements: those that cover this one."""
        found = self._constraints.items()
        return [key for key, held in found if advertisement_covers(held, advertisement)]

    def advertisement_covered_by(self, advertisement: Constraint) -> list[K]:
        """Of advertisements: those that this one covers."""
        found = self._constraints.items()
        return [key for key, held in found if advertisement_covers(advertisement, held)]

    def __getitem__(self, key: K) -> Constraint:
        return self._constraints[key]

    def __contains__(self, key: object) -> bool:
        return key in self._constraints

    def __iter__(self) -> Iterator[K]:
        return iter(self._constraints)

    def __len__(self) -> int:
        return len(self._constraints)
