"""What to record of a run in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from overlay.tracing import Level


class Recording(NamedTuple):
    """Where the traces of a run go, and how much of them; `run` is made up if it is empty."""

    folder: Path
    level: Level = Level.ALL
    run: str = ""

    def run_of(self, scenario: str, seed: int, nodes: int) -> str:
        """What that run is called: the same for the same seed, so that it replaces itself."""
        return self.run or f"{scenario}-{nodes}-seed{seed}"
