"""What all parts of one node's topics share."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.gateways.interface import GatewayBook
from protocols.membership.interface import MembershipView
from protocols.topics.audience import InterestIndex
from protocols.topics.config import TopicsSettings
from protocols.topics.counts import TopicsCounts
from protocols.topology.interface import TopologyView

May: TypeAlias = Callable[[NodeId, str, str], bool]
"""Whether a node may "publish" or "subscribe" to a topic, as far as its certificate is known."""


class Core:
    """The node, its surroundings and its counters."""

    __slots__ = (
        "audience",
        "book",
        "counts",
        "effects",
        "links",
        "may",
        "me",
        "members",
        "overlay_time",
        "rng",
        "settings",
        "wanted_here",
    )

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        settings: TopicsSettings,
        counts: TopicsCounts,
        *,
        members: MembershipView,
        links: TopologyView,
        book: GatewayBook,
        may: May,
        wanted_here: Callable[[str], bool],
        overlay_time: Callable[[float], float],
    ) -> None:
        self.me = me
        self.effects = effects
        self.rng = rng
        self.settings = settings
        self.members = members
        self.links = links
        self.book = book
        self.may = may
        self.overlay_time = overlay_time  # at a time of the node's clock
        self.wanted_here = wanted_here  # whether a subscription of this node matches that topic
        self.audience = InterestIndex(members)
        self.counts = counts


def own_clock(now: float) -> float:
    """Overlay time of a node that has no time service."""
    return now


def everybody_may(_name: NodeId, _what: str, _topic: str) -> bool:
    """Nobody's certificate says otherwise."""
    return True
