"""The four reliability modes of §3.1.1."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, TypeAlias, get_args

Reliability: TypeAlias = Literal["unordered", "ordered", "ack", "nack"]
"""How people name a mode."""

_NAMES: tuple[Reliability, ...] = get_args(Reliability)  # once: rows of the traces ask for each


class Mode(IntEnum):
    """How people's names travel."""

    UNORDERED = 0  # handed over on arrival; duplicates and losses are allowed
    ORDERED = 1  # in order, no duplicates; losses are allowed
    ACK = 2  # in order, once, all of it: the sender knows its receivers and waits for them
    NACK = 3  # in order, once, all of it or a Gap: receivers ask for what they lack


def mode_of(reliability: Reliability) -> Mode:
    """The mode of that name."""
    return Mode(_NAMES.index(reliability))


def name_of(mode: Mode) -> Reliability:
    """What people call it."""
    return _NAMES[mode]
