"""How the members of a zone learn of other zones: they ask a delegate now and then."""

from __future__ import annotations

from math import inf

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from protocols.zones.core import Core
from protocols.zones.directory import Directory
from protocols.zones.interface import ZoneEntry
from protocols.zones.messages import PAGE_ZONES, TablePage, TableRequest
from protocols.zones.naming import is_zone_name
from protocols.zones.office import Office

POLL = "poll"
POLL_TIMEOUT = "poll-timeout"


class Tables:
    """Asks for the table of zones, or tells it, depending on what this node is."""

    def __init__(self, core: Core, office: Office, directory: Directory) -> None:
        self._core = core
        self._office = office
        self._directory = directory
        self._id = 0
        self._asked: NodeId = ""  # whose pages are awaited
        self._silent: NodeId = ""  # who did not answer the last time
        self._asked_at = -inf
        self._digest = b""
        self._pages: dict[int, tuple[ZoneEntry, ...]] = {}

    # -- asking ---------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Ask for the first time when there may be a delegate to ask."""
        self._later(now + self._core.settings.settle)

    def _later(self, at: float) -> None:
        core = self._core
        core.timers.set(POLL, at + core.rng.random() * core.settings.table_period)

    def delegates_changed(self, now: float) -> None:
        """Somebody new can be asked: soon, if nobody told anything yet."""
        core = self._core
        if core.management is None and not self._directory.zones():
            core.timers.hasten(POLL, now + core.rng.random() * core.settings.ask_timeout)

    def refresh(self, now: float) -> None:
        """Somebody cannot wait for the next time: ask now, but not more often than all answer."""
        core = self._core
        core.timers.hasten(POLL, max(now, self._asked_at + core.settings.ask_timeout))

    def on_alarm(self, now: float) -> None:
        """It is time to ask."""
        core = self._core
        self._asked_at = now
        core.timers.set(POLL, now + core.settings.table_period * (0.75 + core.rng.random() / 2))
        if core.management is None:
            self._ask(now)

    def _ask(self, now: float) -> None:
        """Ask the delegate that answered last, or another one."""
        core = self._core
        delegates = self._office.delegates
        answering = [name for name in delegates if name != self._silent] or list(delegates)
        if not answering:
            return
        if self._asked not in answering:
            self._asked = core.rng.choice(answering)
        self._id = core.next_id()
        self._pages.clear()
        core.timers.set(POLL_TIMEOUT, now + core.settings.ask_timeout)
        core.effects.send(self._asked, TableRequest(self._id, self._directory.digest))

    def on_timeout(self, now: float) -> None:
        """It kept silent: ask another one, at once, unless that was another one already."""
        again = not self._silent
        self._silent, self._asked, self._id = self._asked, "", 0
        if again and self._core.management is None:
            self._ask(now)

    def on_page(self, src: NodeId, page: TablePage, now: float) -> None:
        """Take a page; with the last one the table is replaced."""
        core = self._core
        if page.id != self._id or src != self._asked or core.management is not None:
            core.counts.late += 1
            return
        if page.pages and page.page >= page.pages:
            raise RemoteProtocolError("zones-bad-page", f"{page.page} of {page.pages}")
        if page.pages * PAGE_ZONES > core.settings.max_zones + PAGE_ZONES:
            raise RemoteProtocolError("zones-too-many", f"{page.pages} pages")
        if not all(is_zone_name(entry.name) for entry in page.zones):
            raise RemoteProtocolError("zones-bad-name", f"in a table from {src}")
        if page.pages:
            if page.digest != self._digest:
                self._digest = page.digest
                self._pages.clear()
            self._pages[page.page] = page.zones
            if len(self._pages) < page.pages:
                return
            self._directory.replace(
                entry for index in sorted(self._pages) for entry in self._pages[index]
            )
        self._pages.clear()
        self._id, self._silent = 0, ""
        core.timers.cancel(POLL_TIMEOUT)
        core.counts.tables_heard += 1

    # -- telling --------------------------------------------------------------------------------

    def on_request(self, src: NodeId, request: TableRequest, now: float) -> None:
        """Tell a member of my zone all zones, unless it knows them already."""
        core = self._core
        if core.management is None or not core.is_fellow(src):
            core.counts.strangers += 1  # a newcomer, or I was a delegate until now: it asks again
            return
        core.counts.tables_told += 1
        digest = self._directory.digest
        if digest == request.digest:
            core.effects.send(src, TablePage(request.id, digest))
            return
        zones = self._directory.zones()
        cuts = range(0, len(zones), PAGE_ZONES) or range(1)
        for page, at in enumerate(cuts):
            core.effects.send(
                src,
                TablePage(request.id, digest, page, len(cuts), zones[at : at + PAGE_ZONES]),
            )
