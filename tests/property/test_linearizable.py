"""The checker of histories against brute force: every order of what may have been done."""

from __future__ import annotations

from itertools import combinations, permutations
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from overlay.sim.linearizable import Kind, Operation, check_key, outcome

KINDS: tuple[Kind, ...] = (
    *("get", "contains", "put", "put_and_retrieve", "put_if_absent"),
    *("replace", "replace_if", "remove", "remove_if"),
)
values = st.sampled_from(["a", "b"])
outcomes = st.sampled_from(["a", "b", None, True, False])


@st.composite
def histories(draw: st.DrawFn) -> list[Operation]:
    """Up to six operations whose results are often wrong."""
    count = draw(st.integers(1, 6))
    moments = draw(st.permutations(range(2 * count)))
    listed = []
    for number in range(count):
        called, returned = sorted(moments[2 * number : 2 * number + 2])
        known = draw(st.integers(0, 3)) > 0
        kind = draw(st.sampled_from(KINDS))
        one = Operation(
            kind, b"k", draw(values), draw(values), "", called, returned if known else inf
        )
        if kind in ("get", "replace", "put_and_retrieve"):
            one.result = draw(st.sampled_from(["a", "b", None]))
        else:
            one.result = True if kind == "put" else draw(st.booleans())
        listed.append(one)
    return listed


def explained(order: tuple[Operation, ...]) -> bool:
    """Whether they, one after the other, give these results and contradict no clock."""
    value: object = None
    for place, one in enumerate(order):
        if any(later.returned < one.called for later in order[place:]):
            return False
        value, result = outcome(one, value)
        if one.known and (type(result) is not type(one.result) or result != one.result):
            return False
    return True


def by_brute_force(listed: list[Operation]) -> bool:
    known = [one for one in listed if one.known]
    unknown = [one for one in listed if not one.known]
    return any(
        explained(order)
        for size in range(len(unknown) + 1)
        for chosen in combinations(unknown, size)
        for order in permutations([*known, *chosen])
    )


@settings(max_examples=400)
@given(histories())
def test_it_agrees_with_brute_force(listed: list[Operation]) -> None:
    assert (check_key(listed) is None) == by_brute_force(listed)
