"""Resources on the peers of an overlay: every member of a zone is a broker for them.

A lab has no brokers that somebody would have to set up, and no member that others depend on. So the
brokers of resources are the members themselves, in a scope of their own (a broker network that
is set up by hand is another one): along the links of their zone's topology, and between zones from
each delegate to the others. Who may be in a zone may route for it.
"""

from __future__ import annotations

from msgspec.structs import replace

from nodes.settings import NodeConfig
from nodes.zone_recipe import CertifiedRights
from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Scope
from protocols.content.config import ContentSettings
from protocols.content.machine import Content
from protocols.membership.events import MemberFailed, MemberLeft
from protocols.resources import Resources, ResourcesSettings
from protocols.resources.interface import RoundTrip
from protocols.topology import NeighbourAdded, NeighbourRemoved, Topology
from protocols.zones import (
    MANAGEMENT,
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    Zones,
    ZoneVanished,
)

BROKERS: Scope = "@resources"

# The membership notices within a second who is gone, so greetings only compare ledgers: at ten
# neighbours, one a second each would double what an idle peer sends.
BEAT = 20.0
LEASE = 60.0
MOST_LINKS = 1024  # a delegate has one to each other zone


def add_resources(host: Host, config: NodeConfig, round_trip: RoundTrip) -> Resources:
    """Let a member register and find resources, and route for others."""
    rights = CertifiedRights(host.surroundings.rights_of)
    settings = replace(
        config.section(ContentSettings),
        role="broker",
        links=(),
        broker="",
        beat=BEAT,
        lease=LEASE,
        client_lease=LEASE,
        max_links=MOST_LINKS,
    )
    content = host.add(
        Content,
        settings,
        BROKERS,
        may_be=lambda name, _role: rights.may_join(name, MANAGEMENT),
    )
    BrokerLinks(host, content)
    return host.add(
        Resources,
        config.section(ResourcesSettings),
        BROKERS,
        content=content,
        round_trip=round_trip,
    )


class BrokerLinks:
    """Keeps the neighbours of a broker of resources: those of its zone, and delegates abroad."""

    def __init__(self, host: Host, content: Content) -> None:
        self._host = host
        self._content = content
        self._linked: dict[NodeId, None] = {}
        self._dead: dict[NodeId, None] = {}
        for change in (
            *(NeighbourAdded, NeighbourRemoved, ZoneAppeared, ZoneChanged, ZoneVanished),
            *(DelegateAppointed, DelegateDismissed),
        ):
            host.listen(change, self._on_change)
        for end in (MemberFailed, MemberLeft):
            host.listen(end, self._on_end)

    def _on_change(self, _event: object) -> None:
        self._host.at_tick_end(self._follow)

    def _on_end(self, event: MemberFailed | MemberLeft) -> None:
        """A life is over; perhaps another has begun, which knows nothing of it."""
        self._dead[event.member] = None
        self._host.at_tick_end(self._follow)

    def wanted(self) -> dict[NodeId, None]:
        """Whom this broker should be linked to."""
        host = self._host
        zone, zones = host.surroundings.zone, host.protocol(Zones)
        wanted = dict.fromkeys(host.protocol(Topology, zone).neighbours())
        if zones.is_delegate:
            wanted |= {
                entry.delegates[0]: None
                for entry in zones.zones()
                if entry.name != zone and entry.delegates
            }
        return wanted

    def _follow(self, now: float) -> None:
        wanted = self.wanted()
        for peer in list(self._linked):
            if peer not in wanted or peer in self._dead:
                del self._linked[peer]
                self._content.unlink(peer, now)
        self._dead.clear()
        for peer in wanted:
            if peer not in self._linked:
                self._linked[peer] = None
                self._content.link(peer, now)
