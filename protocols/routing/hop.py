"""What the parts of this protocol share: one hop of every message that passes here."""

from __future__ import annotations

from random import Random

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Effects
from protocols.membership.interface import MembershipView
from protocols.routing.config import RoutingSettings
from protocols.routing.custody import Incoming, Outgoing
from protocols.routing.recent import Recent
from protocols.topology.interface import TopologyView


class RoutingCounts(msgspec.Struct):
    """How often what happened, since the start."""

    routes: int = 0  # begun here
    routed: int = 0
    failed: int = 0
    retried: int = 0  # routes that ended on their way and were tried again from here
    arrived: int = 0  # routes, at this responsible member
    broadcasts: int = 0  # begun here
    aggregates: int = 0  # begun here
    delivered: int = 0  # broadcasts
    forwarded: int = 0  # steps of routes and ranges handed on
    repeated: int = 0  # copies of messages that had arrived
    late: int = 0  # answers to what had ended
    strangers: int = 0  # what was handed over by, or began at, no member of this view


class Hop:
    """This node, its surroundings, and what it has in custody."""

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: RoutingSettings,
        members: MembershipView,
        links: TopologyView,
    ) -> None:
        self.me = me
        self.effects = effects
        self.config = config
        self.members = members
        self.links = links
        self.counts = RoutingCounts()
        self.outgoing = Outgoing(effects, rng, config)
        self.incoming = Incoming(effects, config)
        self._arrived: Recent[tuple[NodeId, int], bool] = Recent(
            config.remembered, config.remember_for
        )

    @property
    def forgotten(self) -> int:
        """Arrivals and ends that were forgotten for want of room: a late copy may pass for new."""
        return self._arrived.forgotten + self.incoming.forgotten

    def is_first(self, origin: NodeId, id: int, now: float) -> bool:
        """Whether a message arrives here for the first time, as far as is remembered."""
        if self._arrived.get((origin, id)):
            self.counts.repeated += 1
            return False
        self._arrived.put((origin, id), True, now)
        return True

    def listens_to(self, src: NodeId, origin: NodeId, hops: int) -> bool:
        """Whether to take something over: sender and origin are members; the rest is refused.

        A stranger may be a newcomer of whom I shall hear in a moment: it is counted, and it or
        another hop tries again.
        """
        if hops == 1 and src != origin:
            raise RemoteProtocolError("forged-origin", f"{src} hands over for {origin}")
        if hops > self.config.ttl:
            raise RemoteProtocolError("hop-limit", f"{hops} hops, at most {self.config.ttl}")
        members = self.members
        if src == self.me or not (src in members and self.me in members and members.record(origin)):
            self.counts.strangers += 1
            return False
        return True
