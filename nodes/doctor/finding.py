"""What a check found, in words for people."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How bad it is."""

    WELL = "well"
    HINT = "hint"  # worth knowing, nothing to mend
    SKIPPED = "skipped"  # it could not be examined here
    WRONG = "wrong"


class Finding(msgspec.Struct, frozen=True):
    """One sentence, and what to do about it."""

    verdict: Verdict
    what: str
    fix: str = ""


def well(what: str) -> Finding:
    """All is as it should be."""
    return Finding(Verdict.WELL, what)


def hint(what: str, fix: str = "") -> Finding:
    """It works, but may surprise."""
    return Finding(Verdict.HINT, what, fix)


def skipped(what: str) -> Finding:
    """Nobody knows; the sentence says why."""
    return Finding(Verdict.SKIPPED, what)


def wrong(what: str, fix: str) -> Finding:
    """Something to mend, and how."""
    return Finding(Verdict.WRONG, what, fix)
