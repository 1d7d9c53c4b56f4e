"""The stage for scenarios of the hash table in several zones."""

from __future__ import annotations

import msgspec

from nodes.scenarios.dht_world import QUICK, Store
from nodes.scenarios.zones import SETUP
from nodes.zone_recipe import zone_member
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.scenario import Stage
from protocols.dht import Dht, DhtSettings
from protocols.dht.layout import Terms, layout_of
from protocols.dht.placement import spread, zones_of
from protocols.membership.machine import Membership
from protocols.zones import Zones

SPREAD = msgspec.structs.replace(QUICK, slice_size=2, slice_points=32)
CLIENT = msgspec.structs.replace(SPREAD, serve=False)


class Federation(Store):
    """Zones of servers, and zones of nodes that only ask (`clients`)."""

    def __init__(
        self,
        stage: Stage,
        zones: tuple[Scope, ...] = ("a", "b", "c"),
        *,
        clients: tuple[Scope, ...] = (),
        settings: DhtSettings = SPREAD,
    ) -> None:
        super().__init__(stage, settings)
        each = max(2, stage.size // (len(zones) + len(clients)))
        self.clients = clients
        self.by_zone = {zone: [f"{zone}{at}" for at in range(each)] for zone in (*zones, *clients)}
        self.members = [name for names in self.by_zone.values() for name in names]

    def recipe(self, name: NodeId) -> Recipe:
        """A member of its zone, which its first letter names."""
        zone = name[0]

        def add(host: Host) -> None:
            running = [one for one in self.stage.names if one != name]
            fellows = [one for one in running if one[0] == zone][:3]
            strangers = [one for one in running if one[0] != zone][:3]
            zone_member(
                zone,
                SETUP,
                contacts=fellows or [one for one in self.by_zone[zone][:2] if one != name],
                strangers=strangers or ["a0", "b0"],
            )(host)
            base = host.protocol(Membership, zone)
            settings = self.settings
            if self.founded:  # whoever comes later joins the table that is there
                settings = msgspec.structs.replace(settings, founders=0)
            if zone in self.clients:
                settings = msgspec.structs.replace(settings, serve=False)
            host.add(Dht, settings, base=base, zones=host.protocol(Zones))

        return add

    def add_zone(self, zone: Scope, size: int) -> None:
        """Start a zone of servers."""
        self.by_zone[zone] = [f"{zone}{at}" for at in range(size)]
        for name in self.by_zone[zone]:
            self.join(name)

    def servers(self) -> list[NodeId]:
        """Those who run and keep keys."""
        return [
            name
            for name in self.stage.names
            if name in self.members and name[0] not in self.clients
        ]

    def problem(self) -> str:
        """What is not in order; empty when everything is."""
        names = self.servers()
        tables = {self.dht(name).table for name in names}
        if len(tables) != 1 or 0 in tables:
            return f"tables {tables}"
        present = dict.fromkeys(name[0] for name in names)
        tier = tuple(sorted(self.dht(names[0]).storage_zones().items()))
        if len(present) > 1 and {zone for zone, _ in tier} != set(present):
            return f"{names[0]} knows {tier}"
        for name in names:
            if len(present) > 1 and tuple(sorted(self.dht(name).storage_zones().items())) != tier:
                return f"{name} knows {self.dht(name).storage_zones()}, not {tier}"
        settings, bits = self.settings, self.settings.shard_bits
        common = (bits, settings.node_points, settings.replicas, settings.lateral)
        layouts = {
            zone: layout_of(
                tuple(sorted(name for name in names if name[0] == zone)),
                Terms(*common, zone, tier, settings.slice_points),
            )
            for zone in present
        }
        for number in range(1 << bits):
            zones = zones_of(number, bits, tier, settings.slice_points) or tuple(present)
            most = max(settings.replicas, settings.lateral)
            found = [(zone, layouts[zone].names(number, most)) for zone in zones]
            wanted = spread(found, settings.replicas, settings.lateral)
            problem = self.shard_problem(number, wanted, names)
            if problem:
                return problem
        return ""
