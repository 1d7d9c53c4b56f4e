"""Recipes of nodes in zones: a member, who may become a delegate, and a supervisor.

The management zone's membership runs on a node only while it is a delegate or a supervisor. The
zones protocol says when, by an event; this module starts and stops the instance, at the end of
the tick, in the same way over ZeroMQ and in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.security.rights import Rights
from protocols.gateways import Gateways, GatewaysSettings
from protocols.gateways.interface import May
from protocols.membership.attributes import Value
from protocols.membership.config import MembershipSettings
from protocols.membership.events import NameTaken
from protocols.membership.machine import Membership
from protocols.zones import (
    MANAGEMENT,
    SUPERVISOR,
    DelegateAppointed,
    DelegateDismissed,
    Zones,
    ZonesSettings,
    check_zone_name,
)


def _anybody(_name: NodeId, _what: str) -> bool:
    return True


@lru_cache(maxsize=65_536)  # asked for each subscriber whenever interest changes
def _topic_right(rights: Rights, what: str, topic: str) -> bool:
    return rights.may_publish(topic) if what == "publish" else rights.may_subscribe(topic)


class CertifiedRights:
    """What names may do, as far as their certificates are known: join, be, and use topics.

    A name that never linked to this node has shown no certificate here: the member that let it
    in has seen it. Whoever may join some zone may be its delegate, or may be a supervisor, may
    enter the management zone.
    """

    def __init__(self, rights_of: Callable[[NodeId], Rights | None]) -> None:
        self._rights_of = rights_of

    def may_join(self, name: NodeId, zone: Scope) -> bool:
        """Whether a node may be a member of that zone."""
        rights = self._rights_of(name)
        if rights is None:
            return True
        if zone == MANAGEMENT:
            return bool(rights.zones) or rights.may_be(SUPERVISOR)
        return rights.may_join(zone)

    def may_be(self, name: NodeId, role: str) -> bool:
        """Whether a node may act in that role."""
        rights = self._rights_of(name)
        return rights is None or rights.may_be(role)

    def may_use(self, name: NodeId, what: str, topic: str) -> bool:
        """Whether a node may "publish" to a topic, or "subscribe" to a topic or pattern."""
        rights = self._rights_of(name)
        return rights is None or _topic_right(rights, what, topic)

    def may_use_table(self, name: NodeId, what: str) -> bool:
        """Whether a node may "read" or "write" keys of the hash table."""
        rights = self._rights_of(name)
        if rights is None:
            return True
        return rights.may_read_dht() if what == "read" else rights.may_write_dht()


def _nowhere() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class ZoneSetup:
    """What members and supervisors of one overlay have in common."""

    zones: ZonesSettings = field(default_factory=ZonesSettings)
    gateways: GatewaysSettings = field(default_factory=GatewaysSettings)
    membership: MembershipSettings = field(default_factory=MembershipSettings)
    management: MembershipSettings = field(default_factory=MembershipSettings)
    here: Callable[[], tuple[str, ...]] = _nowhere  # this node's endpoints, once it is bound
    may_join: Callable[[NodeId, Scope], bool] = _anybody  # what a name's certificate allows
    may_be: Callable[[NodeId, str], bool] = _anybody
    may_use: May | None = None  # topics; None: everybody may all


class Antechamber:
    """Runs the membership of the management zone while the node's zones want it."""

    def __init__(self, host: Host, setup: ZoneSetup, zones: Zones) -> None:
        self._host = host
        self._setup = setup
        self._zones = zones
        self._membership: Membership | None = None
        for event in (DelegateAppointed, DelegateDismissed):
            host.listen(event, self._on_delegates)

    def _on_delegates(self, event: DelegateAppointed | DelegateDismissed) -> None:
        if event.delegate == self._host.me:
            self._host.at_tick_end(self._follow)

    def _follow(self, now: float) -> None:
        """Start or stop, as is wanted now: a wish may have changed within a tick."""
        wanted, running = self._zones.wants_management, self._membership
        if wanted and running is None:
            self._membership = started = add_management(self._host, self._setup, self._zones)
            self._host.launch(started, now)
            self._zones.enter_management(started, now)
        elif running is not None and not wanted:
            self._membership = None
            self._zones.leave_management(now)
            self._host.remove(running, now)


def add_management(host: Host, setup: ZoneSetup, zones: Zones) -> Membership:
    """Add the membership of the management zone; nobody is asked before zones found somebody."""
    return host.add(
        Membership,
        setup.management,
        MANAGEMENT,
        zone=MANAGEMENT,
        here=setup.here,
        attributes=zones.presentation(),
        may_join=setup.may_join,
    )


def zone_member(
    zone: Scope,
    setup: ZoneSetup,
    *,
    contacts: Iterable[NodeId] = (),
    strangers: Iterable[NodeId] = (),
    attributes: Mapping[str, Value] | None = None,
) -> Recipe:
    """A member of one base zone: `contacts` are members of it, `strangers` nodes elsewhere."""
    check_zone_name(zone)
    members, others = tuple(contacts), tuple(strangers)

    def add_protocols(host: Host) -> None:
        base = host.add(
            Membership,
            setup.membership,
            zone,
            zone=zone,
            contacts=members,
            here=setup.here,
            attributes=attributes,
            may_join=setup.may_join,
        )
        add_zones(host, setup, base, others)

    return add_protocols


def add_zones(
    host: Host, setup: ZoneSetup, base: Membership, strangers: tuple[NodeId, ...] = ()
) -> Zones:
    """Let a member of a base zone take part in the federation, as a delegate when it is elected."""
    zones = host.add(
        Zones,
        setup.zones,
        base=base,
        contacts=strangers,
        may_join=setup.may_join,
        may_be=setup.may_be,
    )
    Antechamber(host, setup, zones)
    host.add(Gateways, setup.gateways, base=base.view, zones=zones, may=setup.may_use)
    return zones


def supervisor(setup: ZoneSetup, *, contacts: Iterable[NodeId] = ()) -> Recipe:
    """A supervisor: of the management zone only. `contacts` are any nodes of the overlay."""
    others = tuple(contacts)

    def add_protocols(host: Host) -> None:
        zones = host.add(
            Zones, setup.zones, contacts=others, may_join=setup.may_join, may_be=setup.may_be
        )
        management = add_management(host, setup, zones)
        host.add(Gateways, setup.gateways, zones=zones, may=setup.may_use)

        def begin(now: float) -> None:
            zones.enter_management(management, now)

        def on_name_taken(event: NameTaken) -> None:
            if event.zone == MANAGEMENT:
                host.at_tick_end(zones.leave_management)

        host.listen(NameTaken, on_name_taken)
        host.at_tick_end(begin)

    return add_protocols
