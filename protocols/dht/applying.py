"""What each kind of operation makes of a value, and what it answers: no state, no time."""

from __future__ import annotations

from typing import NamedTuple

from protocols.dht.interface import READS, Kind


class Effect(NamedTuple):
    """The value after an operation, whether it wrote one, and its answer."""

    after: bytes | None
    wrote: bool
    applied: bool
    answer: bytes | None = None


def apply(kind: Kind, before: bytes | None, value: bytes, expected: bytes) -> Effect:
    """Do one operation on a value; None: the key has none (§2.3)."""
    exists = before is not None
    if kind in READS:
        return Effect(before, False, exists, before if kind is Kind.GET else None)
    if kind is Kind.PUT:
        return Effect(value, True, True)
    if kind is Kind.PUT_AND_RETRIEVE:
        return Effect(value, True, True, before)
    if kind is Kind.PUT_IF_ABSENT:
        return Effect(before, False, False) if exists else Effect(value, True, True)
    if kind is Kind.REPLACE:
        return Effect(value, True, True, before) if exists else Effect(None, False, False)
    if kind is Kind.REPLACE_VALUE:
        holds = before == expected
        return Effect(value if holds else before, holds, holds)
    if kind is Kind.REMOVE:
        return Effect(None, exists, exists)
    holds = before == expected  # Kind.REMOVE_VALUE
    return Effect(None if holds else before, holds, holds)
