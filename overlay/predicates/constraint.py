"""Constraints: conjunctions of predicates, as subscriptions, advertisements and queries are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.predicates.items import Item, check_item
from overlay.predicates.predicate import Predicate
from overlay.predicates.readable import parse_predicates, readable
from overlay.predicates.spans import Span, span_of
from overlay.predicates.values import PredicateError, Value

MAX_PREDICATES = 64  # of one constraint

WireConstraint: TypeAlias = Annotated[
    tuple[Predicate, ...], msgspec.Meta(max_length=MAX_PREDICATES)
]
"""The type of a message's field that carries a constraint."""


class Constraint:
    """A conjunction of predicates, normalised: equal constraints ask for the same.

    It has one span at most for each attribute and never an empty one: what nothing can satisfy
    is refused. The constraint without predicates asks for nothing.
    """

    __slots__ = ("_hash", "_spans", "_text")

    def __init__(self, spans: Mapping[str, Span]) -> None:
        """From spans that are already right; others call `of`, `parse` or `from_wire`."""
        self._spans = dict(sorted(spans.items()))
        self._hash = hash(tuple(self._spans.items()))
        self._text: str | None = None  # once it was asked for

    @classmethod
    def of(cls, *predicates: Predicate) -> Constraint:
        """All of these at once."""
        return cls(_spans((predicate.check(), None) for predicate in predicates))

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """From the readable form: `system = "Linux", memory >= 2`."""
        return cls(_spans(parse_predicates(text)))

    @classmethod
    def exactly(cls, item: Item) -> Constraint:
        """That every attribute of the item is there, with the item's value."""
        return cls.of(*(Predicate(name, "=", value) for name, value in check_item(item).items()))

    @classmethod
    def from_wire(cls, predicates: Sequence[Predicate]) -> Constraint:
        """As a peer sent it; RemoteProtocolError if it is not well formed."""
        try:
            return cls.of(*predicates)
        except PredicateError as error:
            raise RemoteProtocolError("bad-constraint", str(error)) from None

    def wire(self) -> tuple[Predicate, ...]:
        """As it travels in a field of type WireConstraint: the fewest predicates, in order."""
        return tuple(
            Predicate(name, operator, value)
            for name, span in self._spans.items()
            for operator, value in span.predicates()
        )

    def values(self) -> dict[str, Value]:
        """The attributes to which it leaves one value, and that value."""
        points = ((name, span.point) for name, span in self._spans.items())
        return {name: point for name, point in points if point is not None}

    @property
    def spans(self) -> Mapping[str, Span]:
        """The values that each attribute may have, by name in alphabetical order."""
        return self._spans

    def __str__(self) -> str:
        if self._text is None:
            self._text = ", ".join(map(readable, self.wire()))
        return self._text

    def __repr__(self) -> str:
        return f"Constraint.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self._spans == other._spans

    def __hash__(self) -> int:
        return self._hash


def _spans(predicates: Iterable[tuple[Predicate, int | None]]) -> dict[str, Span]:
    """What checked predicates leave of each attribute; errors name the place where one stands."""
    spans: dict[str, Span] = {}
    for count, (predicate, position) in enumerate(predicates, 1):
        if count > MAX_PREDICATES:
            raise PredicateError(f"over {MAX_PREDICATES} predicates in a constraint", position)
        wanted = span_of(predicate.operator, predicate.value)
        before = spans.get(predicate.attribute)
        if wanted is not None and before is not None:
            wanted = before.narrowed(wanted)
        if wanted is None:
            raise PredicateError(_contradiction(predicate, before), position)
        spans[predicate.attribute] = wanted
    return spans


def _contradiction(predicate: Predicate, before: Span | None) -> str:
    if before is None:
        return f"nothing can satisfy {readable(predicate)}"
    others = ", ".join(
        readable(Predicate(predicate.attribute, operator, value))
        for operator, value in before.predicates()
    )
    return f"{readable(predicate)} contradicts {others}: no value satisfies both"
