"""A zone in the simulator: how fast the dead go, and who must never go."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from bench.__main__ import main
from nodes.scenarios.running import run_scenario
from overlay.host import Host
from overlay.ids import NodeId
from overlay.protocol import Event, LinkLost
from overlay.sim import Simulator
from protocols.membership import (
    MemberFailed,
    Membership,
    MembershipSettings,
    MemberSuspected,
)

ZONE = "z"
SIZE = 100


class Zone:
    """A hundred members that know each other."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulator(seed, check_every=10)
        self.names = [f"n{number}" for number in range(SIZE)]
        self.events: list[Event] = []
        for name in self.names:
            self.sim.add_node(name, self._member)
        assert self.sim.run_until(lambda: self.all_see(SIZE), 10)
        self.sim.run_for(5)
        self.events.clear()

    def _member(self, host: Host) -> None:
        host.add(Membership, MembershipSettings(), ZONE, zone=ZONE, contacts=["n0", "n1"])
        host.listen(MemberSuspected, self.events.append)
        host.listen(MemberFailed, self.events.append)

    def membership(self, name: NodeId) -> Membership:
        return self.sim.protocol(name, Membership, ZONE)

    def running(self) -> Iterator[Membership]:
        return (self.membership(name) for name in self.names if self.sim.is_running(name))

    def all_see(self, count: int) -> bool:
        return all(len(one.view) == count for one in self.running())

    def removed(self, gone: list[NodeId]) -> bool:
        return all(
            name not in one.view for one in self.running() if one.me not in gone for name in gone
        )

    def victims(self) -> set[NodeId]:
        return {event.member for event in self.events if isinstance(event, MemberFailed)}


@pytest.mark.parametrize("count", [1, 10])
def test_who_is_killed_is_out_of_every_view_within_a_second(count: int) -> None:
    zone = Zone(count)
    gone = zone.names[50 : 50 + count]
    for name in gone:
        zone.sim.crash(name)
    assert zone.sim.run_until(lambda: zone.removed(gone), 1.0)
    zone.sim.run_for(10)
    assert zone.victims() == set(gone)


def test_who_is_frozen_is_out_of_every_view_within_six_seconds() -> None:
    zone = Zone(3)
    zone.sim.pause("n50")
    assert zone.sim.run_until(lambda: zone.removed(["n50"]), 6.0)
    assert zone.victims() == {"n50"}


def test_who_only_reconnects_is_not_even_suspected() -> None:
    zone = Zone(4)
    for node in list(zone.sim.nodes.values()):
        if node.name != "n50":
            zone.sim.announce(node, LinkLost("n50", "closed"))
    zone.sim.run_for(10)
    assert zone.events == []


def test_who_reconnects_on_a_bad_network_is_not_removed() -> None:
    zone = Zone(5)
    for _ in range(10):
        zone.sim.pause("n50")
        for node in list(zone.sim.nodes.values()):
            if node.name != "n50":
                zone.sim.announce(node, LinkLost("n50", "closed"))
        zone.sim.run_for(0.3)  # it is back before a probe through helpers gives up
        zone.sim.resume("n50")
        zone.sim.run_for(1)
    assert zone.victims() == set()


def test_an_idle_zone_sends_few_bytes_and_suspects_nobody() -> None:
    zone = Zone(6)
    before = zone.sim.traffic.messages
    zone.sim.run_for(20)
    assert zone.events == []
    assert (zone.sim.traffic.messages - before) / SIZE / 20 < 5


def test_the_same_seed_gives_the_same_trace_with_and_without_the_codec() -> None:
    hashes = {
        run_scenario("membership-churn", 7, wire=wire).trace_hash for wire in (False, False, True)
    }
    assert len(hashes) == 1


def test_the_benchmark_runs_and_its_bars_hold_even_when_small(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sections = ("cost", "detection", "mistakes")  # of the simulator: real ones need a quiet machine
    only = [word for section in sections for word in ("--only", section)]
    assert main(["membership", "--quick", "--json", "--repeats", "1", *only]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["bench"] == "membership"
    # With 5, 10 and 20 members views are complete within a round of gossip or two.
    unsteady = ("CPU", "all views complete")
    steady = [bar for bar in report["bars"] if not bar["name"].startswith(unsteady)]
    assert len(steady) >= 8
    assert [bar["name"] for bar in steady if not bar["holds"]] == []
