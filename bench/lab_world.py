"""A zone that nobody runs: the facts of many members, for a dashboard to show."""

from __future__ import annotations

from contextlib import asynccontextmanager
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

import trio

from nodes.dashboard.sources import Look, Source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

OVERLAY = "synthetic"


class World:
    """Zones with members, links and counters that change by themselves."""

    def __init__(self, sizes: dict[str, int], seed: int = 1) -> None:
        self.rng = Random(seed)
        self.members: dict[str, str] = {}
        self.vids: dict[str, str] = {}
        for zone, size in sizes.items():
            for number in range(size):
                name = f"{zone}-{number:03}"
                self.members[name] = zone
                self.vids[name] = sha256(name.encode()).hexdigest()[:32]
        self.links = {name: self._links_of(name) for name in self.members}
        self.sent = dict.fromkeys(self.members, 0)

    def zone(self, name: str) -> list[str]:
        """Its members, by place."""
        there = [one for one, zone in self.members.items() if zone == name]
        return sorted(there, key=lambda one: self.vids[one])

    def _links_of(self, name: str) -> list[dict[str, Any]]:
        ring = self.zone(self.members[name])
        at = ring.index(name)
        near = {ring[(at + step) % len(ring)]: ["ring"] for step in (-1, 1) if len(ring) > 1}
        for step in (2, 7, 31, 131):
            if step < len(ring):
                near.setdefault(ring[(at + step) % len(ring)], ["structured"])
        for one in self.rng.sample(ring, min(2, len(ring))):
            if one != name:
                near.setdefault(one, ["random"])
        return [{"peer": peer, "kinds": kinds} for peer, kinds in near.items()]

    def delegates(self, zone: str) -> list[str]:
        """Who stands for it."""
        return self.zone(zone)[:2]

    def heading(self, name: str) -> dict[str, Any]:
        """Who tells."""
        return {"node": name, "overlay": OVERLAY, "zone": self.members[name]}

    def facts(self, name: str, question: str) -> dict[str, Any] | None:
        """What that member answers."""
        zone = self.members[name]
        match question:
            case "members":
                told: dict[str, Any] = {"members": [self._member(one) for one in self.zone(zone)]}
            case "topology":
                told = {"links": self.links[name], "members": self.zone(zone)}
            case "zones":
                names = dict.fromkeys(self.members.values())
                told = {"delegate": True, "zones": [self._zone(one) for one in names]}
            case "glance":
                self.sent[name] += self.rng.randrange(2000)
                told = self._glance(name)
            case _:
                return None
        return self.heading(name) | told

    def _member(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "vid": self.vids[name],
            "state": "alive",
            "endpoints": [],
            "attributes": {},
        }

    def _zone(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "size": len(self.zone(name)),
            "delegates": self.delegates(name),
            "supervisors": [],
            "summary": "delegate:2",
        }

    def _glance(self, name: str) -> dict[str, Any]:
        zones = list(dict.fromkeys(self.members.values()))
        mine = name in self.delegates(self.members[name])
        far = [one for zone in zones for one in self.delegates(zone)] if mine else []
        return {
            "delegate": mine,
            "gateway_of": 0,
            "members": len(self.zone(self.members[name])),
            "links": len(self.links[name]),
            "far": [one for one in far if self.members[one] != self.members[name]],
            "waiting": 0,
            "sent": self.sent[name],
            "received": self.sent[name],
            "dropped": 0,
            "refused": 0,
        }


class WorldSource(Source):
    """One member of a world."""

    def __init__(self, world: World, name: str) -> None:
        self.order = name
        self._world = world
        self._name = name

    @asynccontextmanager
    async def look(self) -> AsyncIterator[Look]:
        """Nothing to open."""
        yield _WorldLook(self._world, self._name)

    async def follow(self, do: str, **arguments: Any) -> AsyncGenerator[dict[str, Any]]:
        """Nothing happens here."""
        yield self._world.heading(self._name) | {"event": "watching"}
        await trio.sleep_forever()

    async def order_to(self, do: str, **arguments: Any) -> Any:
        """Nobody is there to do it."""
        await trio.lowlevel.checkpoint()


class _WorldLook(Look):
    def __init__(self, world: World, name: str) -> None:
        self.heading = world.heading(name)
        self._world = world
        self._name = name
        self._told: dict[str, Any] = {}
        self._names: list[str] = []

    async def ask(self, names: list[str]) -> None:
        await trio.lowlevel.checkpoint()
        self._names = names

    async def answer(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        changed = {}
        for question in self._names:
            facts = self._world.facts(self._name, question)
            if facts is not None and self._told.get(question) != facts:
                changed[question] = self._told[question] = facts
        return changed
