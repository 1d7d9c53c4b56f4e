"""The paper's world: a tree of brokers, each with an agent of the computers around it (§4).

The agent of a broker is the broker's own computer: it offers each service with the probability of
availability, accepts with that of acceptance, and asks. Everything else is the protocol itself.
"""

from __future__ import annotations

from random import Random

import msgspec

from bench.colony_dispatch import Dispatcher, QueuedEffects
from bench.colony_topology import Shape, depths, plant
from overlay.ids import NodeId
from overlay.predicates import Constraint, Predicate
from overlay.protocol import Event
from protocols.colony import (
    Colony,
    ColonySettings,
    Proposal,
    RequestEnded,
    ServantFound,
    Terms,
    Wish,
)

GAP = 0.001  # s of virtual time between two requests


class Load(msgspec.Struct, frozen=True):
    """What n requests showed."""

    requests: int
    average: float  # of brokers, as a part of the requests
    busiest: float
    busiest_depth: int  # of the busiest broker below the root
    root: float  # the root's load
    served: float  # the acceptance ratio, averaged over the agents that asked
    hops: float  # brokers on the way to a servant that was found, the first one included
    messages: float  # of a request, between brokers


class PaperWorld:
    """Brokers on a generated topology, in memory."""

    def __init__(
        self,
        seed: int,
        availability: float,
        *,
        services: int = 128,
        acceptance: float = 0.75,
        shape: Shape | None = None,
        settings: ColonySettings | None = None,
    ) -> None:
        self.rng = rng = Random(f"colony/{seed}")
        self._acceptance = acceptance
        shape = shape or Shape()
        self.leaders = plant(shape, rng)
        self.depths = depths(self.leaders)
        self.root = str(next(iter(self.leaders)))
        self.services = [
            Constraint.of(Predicate("service", "=", index)) for index in range(services)
        ]
        # No signs of life while requests are counted: nobody leaves.
        self._settings = settings or ColonySettings(beat=600.0, lease=3600.0, lazy_after=0)
        self.world: Dispatcher[Colony] = Dispatcher(self._hear)
        self.ended: RequestEnded | None = None
        self._hops = self._found = 0
        for node, leader in self.leaders.items():
            offers = [one for one in self.services if rng.random() < availability]
            self._start(str(node), "" if leader is None else str(leader), offers, acceptance)
        self.names = list(self.world.machines)
        self.world.settle()

    def _start(
        self, name: NodeId, leader: NodeId, offers: list[Constraint], acceptance: float
    ) -> None:
        draw = Random(f"{self.rng.random()}").random

        def willing(_proposal: Proposal) -> bool:
            return draw() < acceptance

        def make(effects: QueuedEffects) -> Colony:
            return Colony(
                name,
                effects,
                Random(f"{name}/{self.rng.random()}"),
                self._settings,
                leads=True,
                leader=leader,
                offers=offers,
                policy=willing,
            )

        self.world.add(name, make)

    def restart(self, name: NodeId, old: Colony) -> None:
        """Bring one back that was removed, with what it offered, and nothing else."""
        offers = [Constraint.parse(text) for text in old.own_services]
        leader = self.leaders[int(name)]
        self._start(name, "" if leader is None else str(leader), offers, self._acceptance)
        self.names.append(name)

    def _hear(self, name: NodeId, event: Event) -> None:
        if isinstance(event, RequestEnded):
            self.ended = event
        elif isinstance(event, ServantFound):
            self._hops += event.hops
            self._found += 1

    def run(self, requests: int, terms: Terms) -> Load:
        """Let agents chosen at random ask for one service each, chosen at random."""
        rng, world, machines = self.rng, self.world, self.world.machines
        before = {name: one.counts.requests for name, one in machines.items()}
        sent = world.delivered
        self._hops = self._found = 0
        asked: dict[NodeId, int] = {}
        served: dict[NodeId, int] = {}
        for _ in range(requests):
            name = rng.choice(self.names)
            world.call(machines[name].ask, [Wish((rng.choice(self.services),))], terms)
            assert self.ended is not None
            assert self.ended.complete
            asked[name] = asked.get(name, 0) + 1
            served[name] = served.get(name, 0) + self.ended.found
            world.pass_time(GAP)
        loads = {name: one.counts.requests - before[name] for name, one in machines.items()}
        busiest = max(loads, key=lambda name: loads[name])
        return Load(
            requests,
            sum(loads.values()) / len(loads) / requests,
            loads[busiest] / requests,
            self.depths[int(busiest)],
            loads[self.root] / requests,
            sum(served[name] / asked[name] for name in asked) / len(asked),
            self._hops / max(1, self._found),
            (world.delivered - sent) / requests,
        )
