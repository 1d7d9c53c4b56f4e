"""Predicates: a condition on one attribute."""

from __future__ import annotations

import re

import msgspec

from overlay.predicates.spans import OPERATORS, ORDERING, PREFIX, PRESENT
from overlay.predicates.values import PredicateError, Value, check_value, kind_of

MAX_ATTRIBUTE = 64  # characters of a name

_NAME = re.compile(r"[^\W\d][\w.-]*")


class Predicate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A condition on one attribute: `Predicate("memory", ">=", 2)`, `Predicate("gpu", "present")`.

    A value of another kind than the predicate's satisfies only `present`: `!=` as well asks for
    a value of its kind, but another one.
    """

    attribute: str
    operator: str  # one of OPERATORS
    value: Value | None = None  # None for `present` alone

    def check(self) -> Predicate:
        """Return this predicate if it is well formed; otherwise PredicateError says why not."""
        name, operator, value = check_attribute(self.attribute), self.operator, self.value
        if operator not in OPERATORS:
            raise PredicateError(
                f"{name}: no operator {operator[:16]!a}: use one of {' '.join(OPERATORS)}"
            )
        if operator == PRESENT:
            if value is not None:
                raise PredicateError(f"{name}: 'present' takes no value")
            return self
        if value is None:
            raise PredicateError(f"{name}: {operator!r} needs a value")
        try:
            kind = kind_of(check_value(value))
        except PredicateError as error:
            raise PredicateError(f"{name}: {error}") from None
        if operator == PREFIX and not isinstance(value, str):
            raise PredicateError(f"{name}: 'prefix' needs a text, not a {kind.name}")
        if operator in ORDERING and not kind.ordered:
            raise PredicateError(f"{name}: a {kind.name} has no order: use = or !=")
        return self


def check_attribute(name: object) -> str:
    """Return the name if an attribute may have it; otherwise PredicateError says why not."""
    if type(name) is not str:
        raise PredicateError(f"the name of an attribute is a str, not {type(name).__name__}")
    if len(name) > MAX_ATTRIBUTE:
        raise PredicateError(
            f"the name of an attribute has {len(name)} characters: at most {MAX_ATTRIBUTE}"
        )
    if not _NAME.fullmatch(name):
        raise PredicateError(
            f"an attribute cannot be called {name!a}: a letter or _, then letters, digits, _ . -"
        )
    return name
