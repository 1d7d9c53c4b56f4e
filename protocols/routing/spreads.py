"""Broadcast and convergecast: a range of the ring is split among neighbours, who report back.

Each member that gets a range keeps an errand until all parts of it have ended. A part whose head
does not answer is split anew without it. Broadcast and convergecast are one: the reports of a
broadcast carry empty aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId, vid_from_wire, vid_of, vid_to_wire
from overlay.tracing import Trace
from overlay.tracing.kinds import BROADCAST_ARRIVED, BROADCAST_BEGAN, BROADCAST_HOP
from protocols.routing.aggregates import (
    MOST_MEMBERS,
    NOTHING,
    Aggregate,
    aggregate_of,
    is_sound,
)
from protocols.routing.arcs import Arc, everybody_but, split
from protocols.routing.audience import Audience
from protocols.routing.custody import Handed
from protocols.routing.events import AggregateDone, BroadcastArrived, BroadcastDone
from protocols.routing.hop import Hop
from protocols.routing.interface import Interest
from protocols.routing.messages import RangeDone, Spread

Read: TypeAlias = Callable[[str], object]
"""Reads a gauge or an attribute of this node by its name."""


class Errand(msgspec.Struct):
    """One message that this node spreads over a range."""

    origin: NodeId
    id: int
    hops: int
    deadline: float
    interest: Interest | None
    gauge: str  # empty: a broadcast
    service: str
    payload: bytes
    handed: Handed | None  # by whom; None: it began here
    parts: dict[int, Arc] = msgspec.field(default_factory=dict)  # by transfer
    lost: tuple[NodeId, ...] = ()  # heads that did not answer
    reached: int = 0
    missing: int = 0
    depth: int = 0
    aggregate: Aggregate = NOTHING


class Spreads:
    """The broadcasts and convergecasts that this node takes part in."""

    def __init__(self, hop: Hop, read: Read) -> None:
        self._hop = hop
        self._read = read
        self._audience = Audience(hop.members)
        self._errands: dict[tuple[NodeId, int] | int, Errand] = {}  # by who handed it, or by id
        self._parts: dict[int, Errand] = {}  # by transfer
        self.begun = 0  # how many of the errands began here

    @property
    def transfers(self) -> list[int]:
        """Those that belong to ranges."""
        return list(self._parts)

    @property
    def passing_through(self) -> int:
        """How many of the errands began elsewhere."""
        return len(self._errands) - self.begun

    def begin(
        self,
        id: int,
        interest: Interest | None,
        now: float,
        *,
        gauge: str = "",
        service: str = "",
        payload: bytes = b"",
    ) -> None:
        """Spread over the whole ring."""
        hop = self._hop
        deadline = now + hop.config.spread_timeout
        errand = Errand(hop.me, id, 0, deadline, interest, gauge, service, payload, None)
        self.begun += 1
        self._errands[id] = errand
        self._arrive(errand, now)
        self._hand_on(errand, everybody_but(hop.me), now)
        self._end_if_done(errand, now)

    def on_spread(self, src: NodeId, msg: Spread, now: float) -> None:
        """Take a range over."""
        hop = self._hop
        if not hop.listens_to(src, msg.origin, msg.hops):
            return
        arc = Arc(vid_from_wire(msg.start), vid_from_wire(msg.upto))
        if not arc.holds(vid_of(hop.me)):
            raise RemoteProtocolError("range-elsewhere", f"{src} hands over a range without me")
        if arc.holds(vid_of(src)) or arc.holds(vid_of(msg.origin)):
            raise RemoteProtocolError("range-too-wide", f"{src} hands over its own place, too")
        handed = (src, msg.transfer)
        if not hop.incoming.begin(handed, len(msg.payload)):
            return
        errand = Errand(
            msg.origin,
            msg.id,
            msg.hops,
            now + min(msg.patience, hop.config.spread_timeout),
            Interest(msg.interest, msg.interest_key) if msg.interest_key else None,
            msg.gauge,
            msg.service,
            msg.payload,
            handed,
        )
        self._errands[handed] = errand
        self._arrive(errand, now)
        for side in arc.without(vid_of(hop.me)):
            self._hand_on(errand, side, now)
        if not self._end_if_done(errand, now):
            hop.incoming.take(handed)

    def on_done(self, src: NodeId, msg: RangeDone, now: float) -> None:
        """A part ended: add its report to mine."""
        if not is_sound(msg.aggregate) or msg.aggregate.count > msg.reached:
            raise RemoteProtocolError("unsound-aggregate", f"{src} reports {msg.aggregate}")
        errand = self._parts.get(msg.transfer)
        if errand is not None and (
            errand.reached + msg.reached > MOST_MEMBERS
            or errand.missing + msg.missing > MOST_MEMBERS
        ):
            raise RemoteProtocolError("unsound-aggregate", f"{src} reports too many members")
        if errand is None or not self._hop.outgoing.ended(src, msg.transfer):
            self._hop.counts.late += 1
            return
        self._forget(errand, msg.transfer)
        errand.reached += msg.reached
        errand.missing += msg.missing
        errand.depth = max(errand.depth, msg.depth)
        errand.aggregate = errand.aggregate.merged(msg.aggregate)
        self._end_if_done(errand, now)

    def sweep(self, now: float) -> None:
        """End errands that took too long: those in open parts count as missing."""
        for errand in [one for one in self._errands.values() if one.deadline <= now]:
            for number in list(errand.parts):
                self._hop.outgoing.close(number)
                errand.missing += self._audience.count(
                    self._forget(errand, number), errand.interest
                )
            self._end_if_done(errand, now)

    def set_back(self, now: float) -> None:
        """The clock was set back."""
        for errand in self._errands.values():
            errand.deadline = min(errand.deadline, now + self._hop.config.spread_timeout)

    def _arrive(self, errand: Errand, now: float) -> None:
        """It is here. A second copy is not delivered again, but counts in its own tree."""
        hop = self._hop
        errand.depth = errand.hops
        if hop.effects.tracing:
            self._trace_arrival(errand)
        if not self._audience.includes(hop.me, errand.interest):
            return
        errand.reached = 1
        if errand.gauge:
            errand.aggregate = aggregate_of(self._read(errand.gauge))
        elif hop.is_first(errand.origin, errand.id, now):
            hop.counts.delivered += 1
            hop.effects.emit(
                BroadcastArrived(
                    hop.members.zone,
                    errand.origin,
                    errand.id,
                    errand.payload,
                    errand.hops,
                    errand.service,
                )
            )

    def _trace_arrival(self, errand: Errand) -> None:
        parent = errand.handed[0] if errand.handed is not None else ""
        self._hop.effects.trace(
            Trace(
                BROADCAST_ARRIVED if parent else BROADCAST_BEGAN,
                parent,
                origin=errand.origin,
                stream=errand.id,
                bytes=len(errand.payload),
                hops=errand.hops,
                detail=errand.gauge or errand.service,
            )
        )

    def _hand_on(self, errand: Errand, arc: Arc, now: float) -> None:
        """Split an arc without my own place, and hand over each part in which it is for anybody."""
        hop, audience = self._hop, self._audience
        if not audience.anybody(arc, errand.interest):
            return
        patience = errand.deadline - now - hop.config.take_timeout
        if errand.hops >= hop.config.ttl or patience <= 0:
            errand.missing += audience.count(arc, errand.interest)
            return
        # Deeper than a tree over good links gets: halve the range, over links or not.
        balanced = errand.hops > len(hop.members).bit_length()
        ring, neighbours = hop.members.ring(), hop.links.neighbours()
        parts = split(arc, ring, neighbours, errand.lost, balanced=balanced)
        if not parts and errand.lost:
            # Whoever is lost and alone there is tried until it is no member, or the deadline.
            parts = split(arc, ring, neighbours, balanced=balanced)
        for part in parts:
            if audience.anybody(part.arc, errand.interest):
                self._hand(errand, part.head, part.arc, patience, now)

    def _hand(self, errand: Errand, head: NodeId, arc: Arc, patience: float, now: float) -> None:
        hop = self._hop
        interest = errand.interest or Interest("", "")

        def make(number: int) -> Spread:
            return Spread(
                number,
                errand.origin,
                errand.id,
                vid_to_wire(arc.start),
                vid_to_wire(arc.upto),
                errand.hops + 1,
                patience,
                interest.key,
                interest.word,
                errand.gauge,
                errand.service,
                errand.payload,
            )

        hop.counts.forwarded += 1
        number = hop.outgoing.hand(head, make, self._on_lost, now)
        errand.parts[number] = arc
        if hop.effects.tracing:
            steps = errand.hops + 1
            hop.effects.trace(
                Trace(BROADCAST_HOP, head, origin=errand.origin, stream=errand.id, hops=steps)
            )
        self._parts[number] = errand

    def _on_lost(self, transfer: int, peer: NodeId, now: float) -> None:
        errand = self._parts[transfer]
        if peer not in errand.lost:
            errand.lost = (*errand.lost, peer)
        self._hand_on(errand, self._forget(errand, transfer), now)
        self._end_if_done(errand, now)

    def _forget(self, errand: Errand, transfer: int) -> Arc:
        del self._parts[transfer]
        return errand.parts.pop(transfer)

    def _end_if_done(self, errand: Errand, now: float) -> bool:
        if errand.parts:
            return False
        hop = self._hop
        report = (errand.reached, errand.missing, errand.depth)
        if errand.handed is not None:
            del self._errands[errand.handed]
            done = RangeDone(errand.handed[1], *report, errand.aggregate)
            hop.incoming.end(errand.handed, done, now)
            return True
        del self._errands[errand.id]
        self.begun -= 1
        zone = hop.members.zone
        if errand.gauge:
            done_event = AggregateDone(zone, errand.id, errand.gauge, errand.aggregate, *report)
            hop.effects.emit(done_event)
        else:
            hop.effects.emit(BroadcastDone(zone, errand.id, *report))
        return True
