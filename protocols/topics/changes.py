"""Members, their interest and gateways come and go: who is sent what is looked at anew."""

from __future__ import annotations

from typing import TypeAlias

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import LinkUp
from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
)
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined, MemberLeft
from protocols.topics.arrivals import Arrivals
from protocols.topics.bridging import Bridge
from protocols.topics.core import Core
from protocols.topics.departures import Departures
from protocols.topics.interest import INTEREST_KEYS
from protocols.topics.messages import Moving, StreamKey, key_of
from protocols.topics.relation import Seat

GatewayEvent: TypeAlias = GatewayAppointed | GatewayDismissed | GatewayMoved | GatewaysChanged


class Changes:
    """What they mean for the streams that arrive at this node and leave it."""

    def __init__(
        self, core: Core, departures: Departures, arrivals: Arrivals, bridge: Bridge
    ) -> None:
        self._core = core
        self._departures = departures
        self._arrivals = arrivals
        self._bridge = bridge

    def on_member(self, event: MemberJoined, now: float) -> None:
        """Somebody joined the zone."""
        if event.zone == self._core.members.zone:
            self._interest_of(event.member)

    def on_attributes(self, event: AttributesChanged, now: float) -> None:
        """A member says something else of itself."""
        here = event.zone == self._core.members.zone
        if here and any(key in INTEREST_KEYS for key in event.keys):
            self._interest_of(event.member)

    def on_member_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        """Somebody is not in the zone any more."""
        if event.zone != self._core.members.zone:
            return
        for stream in self._arrivals.streams.values():
            if stream.source == event.member and stream.lost_at is None:
                stream.lost_at = now
        self._interest_of(event.member)  # a restarted one is present again

    def on_link(self, event: LinkUp, now: float) -> None:
        """Its certificate is known now, and may not allow what the peer is interested in."""
        may, peer = self._core.may, event.peer
        if not all(may(peer, "subscribe", out.topic) for out in self._departures.all()):
            self.review_later()

    def _interest_of(self, member: NodeId) -> None:
        """What a member wants may have changed: whoever shunned it tries again."""
        self._core.audience.refresh(member)
        for out in self._departures.all():
            out.shunned.pop(Seat(member), None)
        self.review_later()

    def on_gateways(self, event: GatewayEvent, now: float) -> None:
        """Others stand for a zone in a topic now."""
        topic = event.topic
        if isinstance(event, GatewayAppointed):
            self._bridge.appointed(topic)
        elif isinstance(event, GatewayDismissed):
            self._bridge.dismissed(topic)
            for stream in [one for one in self._arrivals.streams.values() if one.topic == topic]:
                self._arrivals.call_for(stream, now)
        for stream in [one for one in self._arrivals.streams.values() if one.topic == topic]:
            self._arrivals.leave_if_idle(stream, now)
        for out in self._departures.of_topic(topic):
            for seat in [seat for seat in out.shunned if seat.relay]:
                del out.shunned[seat]
        self._bridge.call_all(self._arrivals.streams.values(), now)
        self.review_later()

    def on_moving(self, src: NodeId, msg: Moving, now: float) -> None:
        """A receiver, or the publisher, or the way to it, changes its zone or address."""
        stream = self._arrivals.streams.get((msg.origin, msg.stream, msg.relay))
        if stream is not None and stream.source == src:
            stream.on_moving(now)
        out = self._departures.get(key_of(msg))
        if out is None:
            return
        if Seat(src, msg.relay) in out.relations:
            out.on_moving(now, src)
        elif msg.receiver and out.hands_on(src, relay=True):
            if not self._core.may(src, "subscribe", out.topic):
                raise RemoteProtocolError("may-not-subscribe", f"{src} to {out.topic!a}")
            out.give_place(Seat(src), msg, now)

    def review_later(self) -> None:
        """See at the end of the tick who should get what."""
        self._core.effects.at_tick_end(self._review)

    def _review(self, now: float) -> None:
        for out in self._departures.all():
            out.review(now)
            self.settle(out.key, now)

    def settle(self, key: StreamKey, now: float) -> None:
        """See whether a stream is over."""
        publisher = self._departures.publishers.get(key)
        if publisher is not None:
            if publisher.finished:
                self._departures.forget(publisher)
        elif (stream := self._arrivals.streams.get((*key, True))) is not None:
            self._arrivals.settle_relay(stream, now)
