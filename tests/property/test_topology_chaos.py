"""Links under any order, loss and repetition of messages, while members come and go."""

from __future__ import annotations

from random import Random

from hypothesis import settings
from hypothesis.stateful import initialize, precondition, rule
from hypothesis.strategies import DataObject, data, floats, integers, sampled_from

from overlay.ids import NodeId
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined
from protocols.topology import Topology, TopologySettings
from protocols.topology.selection import ring_neighbours
from tests.property.chaos import Chaos
from tests.property.network import Network
from tests.unit.topology.fixed_view import ZONE, FixedView, Roster

NAMES = ["ada", "bob", "cy", "dee", "eve", "fay", "gus", "hal"]


class LinksUnderChaos(Chaos):
    """Each member has a view of its own; views differ until they are told the truth."""

    @initialize(
        seed=integers(0, 99), ring=integers(1, 2), degree=integers(2, 6), random=integers(0, 2)
    )
    def start(self, seed: int, ring: int, degree: int, random: int) -> None:
        self.network = Network()
        self.rosters: dict[NodeId, Roster] = {}
        self.members: dict[NodeId, Topology] = {}
        self.lives = 0
        self.seed = seed
        self.config = TopologySettings(
            ring_links=ring, random_links=random, max_degree=degree, check_period=1.0, avoid=1.0
        )
        for name in NAMES[:4]:
            self.begin(name)

    def begin(self, name: NodeId) -> None:
        self.lives += 1
        self.rosters[name] = roster = Roster(
            [*self.members, name], dict.fromkeys(NAMES[::2], "ants")
        )
        rng = Random(f"{self.seed}/{name}/{self.lives}")
        self.members[name] = self.network.add(
            name,
            lambda effects: Topology(
                name, effects, rng, self.config, members=FixedView(name, roster)
            ),
        )

    @rule(seconds=floats(0.0, 0.5))
    def all_arrives(self, seconds: float) -> None:
        self.network.run(seconds)

    @precondition(lambda self: len(self.members) < len(NAMES))
    @rule(choices=data())
    def join(self, choices: DataObject) -> None:
        self.begin(choices.draw(sampled_from([name for name in NAMES if name not in self.members])))

    @precondition(lambda self: len(self.members) > 1)
    @rule(choices=data())
    def die(self, choices: DataObject) -> None:
        victim = choices.draw(sampled_from(list(self.members)))
        del self.members[victim]
        del self.rosters[victim]
        self.network.kill(victim)

    @rule(choices=data(), topics=sampled_from(["", "ants", "ants,bees"]))
    def change_interest(self, choices: DataObject, topics: str) -> None:
        subject = choices.draw(sampled_from(list(self.members)))
        for name in self.members:
            self.rosters[name].set(subject, "topics", topics)
            self.network.tell(name, AttributesChanged(ZONE, subject, ("topics",)))

    @rule(choices=data())
    def learn(self, choices: DataObject) -> None:
        """One member learns the truth."""
        self.correct(choices.draw(sampled_from(list(self.members))))

    def correct(self, name: NodeId) -> None:
        roster = self.rosters[name]
        for gone in [other for other in roster.ring if other not in self.members]:
            roster.remove(gone)
            self.network.tell(name, MemberFailed(ZONE, gone))
        for here in [other for other in self.members if other not in roster.ring]:
            roster.add(here)
            self.network.tell(name, MemberJoined(ZONE, here, 1))

    def teardown(self) -> None:
        """Once views are right and messages arrive, both ends hold each link, and the ring's."""
        for name in self.members:
            self.correct(name)
        self.network.run(self.config.check_period * (self.config.silence + 3))
        for name, links in self.members.items():
            near = ring_neighbours(self.rosters[name].ring, name, self.config.ring_links)
            assert all(links.is_neighbour(peer) for peer in near)
            for peer in links.neighbours():
                assert self.members[peer].is_neighbour(name), f"{name} holds a link to {peer}"
            assert links.degree <= len(near) + self.config.max_degree


TestLinksUnderChaos = LinksUnderChaos.TestCase
TestLinksUnderChaos.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
