"""What the machines of discovery are given: a clock that brokers share, and who may be what."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from overlay.ids import NodeId

UNKNOWN = 1e9  # s: the error of a clock that agrees with nobody's


class Moment(NamedTuple):
    """Overlay time, and how far it may be off; seconds."""

    time: float
    error: float


Clock: TypeAlias = Callable[[float], Moment]
"""The node's time (`now`) as overlay time."""

MayBe: TypeAlias = Callable[[NodeId, str], bool]
"""Whether that name's certificate allows the role "broker" or "bdn"."""


def own_clock(now: float) -> Moment:
    """For nodes whose clocks agree by themselves."""
    return Moment(now, 0.0)


def anybody(_name: NodeId, _role: str) -> bool:
    """Where nobody has certificates."""
    return True
