"""What applications hear about their topics besides messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from protocols.topics.events import (
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    StreamEnded,
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
    SubscriberSlow,
    SubscriptionFailed,
)

if TYPE_CHECKING:
    from overlay.protocol import Event

PublisherEvent: TypeAlias = (
    SubscriberJoined | SubscriberSlow | SubscriberFailed | SubscriberLeft | StreamEnded
)
"""What happens to a publisher: its subscribers come, lag behind and go; at last it is over."""

SubscriptionEvent: TypeAlias = (
    PublisherAppeared | PublisherGone | PublisherFailed | Gap | SubscriptionFailed
)
"""What happens to a subscription: publishers come and go, or messages are gone for good."""

TopicEvent: TypeAlias = PublisherEvent | SubscriptionEvent

PUBLISHER_EVENTS: tuple[type[Event], ...] = (
    SubscriberJoined,
    SubscriberSlow,
    SubscriberFailed,
    SubscriberLeft,
    StreamEnded,
)
SUBSCRIPTION_EVENTS: tuple[type[Event], ...] = (
    PublisherAppeared,
    PublisherGone,
    PublisherFailed,
    Gap,
    SubscriptionFailed,
)
TOPIC_EVENTS = (*PUBLISHER_EVENTS, *SUBSCRIPTION_EVENTS)
