"""How busy this machine and this node are, as brokers tell it: read from the kernel at times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from protocols.discovery import Usage

FRESH = 0.5  # s that a reading counts


class UsageMeter:
    """Reads CPU and memory from /proc; a system without it tells zeros, and is trusted less."""

    def __init__(self, connections: Callable[[], int], links: Callable[[], int]) -> None:
        self._connections = connections
        self._links = links
        self._read_at = 0.0
        self._cpu = 0.0
        self._busy_before, self._total_before = _processor_times()
        self._memory = (0, 0)

    def __call__(self) -> Usage:
        """The usage now."""
        now = time.monotonic()
        if now - self._read_at > FRESH:
            self._read_at = now
            self._read()
        total, used = self._memory
        return Usage(self._connections(), self._links(), self._cpu, total, used)

    def _read(self) -> None:
        busy, total = _processor_times()
        if total > self._total_before:
            share = (busy - self._busy_before) / (total - self._total_before)
            self._cpu = min(1.0, max(0.0, share))
            self._busy_before, self._total_before = busy, total
        self._memory = _memory()


def _processor_times() -> tuple[float, float]:
    """Ticks of all processors since the start: busy ones, and all."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as file:
            ticks = [float(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0.0, 0.0
    idle = sum(ticks[3:5])
    return sum(ticks) - idle, sum(ticks)


def _memory() -> tuple[int, int]:
    """Bytes in all, and those in use."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = os.sysconf("SC_PHYS_PAGES") * page
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return total, 0
    return total, max(0, total - free * 1024)
