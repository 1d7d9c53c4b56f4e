"""Routers under any order, loss and repetition of messages, and deaths of members."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis.stateful import initialize, precondition, rule
from hypothesis.strategies import DataObject, booleans, data, floats, integers, sampled_from

from overlay.ids import NodeId
from protocols.membership.events import MemberFailed
from protocols.routing import (
    AggregateDone,
    BroadcastArrived,
    BroadcastDone,
    Interest,
    RouteArrived,
    Routed,
    RouteFailed,
    Routing,
    RoutingSettings,
)
from tests.property.chaos import Chaos
from tests.property.network import Network
from tests.unit.routing.machines import FixedLinks
from tests.unit.topology.fixed_view import ZONE, FixedView, Roster

NAMES = ["ada", "bob", "cy", "dee", "eve", "fay"]
HASTY = RoutingSettings(route_timeout=4.0, spread_timeout=4.0, take_timeout=0.25, take_tries=2)


class RoutingUnderChaos(Chaos):
    """Each member has a view of its own, which hears of a death late."""

    @initialize(seed=integers(0, 99))
    def start(self, seed: int) -> None:
        self.network = Network()
        self.rosters: dict[NodeId, Roster] = {}
        self.began: dict[int, NodeId] = {}
        self.routers: dict[NodeId, Routing] = {}
        rng = Random(seed)
        for name in NAMES:
            self.rosters[name] = roster = Roster(NAMES, {"ada": "ants", "dee": "ants"})
            links = FixedLinks(rng.sample([other for other in NAMES if other != name], 3))
            self.routers[name] = self.network.add(
                name,
                lambda effects, name=name, roster=roster, links=links: Routing(  # type: ignore[misc]
                    name,
                    effects,
                    Random(f"{seed}/{name}"),
                    HASTY,
                    members=FixedView(name, roster),
                    links=links,
                ),
            )

    @rule(choices=data(), key=integers(0, 2**128 - 1), direct=booleans())
    def route(self, choices: DataObject, key: int, direct: bool) -> None:
        name = choices.draw(sampled_from(list(self.routers)))
        number = self.routers[name].route(key, b"x", self.network.now, direct=direct)
        self.begin(number, name)

    @rule(choices=data(), interested=booleans())
    def broadcast(self, choices: DataObject, interested: bool) -> None:
        name = choices.draw(sampled_from(list(self.routers)))
        interest = Interest("ants") if interested else None
        number = self.routers[name].broadcast(b"x", self.network.now, interest=interest)
        self.begin(number, name)

    @rule(choices=data())
    def aggregate(self, choices: DataObject) -> None:
        name = choices.draw(sampled_from(list(self.routers)))
        self.begin(self.routers[name].aggregate("topics", self.network.now), name)

    def begin(self, number: int, name: NodeId) -> None:
        self.began[number] = name
        self.network.settle(name)

    @rule(seconds=floats(0.0, 0.2))
    def all_arrives(self, seconds: float) -> None:
        self.network.run(seconds)

    @precondition(lambda self: len(self.routers) > 2)
    @rule(choices=data())
    def die(self, choices: DataObject) -> None:
        victim = choices.draw(sampled_from(list(self.routers)))
        self.network.kill(victim)
        del self.routers[victim]

    @rule(choices=data())
    def notice(self, choices: DataObject) -> None:
        """One member learns of one death."""
        name = choices.draw(sampled_from(list(self.routers)))
        for dead in [other for other in self.rosters[name].ring if other not in self.routers]:
            self.rosters[name].remove(dead)
            self.network.tell(name, MemberFailed(ZONE, dead))

    def teardown(self) -> None:
        """In the end everything ended, once; and a zone at rest works."""
        self.network.run(20.0)
        for name in self.routers:
            assert self.routers[name].open_here == 0
            assert self.routers[name].in_custody == 0
        self.check_told_once()
        for name in self.routers:
            self.rosters[name].ring = Roster(self.routers).ring
            self.rosters[name].version += 1
        self.network.heard.clear()
        origin = next(iter(self.routers))
        number = self.routers[origin].broadcast(b"y", self.network.now)
        self.network.settle(origin)
        self.network.run(2.0)
        got = [name for name, event in self.network.heard if isinstance(event, BroadcastArrived)]
        assert sorted(got) == sorted(self.routers)
        (done,) = [event for _, event in self.network.heard if isinstance(event, BroadcastDone)]
        assert (done.id, done.reached, done.missing) == (number, len(self.routers), 0)

    def check_told_once(self) -> None:
        arrived = Counter(
            (name, event.id)
            for name, event in self.network.heard
            if isinstance(event, RouteArrived | BroadcastArrived)
        )
        assert all(times == 1 for times in arrived.values())
        ends = Counter(
            event.id
            for _, event in self.network.heard
            if isinstance(event, Routed | RouteFailed | BroadcastDone | AggregateDone)
        )
        assert all(times == 1 for times in ends.values())
        assert all(number in ends for number, name in self.began.items() if name in self.routers)


TestRoutingUnderChaos = RoutingUnderChaos.TestCase
TestRoutingUnderChaos.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
