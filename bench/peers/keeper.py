"""What the hash table's benchmark needs of those who compete: who keeps keys, and how fast.

Each is used as its own documentation does: one client, one operation after the other, and, where
it has a way to send many at once, that way as well.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from bench.peers.carrier import Served

WARM_UP = 100  # operations that are not counted


class Keeper(Served):
    """Somebody who keeps values by their keys."""

    how: ClassVar[str]  # how many copies of a value there are, and when a write is acknowledged
    share: ClassVar[float] = 1.0  # of the sequential operations: a second or two

    @abstractmethod
    def measure(self, port: int, load: Any) -> dict[str, Any]:
        """Fill it, then measure: `get` and `put` are lists of nanoseconds, and `gets` and `puts`
        seconds for `load.many` operations, where many can be sent at once."""


def timed(operation: Callable[[bytes], object], keys: list[bytes]) -> list[int]:
    """One after the other; nanoseconds of each."""
    now, delays = time.perf_counter_ns, []
    for key in keys:
        began = now()
        operation(key)
        delays.append(now() - began)
    return delays[WARM_UP:]
