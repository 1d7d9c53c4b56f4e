"""Any graph of brokers, any order of events: in the end publications find who wants them, once.

The oracle is central: it knows who advertises and wants what, and which brokers are connected.
"""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overlay.predicates import Constraint, Predicate, determines, matches
from protocols.content import entry_id
from protocols.content.messages import Change
from tests.unit.content.world import World, linked

VALUES = range(4)
EVERYTHING = Constraint.parse("x >= 0")
SETTLED = 12.0  # s; leases of 3 and 4 s, then some beats


def some_constraint(rng: Random, *, advertisement: bool) -> Constraint:
    """Ranges over one or two small attributes, often covering each other."""
    predicates = []
    names = ("x", "y") if rng.random() < (0.7 if advertisement else 0.3) else (rng.choice("xy"),)
    for name in names:
        low = rng.choice((0, 0, 0, 1, 2))
        high = rng.choice((3, 3, 3, low, max(low, 2)))
        predicates += [Predicate(name, ">=", low), Predicate(name, "<=", high)]
    return Constraint.of(*predicates)


class Chaos:
    """A world, what everybody wished for, and a seeded run of events."""

    def __init__(self, seed: int, size: int, extra: int) -> None:
        rng = self.rng = Random(seed)
        self.names = [f"b{number}" for number in range(size)]
        edges = {frozenset((name, rng.choice(self.names[:at]))) for at, name in
                 enumerate(self.names) if at}  # fmt: skip
        for _ in range(extra):
            edges.add(frozenset(rng.sample(self.names, 2)))
        self.edges = sorted(tuple(sorted(edge)) for edge in edges)
        self.world = World()
        self.advertised: dict[str, dict[str, Constraint]] = {}
        self.wanted: dict[str, dict[str, Constraint]] = {}
        self.clients: dict[str, str] = {}
        for name in self.names:
            self.start(name)
        self.world.pass_time(2.5)

    def start(self, name: str) -> None:
        links = [
            one if other == name else other for one, other in self.edges if name in (one, other)
        ]
        self.world.broker(name, links)
        self.advertised[name], self.wanted[name] = {}, {}

    def step(self) -> None:
        rng, world = self.rng, self.world
        act = rng.choice(
            ("advertise",) * 8 + ("subscribe",) * 14 + ("unadvertise",) * 3 + ("unsubscribe",) * 5
            + ("kill", "leave", "cut") + ("return", "heal", "lose", "client", "move") * 2
            + ("deliver",) * 12 + ("time",) * 2
        )  # fmt: skip
        alive = list(world.machines)
        name = rng.choice(alive) if alive else ""
        if act == "advertise" and name:
            mine = rng.choice("pqr")
            constraint = some_constraint(rng, advertisement=True)
            world.call(name, "advertise", mine, constraint, whole=rng.random() < 0.2)
            self.advertised[name][mine] = constraint
        elif act == "subscribe" and name:
            mine = rng.choice("stu")
            constraint = some_constraint(rng, advertisement=False)
            world.call(name, "subscribe", mine, constraint)
            self.wanted[name][mine] = constraint
        elif act == "unadvertise" and name and self.advertised[name]:
            mine = rng.choice(list(self.advertised[name]))
            del self.advertised[name][mine]
            world.call(name, "unadvertise", mine)
        elif act == "unsubscribe" and name and self.wanted[name]:
            mine = rng.choice(list(self.wanted[name]))
            del self.wanted[name][mine]
            world.call(name, "unsubscribe", mine)
        elif act == "kill" and len(alive) > 2:
            self.forget(name)
            world.kill(name)
        elif act == "leave" and len(alive) > 2:
            self.forget(name)
            world.stop(name)
        elif act == "return":
            gone = [one for one in self.names if one not in world.machines]
            if gone:
                self.start(rng.choice(gone))
        elif act == "cut":
            world.cut.add(frozenset(rng.choice(self.edges)))
        elif act == "heal" and world.cut:
            world.cut.remove(rng.choice(sorted(world.cut, key=sorted)))
        elif act == "client" and len(self.clients) < 4 and self.brokers():
            client = f"c{world.lives}"
            self.clients[client] = rng.choice(self.brokers())
            world.client(client, self.clients[client])
            self.advertised[client], self.wanted[client] = {}, {}
        elif act == "move" and self.clients and self.brokers():
            client = rng.choice(list(self.clients))
            self.clients[client] = rng.choice(self.brokers())
            world.call(client, "attach", self.clients[client])
        elif act == "time":
            world.pass_time(rng.choice((0.1, 1.0, 5.0)))
        elif world.links:
            pair = rng.choice(list(world.links))
            (world.lose if act == "lose" else world.deliver)(pair)

    def forget(self, name: str) -> None:
        self.advertised.pop(name)
        self.wanted.pop(name)
        self.clients.pop(name, None)

    def brokers(self) -> list[str]:
        return [name for name in self.names if name in self.world.machines]

    def component(self, name: str) -> set[str]:
        """Who can hear from whom, by the links that are up."""
        up = [
            edge for edge in (*self.edges, *self.clients.items())
            if all(end in self.world.machines for end in edge)
            and frozenset(edge) not in self.world.cut
        ]  # fmt: skip
        found = {name}
        while more := {end for edge in up if set(edge) & found for end in edge} - found:
            found |= more
        return found

    def check(self) -> None:
        """Publish everything that is possible, and compare with the oracle."""
        world = self.world
        world.pass_time(SETTLED)
        world.delivered()
        self.check_tables()
        for publisher, entries in self.advertised.items():
            near = self.component(publisher)
            for mine, constraint in entries.items():
                self.check_one(publisher, mine, constraint, near)

    def check_tables(self) -> None:
        """Nobody knows of an entry that is gone."""
        for name, machine in self.world.machines.items():
            near = self.component(name)
            advertised = {entry_id(one, mine) for one in near for mine in self.advertised[one]}
            wanted = {entry_id(one, mine) for one in near for mine in self.wanted[one]}
            assert {one.id for one in machine.router.srt} <= advertised
            assert {row.id for row in machine.subscriptions()} <= wanted

    def check_one(self, publisher: str, mine: str, constraint: Constraint, near: set[str]) -> None:
        items = [{"x": x, "y": y} for x, y in product(VALUES, VALUES)]
        items += [{name: value} for name in "xy" for value in VALUES]
        for item in items:
            if not determines(constraint, item):
                continue
            sequence = self.world.call(publisher, "publish", mine, item)
            self.world.pass_time(0.3)
            expected = sorted(
                (entry_id(name, theirs), entry_id(publisher, mine), sequence)
                for name, wishes in self.wanted.items()
                if name in near
                for theirs, wish in wishes.items()
                if matches(item, wish)
            )
            assert sorted(self.world.delivered()) == expected, (self.edges, item)


def run(seed: int, size: int, extra: int, steps: int) -> None:
    chaos = Chaos(seed, size, extra)
    for _ in range(steps):
        chaos.step()
    chaos.check()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(2, 7), st.sampled_from((0, 0, 1, 3, 6)), st.integers(5, 150)
)
def test_publications_find_who_wants_them(seed: int, size: int, extra: int, steps: int) -> None:
    run(seed, size, extra, steps)


def test_a_ring_forgets_what_went_around_it() -> None:
    """Around a ring a subscription comes back to where it started: it must not live on by that."""
    world = World()
    names = [f"b{number}" for number in range(8)]
    linked(world, [*pairwise(names), (names[-1], names[0])])
    for name in names:
        world.call(name, "advertise", "p", EVERYTHING, whole=True)
    world.drain()
    world.call("b0", "subscribe", "s", EVERYTHING)
    world.drain()
    assert all(list(machine.subscriptions()) for machine in world.machines.values())
    world.sent.clear()
    world.call("b0", "unsubscribe", "s")
    world.drain()
    told = [msg for _, _, msg in world.sent if isinstance(msg, Change)]
    assert len(told) <= 5 * len(names), "not around again and again, with ever longer paths"
    assert not any(list(machine.subscriptions()) for machine in world.machines.values())


def test_two_covers_do_not_hide_a_third_from_both_sides() -> None:
    """A ring in which any cover told to a neighbour would do: nobody would find what k offers."""
    world = World()
    left, right = [f"l{number}" for number in range(4)], [f"r{number}" for number in range(4)]
    middle = [f"m{number}" for number in range(3)]
    ring = ["k", *left, *middle, *reversed(right)]
    linked(world, [*pairwise(ring), (ring[-1], ring[0])])
    for name, entry in ((left[-1], "wide"), (right[-1], "wide"), ("k", "narrow")):
        constraint = EVERYTHING if entry == "wide" else Constraint.parse("x > 2, x < 3")
        world.call(name, "advertise", entry, constraint)
        world.pass_time(0.1)
    world.call(middle[1], "subscribe", "s", Constraint.parse("x > 0"))
    world.drain()
    world.delivered()
    world.call("k", "publish", "narrow", {"x": 2.5})
    world.drain()
    assert world.delivered() == [(f"{middle[1]}/s", "k/narrow", 1)]


@pytest.mark.parametrize(
    "case",
    [
        (1629, 6, 3, 82),  # an older constraint of a subscription came around a cycle
        (1236, 6, 3, 90),  # a publication that waited came by the way that it waited for
    ],
)
def test_cases_that_failed_once(case: tuple[int, int, int, int]) -> None:
    run(*case)
