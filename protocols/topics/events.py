"""Facts about topics, for siblings and applications."""

from __future__ import annotations

from overlay.ids import NodeId
from overlay.protocol import Event


class PublisherAppeared(Event, frozen=True):
    """A stream that a subscription of this node matches begins to arrive."""

    topic: str
    publisher: NodeId
    stream: int


class PublisherGone(Event, frozen=True):
    """A publisher closed, and all that it sent is here; or nobody here wants it any more."""

    topic: str
    publisher: NodeId
    stream: int


class PublisherFailed(Event, frozen=True):
    """A publisher, or the way to it, is lost; it may come back."""

    topic: str
    publisher: NodeId
    stream: int
    reason: str


class Gap(Event, frozen=True):
    """Subscribers of this node never get these messages: they are gone at the sender."""

    topic: str
    publisher: NodeId
    stream: int
    first: int
    last: int
    reason: str


class SubscriptionFailed(Event, frozen=True):
    """A publisher holds this node for failed; a new handshake is under way."""

    topic: str
    publisher: NodeId
    stream: int
    reason: str


class SubscriberJoined(Event, frozen=True):
    """A receiver takes part in a stream of this node, from message `start` on."""

    topic: str
    subscriber: NodeId
    stream: int
    start: int


class SubscriberSlow(Event, frozen=True):
    """A stream of this node has to wait for that receiver, or drops messages for it."""

    topic: str
    subscriber: NodeId
    stream: int
    behind: int  # messages


class SubscriberFailed(Event, frozen=True):
    """A receiver was silent for too long, or too slow; it is told so, and may come back."""

    topic: str
    subscriber: NodeId
    stream: int
    reason: str


class SubscriberLeft(Event, frozen=True):
    """A receiver does not want the stream any more."""

    topic: str
    subscriber: NodeId
    stream: int


class StreamEnded(Event, frozen=True):
    """A stream of this node is over: all receivers have it, or lingering was in vain."""

    topic: str
    stream: int
    complete: bool  # whether all receivers had acknowledged all of it


EMITTED: tuple[type[Event], ...] = (
    PublisherAppeared,
    PublisherGone,
    PublisherFailed,
    Gap,
    SubscriptionFailed,
    SubscriberJoined,
    SubscriberSlow,
    SubscriberFailed,
    SubscriberLeft,
    StreamEnded,
)
