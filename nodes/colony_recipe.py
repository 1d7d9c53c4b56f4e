"""Recipes of colonies: what makes a peer a unit, and where in the tree of a zone it stands.

Where zones make the tree, the first delegate of a zone by name leads it, members follow that one,
and leaders follow the leader of the first zone by name. So colonies come with zones, and cost
nothing before somebody offers or asks: a unit without use follows nobody.
"""

from __future__ import annotations

from nodes.settings import NodeConfig
from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Event
from protocols.colony import Card, Colony, ColonySettings, ColonyUsed, IndividualLoggedIn
from protocols.zones import (
    DelegateAppointed,
    DelegateDismissed,
    ZoneAppeared,
    ZoneChanged,
    Zones,
    ZoneVanished,
)

ENDPOINTS = 8  # that a card has room for


def add_colony(host: Host, config: NodeConfig) -> Colony:
    """Let a node be a unit of a colony, as its zone or its settings say."""
    around = host.surroundings
    settings = config.section(ColonySettings)

    def card() -> Card:
        return Card(host.me, around.here()[:ENDPOINTS], around.certificate)

    def trust(told: Card) -> bool:
        return around.vouches(told.name, told.certificate)

    colony = host.add(
        Colony,
        settings,
        leads=settings.placement == "tree" and settings.leads,
        card=card,
        trust=trust,
    )
    if settings.placement == "zone":
        ZonePlacement(host, colony)
    return colony


class ZonePlacement:
    """Has a unit lead and follow as the delegates of zones come and go."""

    def __init__(self, host: Host, colony: Colony) -> None:
        self._host = host
        self._colony = colony
        for kind in (
            *(DelegateAppointed, DelegateDismissed, ZoneAppeared, ZoneChanged, ZoneVanished),
            *(IndividualLoggedIn, ColonyUsed),
        ):
            host.listen(kind, self._on_change)

    def _on_change(self, _event: Event) -> None:
        self._host.at_tick_end(self.settle)

    def settle(self, now: float) -> None:
        """Stand where the zones of this moment say."""
        colony = self._colony
        first, leader = self._place()
        if not first:
            return  # nobody stands for the zone at the moment: wait for who will
        leads = first == self._host.me
        if leads and not colony.leads:
            colony.lead(now)
        elif colony.leads and not leads:
            colony.stop_leading(now)
        if colony.is_used and colony.home != leader:
            colony.follow(leader, now)

    def _place(self) -> tuple[NodeId, NodeId]:
        """Who leads this zone, and whom this node follows."""
        zones = self._host.protocol(Zones)
        if not zones.delegates:
            return "", ""
        first = min(zones.delegates)  # everybody knows who they are, though not in one order
        if first != self._host.me:
            return first, first
        tops = [min(zone.delegates) for zone in zones.zones() if zone.delegates]
        root = tops[0] if tops else first
        return first, "" if root == first else root
