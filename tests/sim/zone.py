"""A simulated zone whose members all have the same, finished view."""

from __future__ import annotations

from statistics import mean

from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Event
from overlay.sim import Simulator
from protocols.routing import Routing, RoutingSettings
from protocols.topology import Topology, TopologySettings
from tests.unit.topology.fixed_view import ZONE, FixedMembership, Roster


class Zone(Simulator):
    """Members by the hundred: one ring, shared by all, instead of one for each."""

    def __init__(self, size: int, seed: int = 1, links: TopologySettings | None = None) -> None:
        super().__init__(seed, check_every=0)
        self.members = [f"n{index}" for index in range(size)]
        self.roster = Roster(self.members)
        self.heard: list[tuple[NodeId, Event]] = []
        self._links = links or TopologySettings()
        for name in self.members:
            self.add_node(name, self._recipe)

    def _recipe(self, host: Host) -> None:
        view = host.add(FixedMembership, self.roster, ZONE).view
        links = host.add(Topology, self._links, ZONE, members=view)
        host.add(Routing, RoutingSettings(), ZONE, members=view, links=links)
        for kind in Routing.emits:
            host.listen(kind, lambda event: self.heard.append((host.me, event)))

    def links(self, name: NodeId) -> Topology:
        return self.protocol(name, Topology, ZONE)

    def router(self, name: NodeId) -> Routing:
        return self.protocol(name, Routing, ZONE)

    def settle_links(self) -> None:
        settled = self.run_until(
            lambda: all(self.links(name).settled for name in self.members), 60, every=0.1
        )
        assert settled, "links do not settle"

    def degrees(self) -> list[int]:
        return [self.links(name).degree for name in self.members]

    def mean_degree(self) -> float:
        return mean(self.degrees())
