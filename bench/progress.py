"""Tells on stderr how far a benchmark is: it may take minutes, and stdout is for its result."""

from __future__ import annotations

import sys
from time import monotonic


class Progress:
    """One line that is written over on a terminal, and is silent elsewhere."""

    def __init__(self, bench: str, steps: int) -> None:
        self._bench = bench
        self._steps = steps
        self._done = 0
        self._began = monotonic()
        self._shows = sys.stderr.isatty()

    def step(self, doing: str) -> None:
        """Begin the next step."""
        self._done += 1
        if not self._shows:
            return
        line = (
            f"{self._bench} {self._done}/{self._steps} ({monotonic() - self._began:.0f} s) {doing}"
        )
        end = "\n" if self._done == self._steps else ""
        print(f"\r\x1b[K{line[:100]}", end=end, file=sys.stderr, flush=True)
