"""The demo's dashboard: its address is told at the start, and offered at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from nodes.dashboard import check_installed
from overlay.errors import ConfigError

STAY = 300.0  # s in a terminal, unless somebody says otherwise: people look, then press Ctrl-C


@asynccontextmanager
async def dashboard_of(folder: Path, say: Callable[[str], None]) -> AsyncIterator[str]:
    """Serve a page about the peers of that folder; its address, or none where it cannot be."""
    try:
        check_installed()
    except ConfigError as error:
        say(str(error))
        yield ""
        return
    from nodes.dashboard.server import serving

    async with serving("127.0.0.1:0", folder=folder) as running:
        yield running.url


class Stay:
    """The time after the last act, in which peers go on for whoever looks; a Ctrl-C ends it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._scope: trio.CancelScope | None = None

    async def wait(self) -> None:
        """Until the time is over, or `end`."""
        with trio.move_on_after(self.seconds) as self._scope:
            await trio.sleep_forever()
        self._scope = None

    def end(self) -> bool:
        """End it; False when it has not begun, or is over."""
        if self._scope is None:
            return False
        self._scope.cancel()
        return True
