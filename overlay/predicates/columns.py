"""One attribute of many constraints: who names it, and the lines of the kinds that they want."""

from __future__ import annotations

from overlay.predicates.lines import Bits, Line, Relation
from overlay.predicates.spans import Span
from overlay.predicates.values import Kind


class Column:
    """Constraints by number, each with its span on this attribute."""

    __slots__ = ("anything", "lines", "named")

    def __init__(self) -> None:
        self.named: Bits = 0
        self.anything: Bits = 0  # who wants the attribute to be present, and no more
        self.lines: dict[Kind, Line] = {}

    def add(self, number: int, span: Span) -> Line | None:
        """The constraint of this number has this span; returns the line that it is in."""
        self.named |= 1 << number
        if span.kind is None:
            self.anything |= 1 << number
            return None
        line = self.lines.get(span.kind)
        if line is None:
            line = self.lines[span.kind] = Line(span.kind)
        line.add(number, span)
        return line

    def remove(self, number: int, span: Span) -> Line | None:
        """It has no longer; returns the line that it was in, if others are."""
        self.named ^= 1 << number
        if span.kind is None:
            self.anything ^= 1 << number
            return None
        line = self.lines[span.kind]
        line.remove(number, span)
        if line.all:
            return line
        del self.lines[span.kind]
        return None

    def failing(self, relation: Relation, given: Span) -> tuple[Bits, Bits]:
        """Who is surely not so related to the given span, and of whom it is not sure."""
        typed = self.named ^ self.anything
        if given.kind is None:
            return (typed if relation is Relation.COVERING else 0), 0
        unbounded = self.anything if relation is Relation.WITHIN else 0
        line = self.lines.get(given.kind)
        if line is None:
            return typed | unbounded, 0
        failing, unsure = line.failing(relation, given)
        return failing | typed ^ line.all | unbounded, unsure
