"""Facts about topics, for siblings and applications."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overlay.ids import NodeId
from overlay.protocol import Event
from overlay.tracing import Kind, Trace
from overlay.tracing.kinds import (
    GAP,
    STREAM_ENDED,
    SUBSCRIBER_FAILED,
    SUBSCRIBER_JOINED,
    SUBSCRIBER_LEFT,
    SUBSCRIBER_SLOW,
)


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

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (_arriving(STREAM_ENDED, self, "closed"),)


class PublisherFailed(Event, frozen=True):
    """A publisher, or the way to it, is lost; it may come back."""

    topic: str
    publisher: NodeId
    stream: int
    reason: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (_arriving(STREAM_ENDED, self, self.reason),)


class Gap(Event, frozen=True):
    """Subscribers of this node never get these messages: they are gone at the sender."""

    topic: str
    publisher: NodeId
    stream: int
    first: int
    last: int
    reason: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        row = _arriving(GAP, self, self.reason)
        return (msgspec.structs.replace(row, first=self.first, count=self.last - self.first + 1),)


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

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                SUBSCRIBER_JOINED, self.subscriber, self.topic, stream=self.stream, first=self.start
            ),
        )


class SubscriberSlow(Event, frozen=True):
    """A stream of this node has to wait for that receiver, or drops messages for it."""

    topic: str
    subscriber: NodeId
    stream: int
    behind: int  # messages

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                SUBSCRIBER_SLOW,
                self.subscriber,
                self.topic,
                stream=self.stream,
                count=max(1, self.behind),
            ),
        )


class SubscriberFailed(Event, frozen=True):
    """A receiver was silent for too long, or too slow; it is told so, and may come back."""

    topic: str
    subscriber: NodeId
    stream: int
    reason: str

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (
            Trace(
                SUBSCRIBER_FAILED,
                self.subscriber,
                self.topic,
                stream=self.stream,
                detail=self.reason,
            ),
        )


class SubscriberLeft(Event, frozen=True):
    """A receiver does not want the stream any more."""

    topic: str
    subscriber: NodeId
    stream: int

    def traces(self) -> Iterable[Trace]:
        """One row."""
        return (Trace(SUBSCRIBER_LEFT, self.subscriber, self.topic, stream=self.stream),)


class StreamEnded(Event, frozen=True):
    """A stream of this node is over: all receivers have it, or lingering was in vain."""

    topic: str
    stream: int
    complete: bool  # whether all receivers had acknowledged all of it


def _arriving(kind: Kind, event: PublisherGone | PublisherFailed | Gap, detail: str) -> Trace:
    """A row about a stream that arrives here."""
    return Trace(
        kind, topic=event.topic, origin=event.publisher, stream=event.stream, detail=detail
    )


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
