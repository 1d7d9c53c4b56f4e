"""The relations between items, subscriptions and advertisements: exact, each of them.

An item *matches* a subscription if it has every attribute that the subscription names, with a
value that satisfies. An advertisement *determines* an item if it names every attribute that the
item has, and their values satisfy. So more attributes narrow a subscription, and widen an
advertisement. An item may have no attributes at all.
"""

from __future__ import annotations

from overlay.predicates.constraint import Constraint
from overlay.predicates.items import Item


def matches(item: Item, subscription: Constraint) -> bool:
    """Tell whether who subscribed like this wants the item."""
    return all(name in item and span.holds(item[name]) for name, span in subscription.spans.items())


def determines(advertisement: Constraint, item: Item) -> bool:
    """Tell whether who advertised this may publish the item."""
    spans = advertisement.spans
    return all(name in spans and spans[name].holds(value) for name, value in item.items())


def intersects(advertisement: Constraint, subscription: Constraint) -> bool:
    """Tell whether some item is determined by the advertisement and matches the subscription."""
    offered = advertisement.spans
    return all(
        name in offered and span.meets(offered[name]) for name, span in subscription.spans.items()
    )


def covers(subscription: Constraint, other: Constraint) -> bool:
    """Tell whether every item that matches the other subscription matches this one as well."""
    spans = other.spans
    return all(
        name in spans and span.covers(spans[name]) for name, span in subscription.spans.items()
    )


def advertisement_covers(advertisement: Constraint, other: Constraint) -> bool:
    """Tell whether every item that the other advertisement determines is determined by this one."""
    spans = advertisement.spans
    return all(name in spans and spans[name].covers(span) for name, span in other.spans.items())
