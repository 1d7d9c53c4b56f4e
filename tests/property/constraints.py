"""Constraints and items over a domain that is small, and yet shows every difference.

Predicates compare with few constants. So it is enough to try, of each kind, a value in every gap
that those constants leave: numbers on both sides of each and between any two, texts that are the
next ones in order ("a" and then "a\\0"), both booleans, the ends of the day and of the calendar.
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from overlay.predicates import Constraint, Date, Predicate, PredicateError, TimeOfDay, Value

LAST_DAY = 3_652_059  # 9999-12-31

NUMBERS: list[Value] = [0, 1, 1.5, 2, -3.0]
TEXTS: list[Value] = ["", "\0", "a", "a\0", "aa", "\U0010ffff"]
TIMES: list[Value] = [TimeOfDay(n) for n in (0, 1, 2, 60, 86_398, 86_399)]
DATES: list[Value] = [Date(n) for n in (1, 2, 3, LAST_DAY - 1, LAST_DAY)]
CONSTANTS = [*NUMBERS, *TEXTS, True, False, *TIMES, *DATES]

EVERY_VALUE: list[Value] = [
    *(-4, -3, -1, 0, 0.5, 1, 1.25, 1.5, 1.75, 2, 2.5),
    *("".join(chars) for n in range(5) for chars in product("\0ab\U0010ffff", repeat=n)),
    *(True, False),
    *(TimeOfDay(n) for n in (0, 1, 2, 3, 4, 59, 60, 61, 500, *range(86_395, 86_400))),
    *(Date(n) for n in (1, 2, 3, 4, 5, 500, *range(LAST_DAY - 4, LAST_DAY + 1))),
]

OPERATORS = ["=", "!=", "!=", "<", "<=", ">", ">=", "present", "prefix"]  # more holes than else

FEW_CONSTANTS: list[Value] = [0, 1, "a", True]
FEW_VALUES: list[Value] = [-1, 0, 0.5, 1, 2, "", "a", "a\0", "b", True, False]
FEW_ITEMS: list[dict[str, Value]] = [
    {name: value for name, value in (("a", a), ("b", b)) if value is not None}
    for a, b in product([*FEW_VALUES, None], repeat=2)
]


def predicates(names: list[str], constants: list[Value]) -> st.SearchStrategy[Predicate]:
    """Any well-formed predicate on one of the names."""
    return st.builds(
        some_predicate,
        st.sampled_from(names),
        st.sampled_from(OPERATORS),
        st.sampled_from(constants),
    )


def constraints(
    names: list[str], constants: list[Value], most: int = 5
) -> st.SearchStrategy[Constraint]:
    """Any constraint that is not contradictory."""
    return st.lists(predicates(names, constants), max_size=most).map(satisfiable)


def some_predicate(name: str, operator: str, value: Value) -> Predicate:
    """The predicate, or one that goes with the kind of the value."""
    if operator == "present":
        return Predicate(name, operator)
    if operator == "prefix" and not isinstance(value, str):
        operator = "!="
    if operator not in ("=", "!=") and isinstance(value, bool):
        operator = "="
    return Predicate(name, operator, value)


def satisfiable(predicates: list[Predicate]) -> Constraint:
    """As many of them as go together, from the left: so hardly an example is thrown away."""
    kept: list[Predicate] = []
    for predicate in predicates:
        try:
            Constraint.of(*kept, predicate)
        except PredicateError:
            continue
        kept.append(predicate)
    return Constraint.of(*kept)
