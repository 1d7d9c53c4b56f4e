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
    for name, span in subscription.spans.items():
        if name not in item or not span.holds(item[name]):
            return False
    return True


def determines(advertisement: Constraint, item: Item) -> bool:
    """Tell whether who advertised this may publish the item."""
    offered = advertisement.spans
    for name, value in item.items():
        if name not in offered or not offered[name].holds(value):
            return False
    return True


def intersects(advertisement: Constraint, subscription: Constraint) -> bool:
    """Tell whether some item is determined by the advertisement and matches the subscription."""
    offered = advertisement.spans
    for name, span in subscription.spans.items():
        if name not in offered or not span.meets(offered[name]):
            return False
    return True


def covers(subscription: Constraint, other: Constraint) -> bool:
    """Tell whether every item that matches the other subscription matches this one as well."""
    narrower = other.spans
    for name, span in subscription.spans.items():
        if name not in narrower or not span.covers(narrower[name]):
            return False
    return True


def advertisement_covers(advertisement: Constraint, other: Constraint) -> bool:
    """Tell whether every item that the other advertisement determines is determined by this one."""
    wider = advertisement.spans
    for name, span in other.spans.items():
        if name not in wider or not wider[name].covers(span):
            return False
    return True
