"""All streams that leave this node: its own publishers, and relays of others' streams."""

from __future__ import annotations

from protocols.topics.core import Core
from protocols.topics.messages import StreamKey
from protocols.topics.publishing import Publisher
from protocols.topics.relaying import Relay
from protocols.topics.sending import Outgoing


class Departures:
    """By key, and by topic."""

    def __init__(self, core: Core) -> None:
        self.publishers: dict[StreamKey, Publisher] = {}
        self._core = core
        self._relays: dict[StreamKey, Relay] = {}
        self._by_topic: dict[str, dict[StreamKey, Outgoing]] = {}

    def add(self, out: Publisher | Relay) -> None:
        """One begins."""
        if isinstance(out, Publisher):
            self.publishers[out.key] = out
        else:
            self._relays[out.key] = out
        self._by_topic.setdefault(out.topic, {})[out.key] = out

    def forget(self, out: Outgoing) -> None:
        """One is over."""
        self.publishers.pop(out.key, None)
        self._relays.pop(out.key, None)
        streams = self._by_topic.get(out.topic, {})
        streams.pop(out.key, None)
        if not streams:
            self._by_topic.pop(out.topic, None)
        for kind in ("out", "slow", "room", "linger"):
            self._core.effects.cancel_timer((kind, out.key))

    def get(self, key: StreamKey) -> Outgoing | None:
        """The one of that key."""
        return self.publishers.get(key) or self._relays.get(key)

    def of_topic(self, topic: str) -> list[Outgoing]:
        """All of a topic."""
        return list(self._by_topic.get(topic, {}).values())

    def all(self) -> list[Outgoing]:
        """All of them."""
        return [out for streams in self._by_topic.values() for out in streams.values()]

    def publishes(self, topic: str) -> bool:
        """Whether this node has an open publisher of that topic."""
        streams = self._by_topic.get(topic, {}).values()
        return any(isinstance(out, Publisher) and not out.closed for out in streams)
