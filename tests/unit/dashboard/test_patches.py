"""A page that applies what changed has what the server has."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodes.dashboard.patches import difference, patched, without_nulls

LEAVES = st.one_of(st.integers(0, 3), st.text("ab", max_size=2), st.lists(st.integers(0, 2)))
VALUES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
)
MODELS = st.dictionaries(st.text("abc", min_size=1, max_size=1), VALUES, max_size=3)


@given(MODELS, MODELS)
def test_a_patch_makes_the_new_out_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert patched(old, difference(old, new)) == new


@given(MODELS)
def test_nothing_changed_is_no_patch(model: dict[str, Any]) -> None:
    assert difference(model, model) == {}


def test_only_what_changed_is_told() -> None:
    old = {"zones": {"lab": {"size": 2, "members": {"ada": 1, "bob": 1}}}, "watched": 2}
    new = {"zones": {"lab": {"size": 1, "members": {"ada": 1}}}, "watched": 2}
    assert difference(old, new) == {"zones": {"lab": {"size": 1, "members": {"bob": None}}}}


def test_what_is_not_known_is_left_out() -> None:
    assert without_nulls({"a": None, "b": {"c": None, "d": [None]}}) == {"b": {"d": [None]}}
