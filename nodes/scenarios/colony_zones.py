"""Zones as colonies: the delegate of a zone leads it, and delegates follow the first of them."""

from __future__ import annotations

from nodes.colony_recipe import ZonePlacement
from nodes.scenarios.colony_world import KINDS, QUICK, service
from nodes.scenarios.registry import scenario
from nodes.scenarios.zones import DETECTION, SETTLING, Overlay
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.predicates import Constraint
from overlay.protocol import Scope
from overlay.scenario import Scenario, Stage, Until
from protocols.colony import Colony, RequestEnded, ServantFound, Terms, Wish

NOTICED = 2 * DETECTION + SETTLING  # s; the zone notices a death, then colonies do


class Colonies(Overlay):
    """Zones whose every member offers something of its own."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, supervisors=0)
        self.found: dict[int, list[NodeId]] = {}
        self.ended: dict[int, RequestEnded] = {}

    def recipe(self, name: NodeId, zone: Scope = "") -> Recipe:
        """A member that offers a kind, and its own name."""
        assemble = super().recipe(name, zone)
        offers = [service(KINDS[len(name + zone) % len(KINDS)], f'at = "{name}"')]

        def add(host: Host) -> None:
            assemble(host)
            colony = host.add(Colony, QUICK, offers=offers)
            ZonePlacement(host, colony)
            host.listen(ServantFound, self._on_found)
            host.listen(RequestEnded, self._on_end)

        return add

    def _on_found(self, event: ServantFound) -> None:
        self.found.setdefault(event.request, []).append(event.servant.name)

    def _on_end(self, event: RequestEnded) -> None:
        self.ended[event.request] = event

    def colony(self, name: NodeId) -> Colony:
        """The machine of one who runs."""
        return self.stage.protocol(name, Colony)

    def is_one_colony(self) -> bool:
        """One root, below it the leaders of the other zones, and everybody in its own zone's."""
        names = self.stage.names
        roots = [name for name in names if not self.colony(name).leader]
        if len(roots) != 1 or not self.colony(roots[0]).leads:
            return False
        for name in names:
            leader = self.colony(name).leader
            if leader and self.zone_of[leader] != self.zone_of[name] and leader != roots[0]:
                return False
        return len(self.colony(roots[0]).table.union) == len(names)

    def united(self) -> Until:
        """Wait for it."""
        return Until(self.is_one_colony, within=NOTICED, what="one colony of all zones")

    def finds_everybody(self) -> Scenario:
        """Somebody asks for each member by name."""
        names = self.stage.names
        client = self.stage.rng.choice(names)
        wishes = [Wish((service_of(name),)) for name in names if name != client]
        request = self.stage.call(
            client, lambda host: host.protocol(Colony).ask, wishes, Terms("exhaustive")
        )
        yield Until(lambda: request in self.ended, within=QUICK.within + 0.05, what="an end")
        assert sorted(self.found.get(request, ())) == sorted(
            name for name in names if name != client
        )


def service_of(name: NodeId) -> Constraint:
    """What only that member offers."""
    return Constraint.parse(f'at = "{name}"')


@scenario("colony-zones", nodes=9, both_worlds=False)
def zones(stage: Stage) -> Scenario:
    """Three zones are one colony; delegates die, and it is again."""
    world = Colonies(stage)
    yield from world.start()
    yield world.united()
    yield from world.finds_everybody()
    for _ in range(2):
        leaders = [name for name in stage.names if world.colony(name).leads]
        victim = stage.rng.choice(leaders)
        stage.crash(victim)
        yield world.united()
        yield from world.finds_everybody()
        stage.restart(victim)
        yield world.united()
    yield from world.finds_everybody()
