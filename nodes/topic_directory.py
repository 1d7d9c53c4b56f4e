"""The directory of topics as applications ask it: names, ids, and zones that are interested."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from protocols.gateways import Gateways, TopicKnown, TopicUnknown

if TYPE_CHECKING:
    from nodes.node import Node
    from overlay.ids import Vid

Found: TypeAlias = TopicKnown | TopicUnknown


async def find_topic(node: Node, topic: str | Vid) -> Found:
    """Ask the topic's home in the management zone; TopicUnknown says why there is no answer."""
    gateways = node.protocol(Gateways)
    with node.events(TopicKnown, TopicUnknown) as answers:
        question = node.call(gateways.ask_topic, topic)
        async for answer in answers:
            if answer.id == question:
                return answer
    return TopicUnknown(question, topic if isinstance(topic, int) else 0, f"{node.name} stopped")
