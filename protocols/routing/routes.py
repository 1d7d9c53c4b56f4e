"""Key-based routing: each hop takes a message over, finds the next one, and passes the end back."""

from __future__ import annotations

from math import inf

import msgspec

from overlay.ids import NodeId, Vid, vid_from_wire, vid_to_wire
from overlay.tracing import Trace
from overlay.tracing.kinds import ROUTE_BEGAN, ROUTE_HOP
from protocols.routing.custody import Handed
from protocols.routing.events import RouteArrived, Routed, RouteFailed
from protocols.routing.hop import Hop
from protocols.routing.messages import RouteDone, RouteStep
from protocols.routing.steering import next_hop

NO_WAY = "no way"
HOP_LIMIT = "hop limit"
TIMEOUT = "timeout"


class Passage(msgspec.Struct):
    """One message on its way through this node."""

    origin: NodeId
    id: int
    key: Vid
    hops: int
    deadline: float
    service: str
    direct: bool
    payload: bytes
    handed: Handed | None  # by whom; None: it began here
    lost: tuple[NodeId, ...] = ()  # next hops that did not answer, and where it came from
    transfer: int = -1  # to the next hop
    again_at: float = inf  # when a route that ended on its way is tried again
    reason: str = TIMEOUT  # why it ended the last time


class Routes:
    """The messages on their way through this node."""

    def __init__(self, hop: Hop) -> None:
        self._hop = hop
        self._passing: dict[int, Passage] = {}  # by transfer
        self._begun: dict[int, Passage] = {}  # by id: began here and have no end yet

    def __len__(self) -> int:
        return len(self._begun)

    @property
    def transfers(self) -> list[int]:
        """Those that belong to routes."""
        return list(self._passing)

    @property
    def passing_through(self) -> int:
        """How many of them began elsewhere."""
        return sum(1 for passage in self._passing.values() if passage.handed is not None)

    def begin(
        self, id: int, key: Vid, payload: bytes, service: str, direct: bool, now: float
    ) -> None:
        """Route what the application or a sibling gave."""
        hop = self._hop
        hop.counts.routes += 1
        deadline = now + hop.config.route_timeout
        passage = Passage(hop.me, id, key, 0, deadline, service, direct, payload, None)
        self._begun[id] = passage
        if hop.effects.tracing:
            hop.effects.trace(
                Trace(ROUTE_BEGAN, stream=id, bytes=len(payload), detail=service, key=f"{key:032x}")
            )
        self._advance(passage, now)

    def on_step(self, src: NodeId, msg: RouteStep, now: float) -> None:
        """Take it over."""
        hop = self._hop
        handed = (src, msg.transfer)
        if not hop.listens_to(src, msg.origin, msg.hops):
            return
        if not hop.incoming.begin(handed, len(msg.payload)):
            return
        passage = Passage(
            msg.origin,
            msg.id,
            vid_from_wire(msg.key),
            msg.hops,
            now + min(msg.patience, hop.config.route_timeout),
            msg.service,
            msg.direct,
            msg.payload,
            handed,
            (src,),
        )
        if not self._advance(passage, now):
            hop.incoming.take(handed)

    def on_done(self, src: NodeId, msg: RouteDone, now: float) -> None:
        """The next hop tells the end: pass it back."""
        passage = self._passing.get(msg.transfer)
        if passage is None or not self._hop.outgoing.ended(src, msg.transfer):
            self._hop.counts.late += 1
            return
        del self._passing[msg.transfer]
        self._end(passage, msg.by, msg.hops, msg.reason, now)

    def sweep(self, now: float) -> None:
        """End what took too long, and try routes again that ended on their way."""
        for passage in [one for one in self._passing.values() if one.deadline <= now]:
            self._hop.outgoing.close(passage.transfer)
            del self._passing[passage.transfer]
            self._end(passage, self._hop.me, passage.hops, TIMEOUT, now)
        for passage in list(self._begun.values()):
            if passage.deadline <= now:
                self._fail(passage)
            elif passage.again_at <= now:
                self._hop.counts.retried += 1
                passage.again_at = inf
                passage.lost = ()
                self._advance(passage, now)

    def set_back(self, now: float) -> None:
        """The clock was set back."""
        config = self._hop.config
        for passage in (*self._begun.values(), *self._passing.values()):
            passage.deadline = min(passage.deadline, now + config.route_timeout)
            if passage.again_at < inf:
                passage.again_at = now

    def _advance(self, passage: Passage, now: float) -> bool:
        """Deliver it or hand it on; True if that ended it here."""
        hop = self._hop
        ring = hop.members.ring()
        if not len(ring):  # I left, and was the last
            self._end(passage, hop.me, passage.hops, NO_WAY, now)
            return True
        target = ring.responsible_for(passage.key)
        if target == hop.me:
            self._deliver(passage, now)
            self._end(passage, hop.me, passage.hops, "", now)
            return True
        if passage.hops >= hop.config.ttl:
            self._end(passage, hop.me, passage.hops, HOP_LIMIT, now)
            return True
        peer = next_hop(hop.me, target, hop.links, ring, passage.lost, direct=passage.direct)
        if peer is None:
            self._end(passage, hop.me, passage.hops, NO_WAY, now)
            return True
        hop.counts.forwarded += 1
        patience = max(0.0, passage.deadline - now)

        def make(number: int) -> RouteStep:
            return _step(passage, number, patience)

        number = hop.outgoing.hand(peer, make, self._on_lost, now)
        passage.transfer = number
        self._passing[number] = passage
        if hop.effects.tracing:
            steps = passage.hops + 1
            hop.effects.trace(
                Trace(ROUTE_HOP, peer, origin=passage.origin, stream=passage.id, hops=steps)
            )
        return False

    def _on_lost(self, transfer: int, peer: NodeId, now: float) -> None:
        passage = self._passing.pop(transfer)
        passage.lost = (*passage.lost, peer)
        self._advance(passage, now)

    def _deliver(self, passage: Passage, now: float) -> None:
        hop = self._hop
        if hop.is_first(passage.origin, passage.id, now):
            hop.counts.arrived += 1
            hop.effects.emit(
                RouteArrived(
                    hop.members.zone,
                    passage.key,
                    passage.origin,
                    passage.id,
                    passage.payload,
                    passage.hops,
                    passage.service,
                )
            )

    def _end(self, passage: Passage, by: NodeId, hops: int, reason: str, now: float) -> None:
        hop = self._hop
        if passage.handed is not None:
            done = RouteDone(passage.handed[1], by, hops, reason)
            hop.incoming.end(passage.handed, done, now)
        elif reason:
            passage.reason = reason
            passage.again_at = now + hop.config.route_pause
        else:
            del self._begun[passage.id]
            hop.counts.routed += 1
            hop.effects.emit(Routed(hop.members.zone, passage.id, by, hops))

    def _fail(self, passage: Passage) -> None:
        hop = self._hop
        del self._begun[passage.id]
        hop.counts.failed += 1
        hop.effects.emit(RouteFailed(hop.members.zone, passage.id, passage.reason))


def _step(passage: Passage, number: int, patience: float) -> RouteStep:
    return RouteStep(
        number,
        passage.origin,
        passage.id,
        vid_to_wire(passage.key),
        passage.hops + 1,
        patience,
        passage.service,
        passage.direct,
        passage.payload,
    )
