"""How operations of the hash table fail, and what to do then."""

from __future__ import annotations

from overlay.errors import OverlayError
from protocols.dht.interface import READS, Operation, Outcome, Status


class TableError(OverlayError):
    """An operation of the hash table had no result."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class OperationRefused(TableError):
    """Nothing was done: it may be tried again once the reason is gone."""


class OutcomeUnknown(TableError):
    """It may have taken effect, or still may: read the key before it is tried again."""


def failure(operation: Operation, outcome: Outcome) -> TableError:
    """The error for an outcome that is none."""
    name = operation.kind.name.lower().removesuffix("_value")
    what = f"{name}({shown(operation.key)}): {outcome.reason}"
    if outcome.status is Status.UNKNOWN and operation.kind not in READS:
        hint = "it may have been done, or still may: read the key before you try again"
        return OutcomeUnknown(f"{what}; {hint}", outcome.reason)
    return OperationRefused(f"{what}; nothing was done", outcome.reason)


def shown(key: bytes) -> str:
    """A key for people: text where it is some."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return repr(text if len(text) <= 64 else text[:61] + "…")
    return f"0x{key[:32].hex()}{'…' if len(key) > 32 else ''}"
