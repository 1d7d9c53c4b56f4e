"""Each relation of the language agrees with brute force over a small domain."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.errors import RemoteProtocolError
from overlay.predicates import (
    Constraint,
    Date,
    Item,
    Predicate,
    PredicateError,
    TimeOfDay,
    Value,
    WireConstraint,
    advertisement_covers,
    covers,
    determines,
    intersects,
    item_from_wire,
    matches,
)
from tests.property.constraints import (
    CONSTANTS,
    EVERY_VALUE,
    FEW_CONSTANTS,
    FEW_ITEMS,
    constraints,
    predicates,
)

P = TypeVar("P")
T = TypeVar("T")
E = TypeVar("E", bound=Exception)

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ON_A = constraints(["a"], CONSTANTS)
ON_BOTH = constraints(["a", "b"], FEW_CONSTANTS)


def satisfies(value: Value, predicate: Predicate) -> bool:
    """What a predicate means, said once more in Python's own comparisons."""
    wanted: Any = predicate.value
    if predicate.operator == "present":
        return True
    if _line(value) is not _line(wanted):
        return False
    if predicate.operator == "prefix":
        return str(value).startswith(wanted)
    return COMPARISONS[predicate.operator](_plain(value), _plain(wanted))


def _line(value: Value) -> type:
    return float if type(value) is int else type(value)


def _plain(value: Value) -> Any:
    return getattr(value, "seconds", getattr(value, "ordinal", value))


@given(st.lists(predicates(["a"], CONSTANTS), max_size=6))
def test_a_conjunction_holds_what_each_predicate_holds(parts: list[Predicate]) -> None:
    wanted = [value for value in EVERY_VALUE if all(satisfies(value, part) for part in parts)]
    try:
        constraint = Constraint.of(*parts)
    except PredicateError:
        assert not wanted
    else:
        assert wanted
        assert [value for value in EVERY_VALUE if matches({"a": value}, constraint)] == wanted


@given(ON_A, ON_A)
def test_ranges_of_every_kind_cover_and_meet_exactly(one: Constraint, other: Constraint) -> None:
    held = [matches({"a": value}, one) for value in EVERY_VALUE]
    others = [matches({"a": value}, other) for value in EVERY_VALUE]
    if "a" in one.spans and "a" in other.spans:
        within = all(mine for mine, theirs in zip(held, others, strict=True) if theirs)
        assert covers(one, other) == advertisement_covers(one, other) == within
        common = any(mine and theirs for mine, theirs in zip(held, others, strict=True))
        assert intersects(one, other) == intersects(other, one) == common
        assert (one == other) == (held == others)


@given(ON_BOTH, st.sampled_from(FEW_ITEMS))
def test_matches_and_determines(constraint: Constraint, item: Item) -> None:
    parts = constraint.wire()
    named = {part.attribute for part in parts}
    assert matches(item, constraint) == all(
        part.attribute in item and satisfies(item[part.attribute], part) for part in parts
    )
    assert determines(constraint, item) == all(
        name in named and all(satisfies(value, part) for part in parts if part.attribute == name)
        for name, value in item.items()
    )


@given(ON_BOTH, ON_BOTH)
def test_relations_are_those_of_the_sets(one: Constraint, other: Constraint) -> None:
    wanted = [matches(item, one) for item in FEW_ITEMS]
    wanted_too = [matches(item, other) for item in FEW_ITEMS]
    offered = [determines(one, item) for item in FEW_ITEMS]
    offered_too = [determines(other, item) for item in FEW_ITEMS]
    assert covers(one, other) == _contains(wanted, wanted_too)
    assert advertisement_covers(one, other) == _contains(offered, offered_too)
    assert intersects(one, other) == any(map(operator.and_, offered, wanted_too))
    assert (one == other) == (wanted == wanted_too) == (offered == offered_too)
    assert one != other or hash(one) == hash(other)


def _contains(whole: list[bool], part: list[bool]) -> bool:
    return all(map(operator.ge, whole, part))


@given(constraints(["a", "b.c", "d-e", "ü"], CONSTANTS))
def test_readable_and_wire_forms_come_back(constraint: Constraint) -> None:
    assert Constraint.parse(str(constraint)) == constraint
    sent = msgspec.msgpack.encode(constraint.wire())
    received: tuple[Predicate, ...] = msgspec.msgpack.decode(sent, type=WireConstraint)
    assert Constraint.from_wire(received) == constraint


def attempt(read: Callable[[P], T], given: P, fault: type[E]) -> T | E:
    """What comes out, or the one kind of error that may."""
    try:
        return read(given)
    except fault as error:
        return error


@given(st.text(max_size=60) | st.text(alphabet="ab =<>!,'\"\\u019.:-etrpnfix", max_size=40))
def test_any_text_parses_or_has_one_clear_error(text: str) -> None:
    read = attempt(Constraint.parse, text, PredicateError)
    if isinstance(read, PredicateError):
        assert "\n" not in str(read)
        assert read.position is not None
        assert 0 <= read.position <= len(text)
    else:
        assert Constraint.parse(str(read)) == read


VALUES = (
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=3)
    | st.builds(TimeOfDay, st.integers(-1, 90_000))
    | st.builds(Date, st.integers(-1, 4_000_000))
)
NAMES = st.sampled_from(["a", "b", "c"]) | st.text(max_size=80)


@given(
    st.lists(
        st.builds(
            Predicate,
            NAMES,
            st.text(max_size=3) | st.sampled_from([*COMPARISONS, "present", "prefix"]),
            VALUES | st.none(),
        ),
        max_size=8,
    )
)
def test_any_message_is_a_constraint_or_a_remote_fault(parts: list[Predicate]) -> None:
    read = attempt(Constraint.from_wire, parts, RemoteProtocolError)
    if isinstance(read, RemoteProtocolError):
        assert read.reason == "bad-constraint"
    else:
        assert Constraint.from_wire(read.wire()) == read


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_any_message_is_an_item_or_a_remote_fault(attributes: dict[str, Value]) -> None:
    read = attempt(item_from_wire, attributes, RemoteProtocolError)
    if isinstance(read, RemoteProtocolError):
        assert read.reason == "bad-item"
    else:
        exact = Constraint.exactly(read)
        assert matches(read, exact)
        assert determines(exact, read)


@pytest.mark.parametrize("text", ["a" * 1_000_000 + " = 1", "a = 1, " * 1_000_000])
def test_a_megabyte_is_refused_at_once(text: str) -> None:
    with pytest.raises(PredicateError, match="characters: at most"):
        Constraint.parse(text)
