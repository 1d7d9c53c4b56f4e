"""The subscriptions of this node, and how the zone learns of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from overlay.ids import NodeId
from protocols.membership.interface import MembershipView
from protocols.topics.audience import PatternIndex
from protocols.topics.counts import TopicsCounts
from protocols.topics.interest import OwnInterest
from protocols.topics.subscription import Subscription


class AttributeWriter(Protocol):
    """What topics need of the membership of this node's zone."""

    @property
    def view(self) -> MembershipView:
        """The members."""

    def set_attribute(self, key: str, value: str | float | bool, now: float) -> None:
        """Set an attribute of this node."""

    def remove_attribute(self, key: str, now: float) -> None:
        """Remove one that is set."""


class Subscriptions:
    """Who on this node wants which topics; told to the zone as attributes of this node."""

    def __init__(self, base: AttributeWriter, interest_bytes: int, counts: TopicsCounts) -> None:
        self._base = base
        self._counts = counts
        self._own = OwnInterest(interest_bytes)
        self._said: dict[str, str] = {}
        self._numbers: dict[Subscription, int] = {}  # the oldest first
        self._by_topic: dict[str, tuple[Subscription, ...]] = {}  # of those that name one
        self._by_pattern: PatternIndex[Subscription] = PatternIndex()
        self._last = 0
        self._stopped = False

    def __len__(self) -> int:
        return len(self._numbers)

    def all(self) -> list[Subscription]:
        """The oldest first."""
        return list(self._numbers)

    def add(self, one: Subscription) -> bool:
        """True when it is the first of its pattern."""
        self._last += 1
        self._numbers[one] = self._last
        if one.is_exact:
            self._by_topic[one.pattern] = (*self._by_topic.get(one.pattern, ()), one)
        else:
            self._by_pattern.add(one.pattern, one)
        return self._own.subscribe(one.pattern)

    def remove(self, one: Subscription) -> bool:
        """True when it was the last of its pattern; False also when it is not there."""
        if self._numbers.pop(one, None) is None:
            return False
        one.open = False
        if not one.is_exact:
            self._by_pattern.remove(one.pattern, one)
        elif others := tuple(two for two in self._by_topic[one.pattern] if two is not one):
            self._by_topic[one.pattern] = others
        else:
            del self._by_topic[one.pattern]
        return self._own.unsubscribe(one.pattern)

    def _matching(self, topic: str) -> Sequence[Subscription]:
        """Those that match a topic, the oldest first."""
        exact = self._by_topic.get(topic, ())
        if not len(self._by_pattern):
            return exact
        return sorted((*exact, *self._by_pattern.matches(topic)), key=self._numbers.__getitem__)

    def names(self, topic: str) -> bool:
        """Whether one of them is to exactly that topic."""
        return topic in self._own

    def wanted(self, topic: str) -> bool:
        """Whether any of them matches a topic."""
        return bool(self._matching(topic))

    def matches(self, one: Subscription, topic: str) -> bool:
        """Whether that one does."""
        return one in self._matching(topic)

    def is_only(self, one: Subscription, topic: str) -> bool:
        """Whether that one matches a topic, and no other does."""
        return [*self._matching(topic)] == [one]

    def takers(self, publisher: NodeId, topic: str) -> list[Subscription]:
        """Those that match a topic and admit that publisher."""
        found = self._matching(topic)
        admitted = [one for one in found if one.admit(publisher, topic)]
        if found and not admitted:
            self._counts.refused_publishers += 1
        return admitted

    def tell(self, now: float) -> None:
        """Set the attributes that say what this node wants."""
        if self._stopped:
            return
        attributes = self._own.attributes()
        for key, value in attributes.items():
            if self._said.get(key) != value:
                self._base.set_attribute(key, value, now)
        for key in self._said:
            if key not in attributes:
                self._base.remove_attribute(key, now)
        self._said = attributes

    def stop(self) -> None:
        """Tell nothing any more: the node leaves its zone with all that it said there."""
        self._stopped = True
