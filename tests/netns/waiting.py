"""Waiting for a condition instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

Found = TypeVar("Found")

WITHIN = 60.0  # seconds: generous, since only a failure ever waits so long
LOOK_EVERY = 0.02  # seconds


def until(
    condition: Callable[[], Found],
    *,
    within: float = WITHIN,
    every: float = LOOK_EVERY,
    what: str = "",
) -> Found:
    """Look until the condition is true, and return what it gave; AssertionError after `within`."""
    deadline = time.monotonic() + within
    pause = Event()  # never set: it only bounds how often the condition is looked at
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            awaited = what or getattr(condition, "__name__", "the condition")
            raise AssertionError(f"waited {within:g} s for {awaited}; last seen: {found!r}")
        pause.wait(every)
