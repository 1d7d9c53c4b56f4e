"""Who had what when: the central oracle against which finds are judged.

A complete find has every resource that matched from `expiry` before the request until the answer;
whatever a find has, matched and had these values at some moment of that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import inf

from overlay.predicates import Constraint, Item, matches
from protocols.resources.events import FindEnded, Resource


class Oracle:
    """The values of each resource since the beginning, None while it is not registered."""

    def __init__(self) -> None:
        self._history: dict[str, list[tuple[float, Item | None]]] = {}

    def note(self, resource: str, item: Item | None, now: float) -> None:
        """From now on it has these values."""
        self._history.setdefault(resource, []).append((now, item))

    def note_all_gone(self, owner: str, now: float) -> None:
        """A node is gone with all that it had."""
        for resource in self.present():
            if resource.startswith(f"{owner}/"):
                self.note(resource, None, now)

    def present(self) -> dict[str, Item]:
        """What is registered now."""
        last = {resource: known[-1][1] for resource, known in self._history.items()}
        return {resource: item for resource, item in last.items() if item is not None}

    def matching(self, wanted: Constraint) -> list[str]:
        """What a find would have, if nothing was under way."""
        return sorted(one for one, item in self.present().items() if matches(item, wanted))

    def owed(self, wanted: Constraint, start: float, end: float) -> list[str]:
        """What matched throughout that time."""
        return [
            resource
            for resource in self._history
            if self._matched_throughout(resource, wanted, start, end)
        ]

    def check(
        self,
        event: FindEnded,
        wanted: Constraint,
        start: float,
        end: float,
        owed: Iterable[str] | None = None,
    ) -> None:
        """Judge a find that may know things since `start`, and ended at `end`."""
        found = [one.id for one in event.resources]
        assert len(set(found)) == len(found), f"one came twice: {found}"
        for one in event.resources:
            self.check_resource(one, wanted, start, end)
        if event.complete:
            wanting = self.owed(wanted, start, end) if owed is None else owed
            missing = [one for one in wanting if one not in found]
            assert not missing, f"find {event.find} ({wanted}) lacks {missing}"

    def check_resource(self, one: Resource, wanted: Constraint, start: float, end: float) -> None:
        """It matches, and it was like that in that time."""
        assert matches(one.item, wanted), f"{one} does not match {wanted}"
        assert self._was(one, start, end), f"{one} was never like this from {start} to {end}"

    def _was(self, one: Resource, start: float, end: float) -> bool:
        known = [*self._history.get(one.id, ()), (inf, None)]
        return any(
            held == one.item and at <= end and until >= start
            for (at, held), (until, _) in pairwise(known)
        )

    def _matched_throughout(
        self, resource: str, wanted: Constraint, start: float, end: float
    ) -> bool:
        known = [*self._history[resource], (inf, None)]
        return known[0][0] <= start and all(
            held is not None and matches(held, wanted)
            for (at, held), (until, _) in pairwise(known)
            if at <= end and until > start
        )
