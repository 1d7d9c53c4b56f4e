"""A broker's routing table: its individuals, what each colony offers, and the union of it all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from overlay.errors import InvariantViolation
from overlay.ids import NodeId
from protocols.colony.messages import Unit
from protocols.colony.services import texts_overlap

CACHED = 65_536  # services whose individuals are remembered


class Child:
    """One individual, as its leader knows it."""

    __slots__ = (
        *("accepted", "asked", "heard", "name", "rtt", "services", "silent", "unit", "version"),
    )

    def __init__(self, name: NodeId, unit: Unit, version: int, now: float) -> None:
        self.name = name
        self.unit = unit
        self.version = version  # of its offers
        self.services: dict[str, None] = {}
        self.heard = now
        self.rtt = 0.0  # s, as it measured; 0: not yet
        self.asked = 0
        self.accepted = 0
        self.silent = 0  # refusals and timeouts in a row

    @property
    def willingness(self) -> float:
        """Its share of acceptances; who was never asked is given the benefit of the doubt."""
        return (self.accepted + 1) / (self.asked + 2)


class RoutingTable:
    """Who offers what, and the union of it: the services of this colony."""

    def __init__(self) -> None:
        self.children: dict[NodeId, Child] = {}
        self.version = 1  # of the union as the leader is told it
        self._union: dict[str, int] = {}  # how many individuals offer it
        self._lost: dict[NodeId, tuple[dict[str, None], float]] = {}  # colonies, and until when
        self._added: dict[str, None] = {}  # since `version`
        self._removed: dict[str, None] = {}
        self._offering: dict[str, tuple[NodeId, ...]] = {}

    # -- individuals ----------------------------------------------------------------------------

    def add(self, child: Child, services: Iterable[str]) -> None:
        """Register an individual, or register it anew."""
        self.remove(child.name)
        self.children[child.name] = child
        self.change(child, services, ())

    def remove(self, name: NodeId) -> Child | None:
        """Forget one; None when it is not there."""
        child = self.children.get(name)
        if child is not None:
            self.change(child, (), tuple(child.services))
            del self.children[name]
            self._offering.clear()
        return child

    def change(self, child: Child, added: Iterable[str], removed: Iterable[str]) -> None:
        """Take what one offers more and less."""
        for service in removed:
            if service in child.services:
                del child.services[service]
                self._count(service, -1)
        for service in added:
            if service not in child.services:
                child.services[service] = None
                self._count(service, 1)
        self._offering.clear()

    def replace(self, child: Child, services: Iterable[str]) -> None:
        """Take all that one offers."""
        wanted = dict.fromkeys(services)
        gone = [service for service in child.services if service not in wanted]
        self.change(child, wanted, gone)

    # -- colonies that broke away ---------------------------------------------------------------

    def remember(self, child: Child, until: float) -> None:
        """Let what a lost colony offered stay in the union: it, or its individuals, may return.

        So those above go on to ask here, and here a reliable want waits.
        """
        self._forget_lost(child.name)
        self._lost[child.name] = (dict(child.services), until)
        for service in child.services:
            self._count(service, 1)

    def forget_lost(self, now: float) -> float | None:
        """Drop what did not return in time; returns when to look again."""
        for name in [name for name, (_, until) in self._lost.items() if until <= now]:
            self._forget_lost(name)
        return min((until for _, until in self._lost.values()), default=None)

    def _forget_lost(self, name: NodeId) -> None:
        services, _ = self._lost.pop(name, ({}, 0.0))
        for service in services:
            self._count(service, -1)

    def _count(self, service: str, by: int) -> None:
        before = self._union.get(service, 0)
        after = before + by
        if after:
            self._union[service] = after
        else:
            del self._union[service]
        if bool(before) == bool(after):
            return
        new, old = (self._added, self._removed) if after else (self._removed, self._added)
        if service in old:
            del old[service]
        else:
            new[service] = None

    # -- the union ------------------------------------------------------------------------------

    @property
    def union(self) -> tuple[str, ...]:
        """All services of this colony."""
        return tuple(self._union)

    @property
    def changed(self) -> bool:
        """Whether the union is another one than that of `version`."""
        return bool(self._added or self._removed)

    def take_changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What was added and removed since the last time; the union has a new version now."""
        changes = tuple(self._added), tuple(self._removed)
        self._added.clear()
        self._removed.clear()
        self.version += 1
        return changes

    # -- who may serve --------------------------------------------------------------------------

    def offering(self, services: Sequence[str]) -> tuple[NodeId, ...]:
        """Individuals in whose colony each of the services overlaps something."""
        if len(services) == 1:
            return self._offering_one(services[0])
        each = [self._offering_one(service) for service in services]
        return tuple(name for name in each[0] if all(name in other for other in each[1:]))

    def _offering_one(self, service: str) -> tuple[NodeId, ...]:
        found = self._offering.get(service)
        if found is None:
            found = tuple(
                name
                for name, child in self.children.items()
                if service in child.services
                or any(texts_overlap(service, offered) for offered in child.services)
            )
            if len(self._offering) >= CACHED:
                self._offering.clear()
            self._offering[service] = found
        return found

    # -- invariants -----------------------------------------------------------------------------

    def check(self, me: NodeId) -> None:
        """The union is exactly what the individuals offer."""
        counted: dict[str, int] = {}
        offers = [child.services for child in self.children.values()]
        for services in (*offers, *(services for services, _ in self._lost.values())):
            for service in services:
                counted[service] = counted.get(service, 0) + 1
        if counted != self._union:
            raise InvariantViolation(f"{me}: the union is not what individuals offer")
