"""What changed of a view, found once and told to all pages that show it."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from nodes.dashboard.patches import difference, without_nulls
from nodes.dashboard.views import view_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from nodes.dashboard.hub import Hub

GAP = 0.5  # s between two patches of a view: faster than people read, slower than a storm
KEPT = 16  # patches; a page that is further behind gets the whole view again
ALIVE = 15.0  # s after which a silent stream says that it lives
MOST_PAGES = 64


class TooManyPages(Exception):
    """More pages than `MOST_PAGES` are open."""


class Channel:
    """One view, and the pages that show it."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.pages = 0
        self.number = 0  # of the last patch
        self.scope = trio.CancelScope()
        self._hub = hub
        self._build, self._wants = view_of(name)
        self._model: dict[str, Any] = {}
        self._patches: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._news = trio.Event()
        self._whole = (-1, b"")

    async def run(self) -> None:
        """Follow the hub until nobody looks any more."""
        with self.scope:
            for want in self._wants:
                self._hub.add_want(want)
            try:
                while True:
                    version = self._hub.version
                    self._look()
                    await trio.sleep(GAP if self.number > 1 else GAP / 10)
                    await self._hub.later_than(version)
            finally:
                for want in self._wants:
                    self._hub.drop_want(want)

    def _look(self) -> None:
        model = without_nulls(self._build(self._hub))
        patch = difference(self._model, model)
        if patch or not self.number:
            self.number += 1
            self._patches.append((self.number, msgspec.json.encode(patch)))
            self._model = model
            self._news.set()
            self._news = trio.Event()

    async def after(self, seen: int) -> None:
        """Wait until there is a patch that a page has not seen."""
        while self.number == seen:
            await self._news.wait()

    def since(self, seen: int) -> list[bytes]:
        """Server-sent events that bring a page from what it has seen to now."""
        if seen and self._patches and self._patches[0][0] <= seen + 1:
            return [_event("patch", n, data) for n, data in self._patches if n > seen]
        if self._whole[0] != self.number:
            self._whole = (self.number, msgspec.json.encode(self._model))
        return [_event("state", self.number, self._whole[1])]


class Channels:
    """All views that are shown now."""

    def __init__(self, hub: Hub) -> None:
        self.pages = 0
        self.turned_away = 0
        self.bytes_sent = 0
        self._hub = hub
        self._open: dict[str, Channel] = {}

    async def stream(self, name: str) -> AsyncGenerator[bytes]:
        """Server-sent events of one page; KeyError when there is no such view."""
        with self._page(name) as channel:
            seen = 0
            while True:
                with trio.move_on_after(ALIVE) as patience:
                    await channel.after(seen)
                if patience.cancelled_caught:
                    parts = [b": alive\n\n"]
                else:
                    parts, seen = channel.since(seen), channel.number
                for part in parts:
                    self.bytes_sent += len(part)
                    yield part

    @contextmanager
    def _page(self, name: str) -> Iterator[Channel]:
        channel = self._open.get(name)
        if channel is None:
            channel = self._open[name] = Channel(self._hub, name)
            self._hub.nursery.start_soon(channel.run)
        channel.pages += 1
        self.pages += 1
        try:
            yield channel
        finally:
            self.pages -= 1
            channel.pages -= 1
            if not channel.pages:
                self._open.pop(name, None)
                channel.scope.cancel()

    def check_room(self, name: str) -> None:
        """KeyError when there is no such view; TooManyPages when there is no room."""
        view_of(name)
        if self.pages >= MOST_PAGES:
            self.turned_away += 1
            raise TooManyPages


def _event(kind: str, number: int, data: bytes) -> bytes:
    return b"event: %s\nid: %d\ndata: %s\n\n" % (kind.encode(), number, data)
