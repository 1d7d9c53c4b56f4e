"""Patterns of topics: who in a zone subscribes by which, and a bounded summary of them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overlay.ids import NodeId
from overlay.patterns import ANY, covers
from protocols.gateways.names import is_pattern

MAX_PATTERNS = 512  # of one member: an attribute holds no more


def read_patterns(value: object) -> tuple[tuple[str, ...], bool]:
    """The patterns of an attribute, one on each line, and whether all of them are patterns."""
    if value is None:
        return (), True
    if not isinstance(value, str):
        return (), False
    lines = [line for line in value.split("\n") if line]
    good = tuple(line for line in lines[:MAX_PATTERNS] if is_pattern(line))
    return good, len(good) == len(lines)


class Covering:
    """Members and their patterns."""

    def __init__(self) -> None:
        self._of: dict[NodeId, tuple[str, ...]] = {}
        self._members: dict[str, dict[NodeId, None]] = {}

    def put(self, member: NodeId, patterns: tuple[str, ...]) -> bool:
        """What a member subscribes to now; false when nothing changed."""
        before = self._of.get(member, ())
        if before == patterns:
            return False
        for pattern in before:
            self._members[pattern].pop(member, None)
            if not self._members[pattern]:
                del self._members[pattern]
        self._of.pop(member, None)
        if patterns:
            self._of[member] = patterns
            for pattern in patterns:
                self._members.setdefault(pattern, {})[member] = None
        return True

    @property
    def patterns(self) -> Mapping[str, Mapping[NodeId, None]]:
        """All patterns, and whose they are."""
        return self._members

    def subscribers(self, topic: str) -> dict[NodeId, None]:
        """Who subscribes to that topic by a pattern."""
        found: dict[NodeId, None] = {}
        for pattern, members in self._members.items():
            if covers(pattern, topic):
                found.update(members)
        return found


def summary(patterns: Iterable[str], room: int) -> str:
    """Patterns that cover all of these, one on each line, in `room` bytes; perhaps wider ones.

    They lose levels at their end, the deepest ones first, until they fit.
    """
    chosen = _without_covered(sorted(set(patterns)))
    deepest = max((pattern.count("/") + 1 for pattern in chosen), default=0)
    while chosen and len("\n".join(chosen).encode()) > room:
        deepest -= 1
        if deepest == 0:
            return ANY
        chosen = _without_covered(sorted({_cut(pattern, deepest) for pattern in chosen}))
    return "\n".join(chosen)


def _cut(pattern: str, levels: int) -> str:
    words = pattern.split("/")
    return pattern if len(words) <= levels else "/".join([*words[: levels - 1], ANY])


def _without_covered(patterns: list[str]) -> list[str]:
    """Without those that another one covers; of two that cover each other the first stays."""
    kept: list[str] = []
    for pattern in sorted(patterns, key=lambda one: (one.count("/"), one)):
        if not any(covers(other, pattern) for other in kept):
            kept = [other for other in kept if not covers(pattern, other)]
            kept.append(pattern)
    return sorted(kept)
