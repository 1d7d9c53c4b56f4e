"""The index answers like a loop over its constraints, whatever was added and removed before."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.predicates import (
    Constraint,
    ConstraintIndex,
    Value,
    advertisement_covers,
    covers,
    intersects,
    lines,
    matches,
    segment,
)
from tests.property.constraints import (
    EVERY_VALUE,
    NUMBERS,
    OPERATORS,
    TEXTS,
    TIMES,
    satisfiable,
    some_predicate,
)

NAMES = ["a", "b"]
FEW_KINDS: list[Value] = [*NUMBERS, *TEXTS, *TIMES, True]


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    """Few constraints fill segments and lines of several cells, with several ends in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CELLS", 4)
        patch.setattr(lines, "FEW_CHANGES", 0)
        patch.setattr(segment, "CAPACITY", 50)
        yield


def some_constraint(rng: Random) -> Constraint:
    """One that is more often about the same kind than not, so that constraints are related."""
    constants = rng.choice((NUMBERS, TEXTS, TIMES, FEW_KINDS))
    drawn = [
        some_predicate(rng.choice(NAMES), rng.choice(OPERATORS), rng.choice(constants))
        for _ in range(rng.randint(0, 4))
    ]
    return satisfiable(drawn)


@given(st.integers(0, 2**32))
def test_answers_like_a_loop(seed: int) -> None:
    rng = Random(seed)
    first = [some_constraint(rng) for _ in range(rng.choice((3, 20, 80)))]
    removed = rng.sample(range(80), rng.randint(0, 60))
    later = [some_constraint(rng) for _ in range(rng.randint(0, 20))]
    index: ConstraintIndex[int] = ConstraintIndex()
    held: dict[int, Constraint] = {}

    def add(key: int, constraint: Constraint) -> None:
        index.add(key, constraint)
        held[key] = constraint

    for key, constraint in enumerate(first):
        add(key, constraint)
    for key in removed:
        if key in held:
            assert index.remove(key) == held.pop(key)
    for key, constraint in enumerate(later, 100):
        add(key, constraint)

    assert list(index) == list(held)
    assert len(index) == len(held)
    for _ in range(5):
        values = rng.choice((NUMBERS, TEXTS, TIMES, EVERY_VALUE))
        item = {name: rng.choice(values) for name in rng.sample(NAMES, rng.randint(0, 2))}
        compare(index, held, item, some_constraint(rng))
    for key in list(held):
        index.remove(key)
    assert index.covering(Constraint.parse("a = 1, b = 2")) == []
    assert len(index) == 0


def compare(
    index: ConstraintIndex[int],
    held: dict[int, Constraint],
    item: dict[str, Value],
    asked: Constraint,
) -> None:
    table = held.items()
    assert index.matching(item) == [key for key, it in table if matches(item, it)]
    assert index.matching(item) == index.covering(Constraint.exactly(item))
    assert index.covering(asked) == [key for key, it in table if covers(it, asked)]
    assert index.covered_by(asked) == [key for key, it in table if covers(asked, it)]
    assert index.intersecting(asked) == [key for key, it in table if intersects(it, asked)]
    assert index.intersected_by(asked) == [key for key, it in table if intersects(asked, it)]
    assert index.advertisement_covering(asked) == [
        key for key, it in table if advertisement_covers(it, asked)
    ]
    assert index.advertisement_covered_by(asked) == [
        key for key, it in table if advertisement_covers(asked, it)
    ]
