"""The paper's five sites in the simulator: brokers, a BDN, and clients that come and go."""

from __future__ import annotations

import tomllib
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from bench.discovery_paper import add_distributing_bdn, patient
from nodes.scenarios.discovery_world import Between, Client, bdn, broker, linked
from overlay.ids import NodeId
from overlay.sim import Exponential, NetworkModel, SimStage, Simulator
from overlay.sim.tracing import SimTraces
from overlay.sim.traffic import UDP_PORT
from overlay.tracing import Level
from protocols.discovery import BrokerFound, BrokerSettings, DiscoverySettings
from protocols.discovery.interface import Moment

PAPER = Path(__file__).parents[1] / "configs" / "papers" / "broker-discovery.toml"
SETTLED = 3.0  # s for advertisements, links and probes
LAN = "lab"  # where multicast reaches


class Sites:
    """One topology; a discovery is run by a client that has never been there before."""

    def __init__(
        self, topology: str, seed: int, traces: Path | None = None, *, as_published: bool = False
    ) -> None:
        """`as_published`: its BDN and client, not ours."""
        self.paper: dict[str, Any] = tomllib.loads(PAPER.read_text(encoding="utf-8"))
        queue = Exponential(self.paper["jitter"] / 1000, self.paper["near"] / 4000)
        self.sim = Simulator(seed, NetworkModel(latency=queue), check_every=0)
        if traces is not None:
            self.sim.traces = SimTraces(self.sim, traces, run=topology, level=Level.DELIVERY)
        self.stage = SimStage(self.sim, nodes=5)
        self._rng = Random(f"{seed}/clocks")
        self._at: dict[str, list[NodeId]] = {}  # by site; the rules below see it grow
        sites = {*self.paper["brokers"], *self.paper["clients"], self.paper["bdn"]}
        for one, other in combinations(sorted(sites), 2):
            here, there = self._at.setdefault(one, []), self._at.setdefault(other, [])
            self.sim.faults.add(Between(self.round_trip(one, other) / 2, a=here, b=there))
        self._clients = 0
        self._as_published = as_published
        self._start("bdn", self.paper["bdn"], add_distributing_bdn if as_published else bdn())
        names = list(self.paper["brokers"])
        for name, links in linked(names, topology).items():
            # Of a line only one broker is registered (figure 10).
            bdns = (f"bdn:{UDP_PORT}",) if topology != "linear" or name == names[0] else ()
            self._start(
                name, name, broker(BrokerSettings(bdns=bdns, links=links), clock=self._clock)
            )
        self.sim.run_for(SETTLED)

    def _clock(self, now: float) -> Moment:
        return Moment(now, self.paper["clock_error"] / 1000)

    def round_trip(self, one: str, other: str) -> float:
        """Between two sites, in seconds."""
        if one == other:
            return float(self.paper["near"]) / 1000
        table = self.paper["round_trips"]
        found = table.get(f"{one}-{other}", table.get(f"{other}-{one}"))
        return float(found) / 1000

    def nearest(self, site: str) -> NodeId:
        """The broker to find from there."""
        names: list[NodeId] = self.paper["brokers"]
        return min(names, key=lambda name: self.round_trip(site, name))

    def _start(self, name: NodeId, site: str, recipe: Any) -> None:
        error = self.paper["clock_error"] / 1000
        self._at[site].append(name)
        self.sim.add_node(name, recipe, lan=site, offset=self._rng.uniform(-error, error))

    def discover(self, site: str) -> BrokerFound:
        """Let a new client there find its broker."""
        self._clients += 1
        name = f"{site}-{self._clients}"
        self._at[site].append(name)
        address, selected = f"bdn:{UDP_PORT}", self.paper["selected"]
        config = (
            patient(address, self.paper["brokers"], selected)
            if self._as_published
            else DiscoverySettings(bdns=(address,), targets=selected)
        )
        client = Client(self.stage, name, config)
        wait = client.discover()
        assert self.sim.run_until(wait.condition, config.timeout + 0.01, every=0.001)
        found = client.found
        self.sim.stop(name)
        self._at[site].remove(name)
        return found


def kept(values: list[float], count: int) -> list[float]:
    """Without outliers: those nearest to the median."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return sorted(ordered, key=lambda value: abs(value - middle))[:count]
