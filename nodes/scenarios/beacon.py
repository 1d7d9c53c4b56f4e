"""Scenarios of beacons: nobody is told an address, and all of one zone find each other."""

from __future__ import annotations

from nodes.scenarios.registry import scenario
from nodes.zone_recipe import ZoneSetup, zone_member
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import NetworkModel
from protocols.beacon import Beacon, BeaconSettings
from protocols.membership.config import MembershipSettings
from protocols.membership.machine import Membership
from protocols.zones import Zones, ZonesSettings

SETUP = ZoneSetup(
    zones=ZonesSettings(settle=1.0, publish_pause=0.5, seek_period=3.0, table_period=2.0),
    membership=MembershipSettings(probe_period=0.5, suspicion_min=1.0, suspicion_max=4.0),
)
SETTINGS = BeaconSettings(announce_longest=60.0)
ANSWERS = 40  # of each, when all start at once: 8 and a logarithm, and some more where loss is
SPAN = 1200.0  # s; twenty of the longest intervals


class Lan:
    """Nodes that share a LAN, and know nothing."""

    def __init__(self, stage: Stage, settings: BeaconSettings = SETTINGS) -> None:
        self.stage = stage
        self.zone_of: dict[NodeId, Scope] = {}
        self.overlay_of: dict[NodeId, str] = {}
        self.contacts: tuple[NodeId, ...] = ()  # what those who start now are told
        self._settings = settings

    def recipe(self, zone: Scope, overlay: str) -> Recipe:
        """A member of a zone that has a beacon."""

        def add(host: Host) -> None:
            zone_member(zone, SETUP, contacts=self.contacts)(host)
            zones = host.protocol(Zones)
            host.add(
                Beacon,
                self._settings,
                overlay=overlay,
                authority=b"",
                view=host.protocol(Membership, zone).view,
                here=lambda: (f"tcp://{host.me}:7400",),
                zones=lambda: len(zones.zones()),
            )

        return add

    def start(self, name: NodeId, zone: Scope = "hall", overlay: str = "lab") -> None:
        """Start one."""
        self.zone_of[name] = zone
        self.overlay_of[name] = overlay
        self.stage.start(name, self.recipe(zone, overlay))

    def beacon(self, name: NodeId) -> Beacon:
        """The beacon of one who runs."""
        return self.stage.protocol(name, Beacon)

    def total(self, count: str) -> int:
        """Sum one count over the running nodes."""
        return sum(getattr(self.beacon(name).counts, count) for name in self.stage.names)

    def mates(self, name: NodeId) -> set[NodeId]:
        """Who should be in the view of that node."""
        place = self.zone_of[name], self.overlay_of[name]
        return {
            other
            for other in self.stage.names
            if (self.zone_of[other], self.overlay_of[other]) == place
        }

    def view(self, name: NodeId) -> set[NodeId]:
        """Who is in it."""
        zone = self.zone_of[name]
        return set(self.stage.protocol(name, Membership, zone).view.members())

    def complete(self) -> bool:
        """Whether every view is as it should be."""
        return all(self.view(name) == self.mates(name) for name in self.stage.names)

    def formed(self, within: float = 30.0) -> Until:
        """Wait for that."""
        return Until(self.complete, within=within, what="every zone complete in all its views")


@scenario("beacon-start", nodes=24, long=200, both_worlds=False)
def start(stage: Stage) -> Scenario:
    """All start within a moment, find each other, and answer far less than they could."""
    lan = Lan(stage)
    for index in range(stage.size):
        lan.start(f"n{index}")
        if stage.rng.random() < 0.2:
            yield Pause(stage.rng.uniform(0.0, 0.05))
    yield lan.formed()
    assert lan.total("answered") <= ANSWERS * stage.size, lan.total("answered")


@scenario("beacon-loss", nodes=12, both_worlds=False)
def loss(stage: Stage) -> Scenario:
    """A third of all beacons is lost: later queries find whom the first did not."""
    lan = Lan(stage)
    stage.loss(0.33)
    for index in range(stage.size):
        lan.start(f"n{index}")
    yield Pause(5.0)
    stage.heal()
    yield lan.formed(within=120.0)


@scenario("beacon-two-overlays", nodes=12, both_worlds=False)
def two_overlays(stage: Stage) -> Scenario:
    """Two overlays share a LAN and a zone's name: each counts the other, and nothing more."""
    lan = Lan(stage)
    for index in range(stage.size):
        lan.start(f"n{index}", overlay=("lab", "office")[index % 2])
    yield lan.formed()
    yield Pause(120.0)
    assert lan.complete()
    assert all(lan.beacon(name).counts.foreign for name in stage.names)


@scenario("beacon-partition", nodes=12, both_worlds=False)
def partition(stage: Stage) -> Scenario:
    """Two halves that never knew each other become one zone when the switch is mended."""
    lan = Lan(stage)
    names = [f"n{index}" for index in range(stage.size)]
    halves = [names[: stage.size // 2], names[stage.size // 2 :]]
    stage.partition(halves)
    for name in names:
        lan.start(name)
    yield Until(
        lambda: all(lan.view(name) == set(half) for half in halves for name in half),
        within=30.0,
        what="two halves",
    )
    yield Pause(stage.rng.uniform(0.0, 200.0))
    stage.heal()
    # An interval may just have begun, in which another half-zone's announcement comes at its end.
    yield lan.formed(within=3 * SETTINGS.announce_longest)


@scenario("beacon-zones", nodes=12, both_worlds=False)
def zones(stage: Stage) -> Scenario:
    """Three zones on one LAN find their own, and each other through their delegates."""
    lan = Lan(stage)
    for index in range(stage.size):
        lan.start(f"n{index}", zone=("east", "north", "west")[index % 3])
    yield lan.formed()
    yield Until(
        lambda: all(
            [zone.name for zone in stage.protocol(name, Zones).zones()] == ["east", "north", "west"]
            for name in stage.names
        ),
        within=60.0,
        what="three zones in every table",
    )


@scenario("beacon-quiet", nodes=8, long=16, both_worlds=False)
def quiet(stage: Stage) -> Scenario:
    """A stable zone says next to nothing; one that loses all others asks again."""
    lan = Lan(stage)
    for index in range(stage.size):
        lan.start(f"n{index}")
    yield lan.formed()
    yield Pause(300.0)  # the intervals have grown
    before = lan.total("announced") + lan.total("queries")
    yield Pause(SPAN)
    said = lan.total("announced") + lan.total("queries") - before
    # `redundancy` in each interval, and some whose own intervals do not overlap.
    assert said <= 3 * SETTINGS.redundancy * SPAN / SETTINGS.announce_longest, said
    survivor, *others = stage.names
    for name in others:
        stage.crash(name)
    asked = lan.beacon(survivor).counts.queries
    yield Until(lambda: lan.beacon(survivor).counts.queries > asked, 60.0, "a query of who is left")
    lan.start("newcomer")
    yield lan.formed()


@scenario("beacon-blocked", nodes=6, both_worlds=False, network=NetworkModel(datagram_loss=1.0))
def blocked(stage: Stage) -> Scenario:
    """No beacon arrives: a seed helps the first time, and the last known peers ever after."""
    lan = Lan(stage)
    for index in range(stage.size):
        lan.contacts = ("n0",) if index else ()
        lan.start(f"n{index}")
    yield lan.formed()
    yield Pause(2.0)  # they write down whom they know
    lan.contacts = ()
    victims = stage.rng.sample(stage.names, stage.size // 2)
    for victim in victims:
        stage.crash(victim)
    yield lan.formed(within=60.0)
    for victim in victims:
        stage.restart(victim)
    yield lan.formed(within=60.0)
    assert lan.total("heard") == 0
