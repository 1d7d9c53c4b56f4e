"""A member's own part: what it does with topics, told to each topic's gateway."""

from __future__ import annotations

from collections.abc import Sequence

from overlay.errors import LocalProtocolError
from overlay.ids import NodeId
from overlay.patterns import check_topic
from protocols.gateways.core import Core
from protocols.gateways.events import GatewayMoved
from protocols.gateways.ledger import OWN_STAKES, PUBLISHES, SUBSCRIBES, Book
from protocols.gateways.names import gateway_key
from protocols.gateways.placing import Placement
from protocols.gateways.writing import Writer


class Declarer:
    """Keeps one ledger for each gateway of this node's topics."""

    def __init__(self, core: Core, writer: Writer) -> None:
        self._core = core
        self._own: dict[str, int] = {}
        self._placement = Placement(writer, core.fellows, Book.DECLARATIONS, gateway_key)

    def __len__(self) -> int:
        return len(self._own)

    def declare(self, topic: str, *, publishes: bool, subscribes: bool, now: float) -> None:
        """Tell the topic's gateway what this node does with it; neither: it withdraws."""
        core = self._core
        check_topic(topic)
        if core.base is None:
            raise LocalProtocolError(f"{core.me} is in no zone: it can declare no topic")
        flags = PUBLISHES * publishes | SUBSCRIBES * subscribes
        if not flags:
            if self._own.pop(topic, 0):
                self._placement.withdraw(topic, now)
            return
        if topic not in self._own and len(self._own) >= core.settings.max_topics:
            raise LocalProtocolError(
                f"{core.settings.max_topics} topics are declared: withdraw some, or raise"
                " gateways.max_topics"
            )
        self._own[topic] = flags
        self._placement.put(topic, OWN_STAKES[flags], now)

    def gateway_of(self, topic: str) -> NodeId | None:
        """The topic's gateway in this node's zone."""
        return self._placement.peer(topic)

    def follow(self, new: Sequence[NodeId], gone: Sequence[NodeId], now: float) -> None:
        """Members came and went: tell the new gateways at once."""
        core = self._core
        for topic in self._placement.follow(new, gone, now):
            gateway = self._placement.peer(topic)
            assert gateway is not None, "this node itself is in the ring"
            core.counts.moved += 1
            core.effects.emit(GatewayMoved(topic, gateway))
