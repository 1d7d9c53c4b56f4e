"""Topics as applications use them: all names in one place.

async with peer.subscribe("sensors/*/temperature") as messages:
    async for message in messages:
        print(message.topic, message.data)

async with peer.publisher("sensors/7/temperature", reliability="ack") as out:
    await out.publish({"celsius": 21.5})
    await out.flush()
"""

from nodes.publishing import TopicPublisher, WouldWait
from nodes.subscribing import Message, TopicListener, TopicSubscription
from nodes.topic_events import (
    PublisherEvent,
    SubscriptionEvent,
    TopicEvent,
)
from protocols.topics.config import TopicConfig
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
from protocols.topics.subscription import Batch, Replay

__all__ = [
    "Batch",
    "Gap",
    "Message",
    "PublisherAppeared",
    "PublisherEvent",
    "PublisherFailed",
    "PublisherGone",
    "Replay",
    "StreamEnded",
    "SubscriberFailed",
    "SubscriberJoined",
    "SubscriberLeft",
    "SubscriberSlow",
    "SubscriptionEvent",
    "SubscriptionFailed",
    "TopicConfig",
    "TopicEvent",
    "TopicListener",
    "TopicPublisher",
    "TopicSubscription",
    "WouldWait",
]
