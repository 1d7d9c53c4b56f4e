"""Resources: whatever is lost, doubled or late, a complete find has all that it must, once."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from overlay.ids import NodeId
from overlay.predicates import Constraint, Item, matches
from protocols.resources import FindEnded, ResourcesSettings
from tests.brokers import Brokers

EXPIRY = 4.0  # s: short, so that covers grow old in a test
RANGES = "disk <= 100, memory <= 100"
SETTLE = 8.0
Forwarding = Literal["normal", "similarity", "direct"]


class Chaos:
    """A world of brokers, and the oracle: what each resource was at any time."""

    def __init__(self, rng: Random, forwarding: Forwarding) -> None:
        self.rng = rng
        names = [chr(ord("A") + index) for index in range(rng.randint(2, 7))]
        edges = {names[rng.randrange(index)] + names[index] for index in range(1, len(names))}
        for _ in range(rng.choice((0, 0, 1, 2, 3))):  # circles
            one, other = rng.sample(names, 2)
            if other + one not in edges:
                edges.add(one + other)
        config = ResourcesSettings(
            forwarding=forwarding, expiry=EXPIRY, update_interval=0.0, timeout=3.0, resend=0.1
        )
        self.brokers = Brokers(sorted(edges), config, rng.getrandbits(32))
        self.history: dict[str, list[tuple[float, Item | None]]] = {}
        self.finds: dict[int, tuple[NodeId, Constraint, float]] = {}
        self.ends: dict[int, tuple[FindEnded, float]] = {}
        self.crashes: list[float] = []
        for index in range(rng.randint(1, 6)):
            self.register(rng.choice(names), f"r{index}")

    def register(self, at: NodeId, name: str) -> None:
        item = self.values()
        id_ = self.brokers.register(at, name, RANGES, item)
        self.history.setdefault(id_, []).append((self.brokers.now, item))

    def values(self) -> dict[str, int]:
        return {"disk": self.rng.randrange(0, 100, 10), "memory": self.rng.randrange(0, 100, 10)}

    def step(self, faults: float) -> None:
        rng, brokers = self.rng, self.brokers
        dice = rng.random()
        if brokers.under_way and dice < 0.75:
            ends = rng.choice(list(brokers.under_way))
            index = rng.randrange(len(brokers.under_way[ends])) if rng.random() < faults else 0
            if rng.random() < faults / 2:
                brokers.lose(ends, index)
            else:
                brokers.deliver(ends, index, keep=rng.random() < faults / 2)
        elif dice < 0.85:
            brokers.pass_time(rng.choice((0.001, 0.01, 0.1, 0.5)))
        elif dice < 0.93:
            self.ask()
        elif live := [one for one, known in self.history.items() if known[-1][1] is not None]:
            id_ = rng.choice(live)
            owner, _, name = id_.partition("/")
            if rng.random() < 0.15:
                brokers.machines[owner].unregister(name, brokers.now)
                brokers.settle(owner)
                self.history[id_].append((brokers.now, None))
            else:
                item = self.values()
                brokers.update(owner, name, item)
                self.history[id_].append((brokers.now, item))
        self.note_ends()

    def ask(self) -> None:
        rng = self.rng
        query = f"disk >= {rng.randrange(0, 60, 20)}"
        if rng.random() < 0.5:
            query += f", memory >= {rng.randrange(0, 60, 20)}"
        at = rng.choice(list(self.brokers.machines))
        number = self.brokers.find(at, query)
        self.finds[number] = (at, Constraint.parse(query), self.brokers.now)

    def crash(self) -> None:
        brokers = self.brokers
        if len(brokers.machines) > 1:
            name = self.rng.choice(list(brokers.machines))
            brokers.crash(name)
            self.crashes.append(brokers.now)
            for id_, known in self.history.items():
                if id_.startswith(f"{name}/") and known[-1][1] is not None:
                    known.append((brokers.now, None))
            for number in [one for one, (at, *_) in self.finds.items() if at == name]:
                if number not in self.ends:
                    del self.finds[number]

    def note_ends(self) -> None:
        for _, event in self.brokers.heard:
            if isinstance(event, FindEnded):
                assert event.find not in self.ends, "it ended twice"
                self.ends[event.find] = (event, self.brokers.now)
        self.brokers.heard.clear()

    def check(self) -> None:
        """Everything ended, and what is complete is what the oracle says."""
        for number, (at, wanted, asked) in self.finds.items():
            assert number in self.ends, f"{number} has no end"
            event, answered = self.ends[number]
            ids = [one.id for one in event.resources]
            assert len(set(ids)) == len(ids), "one came twice"
            for one in event.resources:
                assert matches(one.item, wanted), one
                assert self.was(one.id, one.item, asked - EXPIRY, answered), (one, asked)
            calm = not any(asked - EXPIRY <= one <= answered for one in self.crashes)
            if event.complete and calm:
                for id_ in self.history:
                    if self.matched_throughout(
                        id_, wanted, asked - EXPIRY, answered
                    ) and self.is_reachable(at, id_):
                        assert id_ in ids, f"{id_} is missing from {number}, asked at {asked}"

    def is_reachable(self, at: NodeId, id_: str) -> bool:
        """No crash has parted them: nobody returns here, so it never had before either."""
        owner = id_.partition("/")[0]
        living = self.brokers.machines
        return at in living and owner in living and self.brokers.hop(at, owner) is not None

    def was(self, id_: str, item: Item, start: float, end: float) -> bool:
        """Whether it had these values at some moment of that time."""
        known = [*self.history[id_], (inf, None)]
        return any(
            held == item and at <= end and until >= start
            for (at, held), (until, _) in pairwise(known)
        )

    def matched_throughout(self, id_: str, wanted: Constraint, start: float, end: float) -> bool:
        known = [*self.history[id_], (inf, None)]
        if known[0][0] > start:
            return False
        spans = pairwise(known)
        return all(
            held is not None and matches(held, wanted)
            for (at, held), (until, _) in spans
            if at <= end and until > start
        )


def run(seed: int, forwarding: Forwarding, faults: float, crashes: bool = False) -> Chaos:
    rng = Random(seed)
    chaos = Chaos(rng, forwarding)
    # What is registered long before is what a find owes.
    chaos.brokers.pass_time(EXPIRY)
    for _ in range(rng.randint(20, 150)):
        chaos.step(faults)
        if crashes and rng.random() < 0.02:
            chaos.crash()
    for _ in range(int(SETTLE / 0.05)):
        chaos.brokers.calm()
        chaos.brokers.pass_time(0.05)
        chaos.note_ends()
    chaos.check()
    return chaos


@given(st.integers(0, 2**32))
def test_sharing_results_in_any_order(seed: int) -> None:
    chaos = run(seed, "similarity", 0.0)
    assert all(event.complete for event, _ in chaos.ends.values() if event.reason != "timeout")


@given(st.integers(0, 2**32))
def test_sharing_results_with_faults(seed: int) -> None:
    run(seed, "similarity", 0.4)


@given(st.integers(0, 2**32))
def test_sharing_results_while_brokers_crash(seed: int) -> None:
    run(seed, "similarity", 0.3, crashes=True)


@given(st.integers(0, 2**32))
def test_normal_forwarding_with_faults(seed: int) -> None:
    run(seed, "normal", 0.4)


@given(st.integers(0, 2**32))
def test_direct_results_with_faults(seed: int) -> None:
    run(seed, "direct", 0.4)
