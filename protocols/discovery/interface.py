"""What the machines of discovery are given: a clock that brokers share, and who may be what."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from overlay.ids import NodeId

Clock: TypeAlias = Callable[[float], float]
"""The node's time (`now`) as overlay time."""

ClockError: TypeAlias = Callable[[], float]
"""How far overlay time may be off, in seconds."""

MayBe: TypeAlias = Callable[[NodeId, str], bool]
"""Whether that name's certificate allows the role "broker" or "bdn"."""


def own_clock(now: float) -> float:
    """For nodes whose clocks agree by themselves."""
    return now


def anybody(_name: NodeId, _role: str) -> bool:
    """Where nobody has certificates."""
    return True
