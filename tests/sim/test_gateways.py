"""Gateways in the simulator: what thousands of topics cost, and how fast a change is known."""

from __future__ import annotations

from nodes.scenarios.running import run_scenario
from nodes.zone_recipe import ZoneSetup, zone_member
from overlay.ids import NodeId
from overlay.sim import Simulator
from protocols.gateways import Gateways
from protocols.zones import Zones

LAN = ZoneSetup()
EACH = 8
TOPICS = [f"plant/{at % 7}/sensor/{at}" for at in range(500)]


class Overlay:
    """Some zones with the settings of a LAN, and nobody who wants anything."""

    def __init__(self, zones: str, seed: int = 1) -> None:
        self.sim = Simulator(seed, check_every=100)
        self.names = [f"{zone}{index}" for zone in zones for index in range(EACH)]
        for name in self.names:
            recipe = zone_member(name[0], LAN, contacts=[f"{name[0]}0"], strangers=["a0", "a1"])
            self.sim.add_node(name, recipe)

        def formed() -> bool:
            tables = [self.sim.protocol(name, Zones).zones() for name in self.names]
            return all([entry.size for entry in table] == [EACH] * len(zones) for table in tables)

        assert self.sim.run_until(formed, 60, every=0.1)
        self.sim.run_for(15)

    def gateways(self, name: NodeId) -> Gateways:
        return self.sim.protocol(name, Gateways)

    def declare(self, name: NodeId, topic: str, *, publishes: bool, subscribes: bool) -> None:
        gateways = self.gateways(name)
        gateways.declare(topic, publishes=publishes, subscribes=subscribes, now=self.sim.now)

    def all_declare(self) -> None:
        for name in self.names:
            for topic in TOPICS:
                self.declare(name, topic, publishes=False, subscribes=True)

    def total(self, count: str) -> int:
        return sum(getattr(self.gateways(name).counts, count) for name in self.names)

    def known(self, others: int) -> bool:
        """Whether every topic has one gateway in each zone, which knows the others."""
        held = [(name, topic) for name in self.names for topic in self.gateways(name).topics_held()]
        return len(held) == len(TOPICS) * (others + 1) and all(
            len(self.gateways(name).remote_gateways(topic)) == others
            and len(self.gateways(name).local_subscribers(topic)) == EACH
            for name, topic in held
        )


def test_a_single_zone_registers_nothing() -> None:
    overlay = Overlay("a")
    overlay.all_declare()
    overlay.sim.run_for(5)
    assert overlay.known(0)
    # Each line was told once, to the topic's gateway, and is at nobody else.
    assert overlay.total("lines_sent") == EACH * len(TOPICS)
    assert sum(overlay.gateways(name).lines_held for name in overlay.names) == EACH * len(TOPICS)


def test_a_quiet_period_costs_digests_and_no_line() -> None:
    overlay = Overlay("abc")
    overlay.all_declare()
    assert overlay.sim.run_until(lambda: overlay.known(2), 5, every=0.05), "known in seconds"
    overlay.sim.run_for(10)
    lines, digests = overlay.total("lines_sent"), overlay.total("digests_sent")
    overlay.sim.run_for(50)
    assert overlay.total("lines_sent") == lines
    assert overlay.total("read_again") == 0
    # A ledger for each pair of members of a zone, and some between gateways, delegates and homes.
    ledgers = (overlay.total("digests_sent") - digests) * LAN.gateways.refresh / 50
    assert ledgers < 3 * EACH * EACH * 2.0


def test_a_change_passes_from_zone_to_zone_in_a_fraction_of_a_second() -> None:
    overlay = Overlay("ab")
    topic = TOPICS[0]
    overlay.declare("a3", topic, publishes=True, subscribes=False)
    overlay.sim.run_for(2)
    overlay.declare("b5", topic, publishes=False, subscribes=True)

    def known() -> bool:
        return (
            sum(len(overlay.gateways(name).remote_gateways(topic)) for name in overlay.names) == 2
        )

    assert overlay.sim.run_until(known, 0.5, every=0.01)
    overlay.declare("b5", topic, publishes=False, subscribes=False)

    def gone() -> bool:
        return not any(overlay.gateways(name).remote_gateways(topic) for name in overlay.names)

    assert overlay.sim.run_until(gone, 0.5, every=0.01)


def test_the_same_seed_gives_the_same_trace_with_and_without_the_codec() -> None:
    hashes = {
        run_scenario("gateways-churn", 7, wire=wire).trace_hash for wire in (False, False, True)
    }
    assert len(hashes) == 1
