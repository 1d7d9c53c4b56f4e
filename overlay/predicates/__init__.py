"""The language of subscriptions, advertisements and queries: conjunctions of predicates.

    from overlay.predicates import Constraint, Predicate, matches

    wanted = Constraint.parse('system = "Linux", memory >= 2')
    assert wanted == Constraint.of(
        Predicate("memory", ">=", 2), Predicate("system", "=", "Linux")
    )
    assert matches({"system": "Linux", "memory": 4, "disk": 320}, wanted)

What values there are, and for which domains the relations are exact: `values`. The readable form:
`readable`. What a predicate means: `predicate`; the relations: `relations`; a table of many
constraints that answers them fast: `index`. In messages a constraint is a field of type
`WireConstraint` (`wire`, `from_wire`) and an item a field `dict[str, Value]` (`item_from_wire`).
"""

from overlay.predicates.constraint import MAX_PREDICATES, Constraint, WireConstraint
from overlay.predicates.index import ConstraintIndex
from overlay.predicates.items import MAX_ATTRIBUTES, Item, check_item, item_from_wire
from overlay.predicates.predicate import MAX_ATTRIBUTE, Predicate, check_attribute
from overlay.predicates.relations import (
    advertisement_covers,
    covers,
    determines,
    intersects,
    matches,
)
from overlay.predicates.spans import OPERATORS
from overlay.predicates.values import MAX_TEXT, Date, PredicateError, TimeOfDay, Value

__all__ = [
    "MAX_ATTRIBUTE",
    "MAX_ATTRIBUTES",
    "MAX_PREDICATES",
    "MAX_TEXT",
    "OPERATORS",
    "Constraint",
    "ConstraintIndex",
    "Date",
    "Item",
    "Predicate",
    "PredicateError",
    "TimeOfDay",
    "Value",
    "WireConstraint",
    "advertisement_covers",
    "check_attribute",
    "check_item",
    "covers",
    "determines",
    "intersects",
    "item_from_wire",
    "matches",
]
