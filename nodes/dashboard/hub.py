"""All nodes that are watched: whom to ask, for what, and how often."""

from __future__ import annotations

import time
from collections import deque
from contextlib import aclosing, suppress
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from nodes.control import SUFFIX, ControlError, name_of
from nodes.dashboard.sources import Look, SocketSource, Source
from nodes.facts import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Key: TypeAlias = tuple[str, str]
"""Overlay and name."""

LOOK_AROUND = 0.5  # s between two looks for nodes that started
AT_MOST = 20  # nodes asked in a second: what a watched zone pays does not grow with it
SOON = 0.3  # s between two questions to one node, whatever happens there
PATIENCE = 5.0  # s for an answer; then the node is silent, and its facts are old
AGAIN = 2.0  # s before a socket that refused is tried again
AFAR = 10.0  # s between two questions who is in a zone without a watched node
LATENCY = 10.0  # s between two measurements of a node that a page shows
HEARD = 2  # nodes of each zone that tell its events: one of them may be the one that is killed
SAME = 10.0  # s within which two of them tell of one thing
LOGGED = 1000  # events that are kept
RATES = 5.0  # s over which a rate is taken
GONE = (OSError, ControlError, trio.BrokenResourceError, trio.ClosedResourceError)


class Watched:
    """One node, and what it told last."""

    def __init__(self, source: Source, heading: dict[str, Any]) -> None:
        self.source = source
        self.name: str = heading["node"]
        self.overlay: str = heading["overlay"]
        self.zone: str = heading["zone"]
        self.facts: dict[str, Any] = {}
        self.looks: deque[tuple[float, Any]] = deque()  # at its topics, for rates
        self.round_trips: dict[str, float] = {}
        self.measured = 0.0
        self.silent = False  # it does not answer, though it did not hang up
        self.is_witness = False  # its word about its zone counts
        self.is_heard = False  # it tells the events of its zone
        self.wake = trio.Event()
        self.log_scope = trio.CancelScope()

    @property
    def key(self) -> Key:
        """Which one it is."""
        return self.overlay, self.name

    def take(self, changed: dict[str, Any], names: Iterable[str], now: float) -> None:
        """What it just told; what was asked and is not in there is as it was."""
        self.facts.update(changed)
        self.silent = False
        if "topics" in names and "topics" in self.facts:
            self.looks.append((now, self.facts["topics"]))
            while len(self.looks) > 2 and self.looks[1][0] < now - RATES:
                self.looks.popleft()


class Want:
    """What an open view needs: of all nodes, or of one."""

    def __init__(self, names: Iterable[str], of: Key | None = None) -> None:
        self.names = tuple(names)
        self.of = of


class Hub:
    """Watches nodes as long as it runs; `version` grows whenever something is known anew."""

    def __init__(self, folder: Path | None, sources: Iterable[Source] = (), only: str = "") -> None:
        self.nodes: dict[Key, Watched] = {}
        self.log: deque[tuple[int, dict[str, Any]]] = deque(maxlen=LOGGED)
        self.logged = 0
        self.afar: dict[tuple[str, str], dict[str, Any]] = {}  # zones without a watched node
        self._heard: dict[tuple[str, str, str], tuple[str, float]] = {}
        self.version = 0
        self._changed = trio.Event()
        self._wants: dict[Want, None] = {}
        self._folder = folder
        self._given = tuple(sources)
        self._only = only
        self._sources: dict[str, None] = {}
        self._nursery: trio.Nursery

    # -- life ---------------------------------------------------------------------------------

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled."""
        async with trio.open_nursery() as self._nursery:
            for source in self._given:
                self._begin(source)
            self._look_around()
            self._nursery.start_soon(self._look_afar)
            task_status.started()
            while True:
                await trio.sleep(LOOK_AROUND)
                self._look_around()

    @property
    def nursery(self) -> trio.Nursery:
        """For what lives as long as the hub."""
        return self._nursery

    def _look_around(self) -> None:
        for path in sorted(self._folder.glob(f"*{SUFFIX}")) if self._folder else ():
            wanted = not self._only or name_of(path) == self._only
            if path.name not in self._sources and wanted:
                self._begin(SocketSource(path))

    def _begin(self, source: Source) -> None:
        self._sources[source.order] = None
        self._nursery.start_soon(self._watch, source)

    async def _watch(self, source: Source) -> None:
        """One node from its first answer until it hangs up."""
        try:
            with suppress(*GONE):
                async with source.look() as look:
                    node = Watched(source, look.heading)
                    self._enter(node)
                    try:
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(self._follow_log, node)
                            await self._keep_asking(look, node)
                    except BaseExceptionGroup as group:
                        _, rest = group.split(GONE)
                        if rest is not None:
                            raise
                    finally:
                        self._leave(node)
            await trio.sleep(AGAIN)  # a socket that a killed node left refuses for ever
        finally:
            self._sources.pop(source.order, None)

    def _enter(self, node: Watched) -> None:
        known = {**self.nodes, node.key: node}
        self.nodes = dict(sorted(known.items(), key=lambda item: item[1].source.order))
        self._choose_witnesses()
        self.touch()

    def _leave(self, node: Watched) -> None:
        if self.nodes.get(node.key) is node:
            del self.nodes[node.key]
        self._choose_witnesses()
        self.touch()

    def _choose_witnesses(self) -> None:
        """The first node of each zone, as `overlay members` has it; events are heard from two."""
        zones: dict[tuple[str, str], int] = {}
        for node in self.nodes.values():
            before = zones.get((node.overlay, node.zone), 0)
            zones[node.overlay, node.zone] = before + 1
            if node.is_witness != (before == 0):
                node.is_witness = before == 0
                node.wake.set()
            if node.is_heard != (before < HEARD):
                node.is_heard = before < HEARD
                node.log_scope.cancel()

    # -- asking -------------------------------------------------------------------------------

    async def _keep_asking(self, look: Look, node: Watched) -> None:
        while True:
            names = self._names_for(node)
            if names:
                await look.ask(names)
                while True:
                    with trio.move_on_after(PATIENCE) as patience:
                        changed = await look.answer()
                    if not patience.cancelled_caught:
                        break
                    node.silent = True
                    self.touch()
                was_silent = node.silent
                node.take(changed, names, time.monotonic())
                if changed or was_silent or "topics" in names:
                    self.touch()
                if self._is_shown(node) and time.monotonic() - node.measured > LATENCY:
                    node.measured = time.monotonic()
                    self._nursery.start_soon(self._measure, node)
            await trio.sleep(SOON)
            with trio.move_on_after(self.period if names else inf):
                await node.wake.wait()
            node.wake = trio.Event()

    @property
    def period(self) -> float:
        """Seconds between two questions to a node at which nothing happens."""
        return max(1.0, len(self.nodes) / AT_MOST)

    def _names_for(self, node: Watched) -> list[str]:
        names: dict[str, None] = {}
        for want in self._wants:
            if want.of is None or want.of == node.key:
                for name in want.names:
                    if want.of is not None or self._may_tell(node, name):
                        names[name] = None
        return list(names)

    def _may_tell(self, node: Watched, name: str) -> bool:
        """Of a zone one tells, of all zones delegates: the others would say the same."""
        if name == "members":
            return node.is_witness
        if name == "zones":
            return node.is_witness or bool(node.facts.get("glance", {}).get("delegate"))
        return True

    def _is_shown(self, node: Watched) -> bool:
        return any(want.of == node.key for want in self._wants)

    async def _measure(self, node: Watched) -> None:
        with suppress(*GONE), trio.move_on_after(PATIENCE):
            node.round_trips = (await node.source.first("latency"))["round_trips"]
            self.touch()

    async def _look_afar(self) -> None:
        """Who is in zones of which no node is watched, while somebody looks at zones."""
        while True:
            if any("members" in want.names for want in self._wants):
                here = {(node.overlay, node.zone) for node in self.nodes.values()}
                wanted: dict[tuple[str, str], Watched] = {}
                for node in self.nodes.values():
                    for zone in node.facts.get("zones", {}).get("zones", ()):
                        if (node.overlay, zone["name"]) not in here and zone["size"]:
                            wanted.setdefault((node.overlay, zone["name"]), node)
                for gone in [key for key in self.afar if key not in wanted]:
                    del self.afar[gone]
                for key, node in wanted.items():
                    with suppress(*GONE), trio.move_on_after(PATIENCE):
                        self.afar[key] = await node.source.first("zone-members", zone=key[1])
                        self.touch()
                await trio.sleep(AFAR if wanted else 1.0)
            else:
                await trio.sleep(1.0)

    async def _follow_log(self, node: Watched) -> None:
        while True:
            with trio.CancelScope() as node.log_scope:
                told = node.source.follow("log", members=node.is_heard)
                with suppress(*GONE):
                    async with aclosing(told) as events:
                        async for event in events:
                            self._note(node, event)
            if not node.log_scope.cancelled_caught:
                return  # it hung up; whoever asks it hears so, too

    def _note(self, node: Watched, event: dict[str, Any]) -> None:
        if event["event"] == "watching" or self._is_known(node, event):
            return
        self.logged += 1
        facts = {
            "at": event["at"],
            "node": node.name,
            "zone": node.zone,
            "overlay": node.overlay,
            "event": event["event"],
            "says": sentence(event),
        }
        self.log.append((self.logged, facts))
        node.wake.set()
        if event["event"].startswith(("zone", "delegate", "member")):
            for other in self.nodes.values():
                if other.is_witness and other.overlay == node.overlay:
                    other.wake.set()
        self.touch()

    def _is_known(self, node: Watched, event: dict[str, Any]) -> bool:
        """Whether another one of its zone told this of the zone just now."""
        if not event["event"].startswith(("member", "attributes", "zone", "delegate")):
            return False  # links and topics are its own
        now = time.monotonic()
        self._heard = {one: told for one, told in self._heard.items() if now - told[1] < SAME}
        what = (node.overlay, node.zone, sentence(event))
        teller, _ = self._heard.setdefault(what, (node.name, now))
        return teller != node.name

    # -- who looks ----------------------------------------------------------------------------

    def add_want(self, want: Want) -> None:
        """Ask for this from now on."""
        self._wants[want] = None
        for node in self.nodes.values():
            node.wake.set()

    def drop_want(self, want: Want) -> None:
        """Ask for this no more."""
        self._wants.pop(want, None)

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks."""
        return bool(self._wants)

    def touch(self) -> None:
        """Something is known anew."""
        self.version += 1
        self._changed.set()
        self._changed = trio.Event()

    async def later_than(self, version: int) -> None:
        """Wait until something is known that was not at that version."""
        while self.version == version:
            await self._changed.wait()
