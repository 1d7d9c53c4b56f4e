"""The demo's resources: every peer shares its machine, and one of them finds all."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from nodes.control import follow

QUERY = "memory >= 1"
PATIENCE = 60.0  # s until every broker knows every machine


class FindReport(msgspec.Struct):
    """What was asked, and what came back."""

    query: str
    asked: str  # the peer
    machines: list[str]  # their owners
    seconds: float  # of the find that had them all
    zones: int

    def told(self) -> str:
        """The outcome in a line."""
        return (
            f'{self.asked} finds {len(self.machines)} machines with "{self.query}" in'
            f" {self.zones} zones, in {self.seconds * 1000:.0f} ms"
        )


async def find_all(user: Path, asked: str, zones: dict[str, str]) -> FindReport:
    """Ask until the machines of all peers are found; `zones` has the zone of each."""
    with trio.fail_after(PATIENCE):
        while True:
            began = time.monotonic()
            *found, end = await trio.to_thread.run_sync(partial(_find, user))
            took = time.monotonic() - began
            owners = sorted(one["owner"] for one in found)
            if end["complete"] and owners == sorted(zones):
                count = len({zones[one] for one in owners})
                return FindReport(QUERY, asked, owners, took, count)
            await trio.sleep(0.1)


def _find(user: Path) -> list[dict[str, Any]]:
    return list(follow(user, "find", timeout=PATIENCE, query=QUERY, fresh=True))
