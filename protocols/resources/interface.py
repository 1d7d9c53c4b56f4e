"""What resource discovery is given by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from overlay.ids import NodeId

RoundTrip: TypeAlias = Callable[[NodeId], float | None]
"""The round trip to a node in seconds, as this node measured it for whatever reason; or None."""


def unknown(_peer: NodeId) -> float | None:
    """Where nobody measures."""
    return None
