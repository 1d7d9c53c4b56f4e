"""Publishing and subscribing through the control socket of a running node.

Messages cross it as MessagePack arrays in base64, so that bytes stay bytes and text stays text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import trio

from nodes.publishing import TopicPublisher, topic_config
from nodes.subscribing import TopicSubscription
from nodes.topic_facts import topic_facts
from overlay.errors import LocalProtocolError
from protocols.topics.machine import Topics
from protocols.topics.subscription import Replay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from nodes.node import Node
    from nodes.service import Conversation

TELL_EVERY = 1.0  # s between two words about progress; they also show whether the client is there
HELD_BYTES = 4 << 20  # for a client that does not read; then publishers have to wait

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class TopicService:
    """Registers `topics`, `sub` and `pub` with a node's control socket."""

    def __init__(self, node: Node) -> None:
        self._node = node
        node.control.register("topics", self._tell_topics)
        node.control.register("sub", self._subscribe)
        node.control.register_talk("pub", self._publish)

    def _heading(self) -> dict[str, Any]:
        node = self._node
        return {"node": node.name, "overlay": node.overlay, "zone": node.zone}

    def _tell_topics(self) -> dict[str, Any]:
        return self._heading() | topic_facts(self._node.protocol(Topics))

    async def _subscribe(
        self, pattern: str, replay: tuple[int, float] = (0, 0.0)
    ) -> AsyncIterator[dict[str, Any]]:
        """First who subscribed, then each batch."""
        wanted = Replay(*replay)
        options: dict[str, Any] = {"replay": wanted, "capacity": HELD_BYTES}
        async with TopicSubscription(self._node, pattern, **options) as messages:
            yield self._heading() | {"pattern": pattern}
            told = 0
            async for batch in messages.batches():
                if messages.lost > told:
                    yield {"lost": messages.lost - told}
                    told = messages.lost
                yield {
                    "topic": batch.topic,
                    "publisher": batch.publisher,
                    "first": batch.first,
                    "sent_at": batch.sent_at,
                    "items": _encode(batch.items),
                }

    async def _publish(
        self,
        talk: Conversation,
        topic: str,
        config: dict[str, Any] | None = None,
        subscribers: int = 0,
    ) -> None:
        """First who publishes, then progress, and a last word when all have it."""
        from nodes.node import only_error

        out = TopicPublisher(self._node, topic, topic_config(None, config or {}))
        out.open()
        seen: dict[str, None] = {}  # one that has what it wanted may leave before the end
        try:
            await talk.say(self._heading() | self._progress(out, seen))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tell_progress, talk, out, seen)
                await out.wait_for_subscribers(subscribers)
                async for line in talk.lines():
                    seen.update(dict.fromkeys((*out.subscribers, *out.gateways)))
                    await out.publish_many(_items(line))
                seen.update(dict.fromkeys((*out.subscribers, *out.gateways)))
                await out.flush()
                nursery.cancel_scope.cancel()
            await talk.say(self._progress(out, seen) | {"done": True})
        except BaseExceptionGroup as group:
            raise only_error(group) from None
        finally:
            out.close()

    async def _tell_progress(
        self, talk: Conversation, out: TopicPublisher, seen: dict[str, None]
    ) -> None:
        while True:
            await trio.sleep(TELL_EVERY)
            await talk.say(self._progress(out, seen))

    def _progress(self, out: TopicPublisher, seen: dict[str, None]) -> dict[str, Any]:
        return {
            "node": self._node.name,
            "published": out.published,
            "unacknowledged": out.unacknowledged,
            "subscribers": list(dict.fromkeys((*seen, *out.subscribers, *out.gateways))),
        }


def _items(line: bytes) -> list[msgspec.Raw]:
    try:
        return _decode(msgspec.json.decode(line, type=bytes))
    except msgspec.DecodeError as error:
        raise LocalProtocolError(f"a line is no batch of messages: {error}") from None
