"""The index: its keys, their order, and what it costs to name what nobody else names."""

from __future__ import annotations

import pytest

from overlay.errors import LocalProtocolError
from overlay.predicates import Constraint, ConstraintIndex


def index_of(*texts: str) -> ConstraintIndex[str]:
    index: ConstraintIndex[str] = ConstraintIndex()
    for text in texts:
        index.add(text, Constraint.parse(text))
    return index


def test_each_relation_asks_for_attributes_in_its_own_direction() -> None:
    index = index_of("a > 1", "a > 1, b > 1", "c = 'x'", "")
    assert index.matching({"a": 2, "b": 0}) == ["a > 1", ""]
    assert index.covering(Constraint.parse("a > 3")) == ["a > 1", ""]
    assert index.covered_by(Constraint.parse("a > 0")) == ["a > 1", "a > 1, b > 1"]
    assert index.intersecting(Constraint.parse("a < 9")) == ["a > 1", "a > 1, b > 1"]
    assert index.intersected_by(Constraint.parse("a < 9, c = 'x'")) == ["a > 1", "c = 'x'", ""]
    assert index.advertisement_covering(Constraint.parse("a = 5")) == ["a > 1", "a > 1, b > 1"]
    assert index.advertisement_covered_by(Constraint.parse("a > 0")) == ["a > 1", ""]


def test_answers_are_in_the_order_of_adding_also_when_numbers_are_used_again() -> None:
    index = index_of("a > 1", "a > 2", "a > 3")
    assert index.remove("a > 2") == Constraint.parse("a > 2")
    index.add("a > 4", Constraint.parse("a > 4"))
    assert index.matching({"a": 9}) == list(index) == ["a > 1", "a > 3", "a > 4"]
    many: ConstraintIndex[int] = ConstraintIndex()
    for key in range(200):
        many.add(key, Constraint.parse(f"a > {key}"))
    assert many.matching({"a": 120.5}) == list(range(121))
    assert many.intersecting(Constraint.parse("a = 120.5")) == list(range(121))


def test_a_key_is_taken_once_and_given_back_once() -> None:
    index = index_of("a > 1")
    with pytest.raises(LocalProtocolError, match="already has a constraint 'a > 1'"):
        index.add("a > 1", Constraint.parse("b > 1"))
    index.remove("a > 1")
    with pytest.raises(LocalProtocolError, match="has no constraint 'a > 1'"):
        index.remove("a > 1")
    assert index.get("a > 1") is None
    assert "a > 1" not in index
    with pytest.raises(KeyError):
        index["a > 1"]


def test_a_flood_of_attributes_costs_no_more_than_their_number() -> None:
    """Each of 3,000 constraints names an attribute of its own: sets stay short in each segment."""
    index: ConstraintIndex[int] = ConstraintIndex()
    for key in range(3000):
        index.add(key, Constraint.parse(f"n{key} > 1, shared = 'x'"))
    assert index.matching({"n17": 2, "shared": "x"}) == [17]
    assert index.covering(Constraint.parse("n2999 = 5, shared = 'x'")) == [2999]
    longest = max(
        mask.bit_length()
        for segment in index._segments
        for column in segment._columns.values()
        for line in column.lines.values()
        for mask in (line.all, *line.late, *line.early)
    )
    assert longest <= 256
