"""Services: constraints, as text where they travel or are kept, and when two of them overlap."""

from __future__ import annotations

from functools import lru_cache

from overlay.errors import RemoteProtocolError
from overlay.predicates import Constraint, PredicateError

REMEMBERED = 1 << 16  # texts and pairs of them: a busy broker meets the same again and again


@lru_cache(maxsize=REMEMBERED)
def read(text: str) -> Constraint:
    """The constraint that a peer wrote; RemoteProtocolError if it is none."""
    try:
        return Constraint.parse(text)
    except PredicateError as error:
        raise RemoteProtocolError("bad-service", str(error)) from None


@lru_cache(maxsize=REMEMBERED)
def written(service: Constraint) -> str:
    """As it travels: the one text of all equal constraints."""
    return str(service)


@lru_cache(maxsize=REMEMBERED)
def same_text(text: str) -> str:
    """The text by which a service that a peer wrote is known here."""
    return written(read(text))


@lru_cache(maxsize=4 * REMEMBERED)
def texts_overlap(one: str, other: str) -> bool:
    """The same of texts."""
    return overlap(read(one), read(other))


def overlap(one: Constraint, other: Constraint) -> bool:
    """Tell whether some resource satisfies both (§3): where both say something, their values meet.

    An attribute that only one of them names is free in the other.
    """
    theirs = other.spans
    return all(name not in theirs or span.meets(theirs[name]) for name, span in one.spans.items())
