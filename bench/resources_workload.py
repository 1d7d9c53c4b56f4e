"""The workloads of the paper's evaluation (§6.2): resources, and requests of a given similarity.

The paper varies similarity "by replacing invalid discovery requests with ones that are covered by
valid ones", invalid ones being those that match no resource. So here: valid requests grow as a
tree, each narrower than an earlier one; of n requests the first s × n are those, one block of
that similarity. The others ask, at the same bounds, for values between integers, which no resource
ever has; each of them is isolated, and follows as many advertisements as the one that it replaces.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple, TypeAlias

from overlay.predicates import Constraint, Predicate, matches

TAGS = ("a", "b", "c", "d", "e")
LARGEST = 100  # value of an attribute
ROOT = {"a": 30, "b": 30}  # the request that covers all valid ones: each must be above
STEP = 3  # at most, by which a narrower request raises a bound
WIDENED = 0.15  # of the narrower requests name one more attribute instead
ADDED_BOUND = 10
TRIES = 50

Placement: TypeAlias = Literal["balanced", "geometric"]
Space: TypeAlias = Literal["uniform", "zipf"]
Time: TypeAlias = Literal["uniform", "gaussian"]


class Registered(NamedTuple):
    """A resource: what it advertises, and what it has to begin with."""

    name: str
    broker: int
    limits: dict[str, int]

    @property
    def description(self) -> Constraint:
        """As in the paper: `a <= 80`."""
        return Constraint.of(*(Predicate(tag, "<=", limit) for tag, limit in self.limits.items()))

    def values(self, rng: Random) -> dict[str, int]:
        """Anything that it advertises."""
        return {tag: rng.randint(1, limit) for tag, limit in self.limits.items()}


class Asked(NamedTuple):
    """A request, and when and where it is made."""

    at: float
    broker: int
    constraint: Constraint


def resources(rng: Random, count: int, brokers: int, placement: Placement) -> list[Registered]:
    """Two to five of the tags each, spread evenly or geometrically (p = 1/3) over brokers."""
    made = []
    for number in range(count):
        tags = sorted(rng.sample(TAGS, rng.randint(2, len(TAGS))))
        limits = {tag: rng.randint(1, LARGEST) for tag in tags}
        broker = number % brokers if placement == "balanced" else _geometric(rng, brokers)
        made.append(Registered(f"r{number:04}", broker, limits))
    return made


def requests(
    rng: Random, count: int, similarity: float, present: list[dict[str, int]]
) -> list[Constraint]:
    """A workload of that similarity, in any order; valid requests match one of those present."""
    valid = [dict(ROOT)]
    while len(valid) < count:
        valid.append(_narrower(rng, rng.choice(valid), present))
    within = round(similarity * count)
    made = [_above(bounds) for bounds in valid[:within]]
    made += [_isolated(rng, bounds) for bounds in valid[within:]]
    rng.shuffle(made)
    return made


def schedule(
    rng: Random,
    wanted: list[Constraint],
    brokers: int,
    *,
    space: Space,
    time: Time,
    duration: float,
) -> list[Asked]:
    """When and where they are asked, the first one first."""
    if time == "uniform":
        times = sorted(rng.uniform(0, duration) for _ in wanted)
    else:  # nearly all of it within the duration
        drawn = (rng.gauss(duration / 2, duration / 8) for _ in wanted)
        times = sorted(min(max(one, 0.0), duration) for one in drawn)
    weights = [1.0 if space == "uniform" else 1 / rank for rank in range(1, brokers + 1)]
    places = rng.choices(range(brokers), weights, k=len(wanted))
    return [Asked(*one) for one in zip(times, places, wanted, strict=True)]


def _geometric(rng: Random, brokers: int, p: float = 1 / 3) -> int:
    """P(n) = (1 - p)ⁿ⁻¹ p, with the brokers counted from 0; what is beyond them is drawn again."""
    while True:
        for broker in range(brokers):
            if rng.random() < p:
                return broker


def _narrower(rng: Random, bounds: dict[str, int], present: list[dict[str, int]]) -> dict[str, int]:
    """What these cover, and some resource has; the same again if nothing else is found."""
    for _ in range(TRIES):
        narrower = dict(bounds)
        unnamed = [tag for tag in TAGS if tag not in bounds]
        if unnamed and rng.random() < WIDENED:
            narrower[rng.choice(unnamed)] = ADDED_BOUND
        else:
            narrower[rng.choice(sorted(bounds))] += rng.randint(1, STEP)
        wanted = _above(narrower)
        if any(matches(item, wanted) for item in present):
            return narrower
    return dict(bounds)


def _above(bounds: dict[str, int]) -> Constraint:
    return Constraint.of(*(Predicate(tag, ">", bound) for tag, bound in bounds.items()))


def _isolated(rng: Random, bounds: dict[str, int]) -> Constraint:
    """As many attributes with the same bounds, but never `b`: so no valid request covers it."""
    others = rng.sample(TAGS[2:], 3)
    rest = [bound for tag, bound in bounds.items() if tag != "a"]
    parts = [("a", bounds["a"]), *zip(others, rest, strict=False)]
    return Constraint.of(
        *(Predicate(tag, "=", bound + round(rng.uniform(0.01, 0.99), 6)) for tag, bound in parts)
    )
