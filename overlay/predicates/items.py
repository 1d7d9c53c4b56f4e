"""Items: what is published, attributes with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from overlay.errors import RemoteProtocolError
from overlay.predicates.predicate import check_attribute
from overlay.predicates.values import PredicateError, Value, check_value

MAX_ATTRIBUTES = 64  # of one item: so a constraint can name them all

Item: TypeAlias = Mapping[str, Value]
"""What is published. In a message it is a field `dict[str, Value]`."""


def check_item(attributes: Item) -> dict[str, Value]:
    """A copy of the attributes if an item may have them; otherwise PredicateError says why not."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise PredicateError(f"an item of {len(attributes)} attributes: at most {MAX_ATTRIBUTES}")
    item: dict[str, Value] = {}
    for name, value in attributes.items():
        check_attribute(name)
        try:
            item[name] = check_value(value)
        except PredicateError as error:
            raise PredicateError(f"{name}: {error}") from None
    return item


def item_from_wire(attributes: Item) -> dict[str, Value]:
    """The same for what a peer sent: RemoteProtocolError if no item may have these."""
    try:
        return check_item(attributes)
    except PredicateError as error:
        raise RemoteProtocolError("bad-item", str(error)) from None
