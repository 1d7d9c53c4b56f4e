"""All streams that arrive at this node, and where those that are over had come to."""

from __future__ import annotations

from typing import NamedTuple

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.patterns import check_topic
from protocols.topics.bridging import Bridge
from protocols.topics.core import Core
from protocols.topics.departures import Departures
from protocols.topics.messages import (
    ASK,
    LAST,
    Data,
    Knock,
    Leave,
    Offer,
    Reject,
    StreamKey,
    key_of,
)
from protocols.topics.modes import Mode
from protocols.topics.receiving import Incoming
from protocols.topics.subscribing import Subscriptions
from protocols.topics.subscription import Subscription

QUIET = 2.5  # × heartbeat without a word, then a receiver asks for offers


class Past(NamedTuple):
    """Where a stream that arrived here ended."""

    expected: int
    final: bool  # it was complete: whatever comes now is a late copy
    receiver: int
    until: float


class Arrivals:
    """The streams by key."""

    def __init__(
        self, core: Core, subscriptions: Subscriptions, departures: Departures, bridge: Bridge
    ) -> None:
        self.streams: dict[StreamKey, Incoming] = {}
        self._core = core
        self._subscriptions = subscriptions
        self._departures = departures
        self._bridge = bridge
        self._past: dict[StreamKey, Past] = {}

    # -- begin ----------------------------------------------------------------------------------

    def offered(self, src: NodeId, msg: Offer, now: float) -> None:
        """Take a stream in, or reject it; nothing is said while it is too early to know."""
        key = key_of(msg)
        self._check_origin(msg.origin, msg.topic)
        past = self._past.get(key)
        stream = self.streams.get(key)
        if (past is not None and past.final) or (stream is not None and stream.over):
            self._core.effects.send(src, Leave(*key))
            return
        if stream is None:
            stream = self._open(src, msg, past, now)
        elif self._bridge.is_importer(stream) and src in self._core.members:
            # Two gateways of one zone, for a while: who stands for it gets it from outside.
            self._core.effects.send(src, Reject(*key, "gateway"))
            return
        if stream is not None:
            stream.accept(src, msg, now)

    def call_for(self, stream: Incoming, *others: NodeId) -> None:
        """Ask whoever may send a stream for an offer: its source does not."""
        gateway = self._core.book.gateway_of(stream.topic)
        outside = stream.key[0] not in self._core.members
        wanted = (*others, *((gateway,) if gateway is not None and outside else ()))
        for peer in dict.fromkeys(wanted):
            if peer != self._core.me:
                self._core.effects.send(peer, Knock(stream.topic))

    def _open(self, src: NodeId, msg: Offer, past: Past | None, now: float) -> Incoming | None:
        key = key_of(msg)
        takers = self._subscriptions.takers(msg.origin, msg.topic)
        relays = self._bridge.must_relay(key, msg.topic)
        if not takers and not relays:
            if self._core.book.knows_remote(msg.topic):
                wanted = self._subscriptions.wanted(msg.topic)
                reason = "not admitted" if wanted else "no interest"
                self._core.effects.send(src, Reject(*key, reason))
            return None
        stream = self._new(src, key, msg.topic, msg.mode, takers, now)
        if relays:
            self._bridge.add_relay(stream, msg.window, msg.keep)
        if past is not None:
            stream.receiver = past.receiver
            stream.resume_at(past.expected, now)
            del self._past[key]
        return stream

    def _new(
        self,
        src: NodeId,
        key: StreamKey,
        topic: str,
        mode: Mode,
        takers: list[Subscription],
        now: float,
    ) -> Incoming:
        most = self._core.settings.max_streams
        if len(self.streams) >= most:
            raise RemoteProtocolError("too-many-streams", f"{most} arrive here")
        stream = Incoming(self._core, key, topic, mode, src, now)
        stream.subscriptions = takers
        self.streams[key] = stream
        return stream

    def met(self, src: NodeId, msg: Data, now: float) -> Incoming | None:
        """A word of a stream that is not known here; returns it if it begins now."""
        key = key_of(msg)
        past = self._past.get(key)
        if msg.origin == self._core.me and key not in self._departures.publishers:
            self._core.counts.stray += 1  # of an earlier life of this node
            return None
        if msg.mode == Mode.ACK:
            self._answer_stranger(src, msg, past)
            return None
        self._check_origin(msg.origin, msg.topic)
        over = (past is not None and past.final) or bool(msg.flags & LAST) or not msg.oldest
        takers = [] if over else self._subscriptions.takers(msg.origin, msg.topic)
        if not takers:
            self._core.counts.stray += 1
            return None
        stream = self._new(src, key, msg.topic, msg.mode, takers, now)
        if past is not None:
            stream.resume_at(past.expected, now)
            del self._past[key]
        return stream

    def _answer_stranger(self, src: NodeId, msg: Data, past: Past | None) -> None:
        """Its sender counts on this node, which knows of no handshake."""
        self._core.counts.stray += 1
        if not msg.flags & ASK:
            return
        topic, over = msg.topic, past is not None and past.final
        wanted = self._subscriptions.wanted(topic) or self._core.book.is_gateway(topic)
        reply = Knock(topic) if wanted and not over else Leave(*key_of(msg))
        self._core.effects.send(src, reply)

    def _check_origin(self, origin: NodeId, topic: str) -> None:
        """RemoteProtocolError when that is no topic, or that publisher may not."""
        try:
            check_topic(topic)
        except LocalProtocolError as error:
            raise RemoteProtocolError("bad-topic", str(error)) from None
        if not self._core.may(origin, "publish", topic):
            raise RemoteProtocolError("may-not-publish", f"{origin} to {topic!a}")

    # -- subscriptions come and go --------------------------------------------------------------

    def subscribed(self, one: Subscription) -> None:
        """Streams that arrive already are for a new subscription, too."""
        for stream in self.streams.values():
            wanted = self._subscriptions.matches(one, stream.topic)
            if wanted and one.admit(stream.key[0], stream.topic):
                stream.subscriptions.append(one)
        self._past = {key: past for key, past in self._past.items() if past.final}

    def unsubscribed(self, one: Subscription, now: float) -> None:
        """A subscription ended; streams that nobody else wants are left."""
        for stream in list(self.streams.values()):
            if one in stream.subscriptions:
                stream.subscriptions.remove(one)
                self.leave_if_idle(stream, now)

    def leave_if_idle(self, stream: Incoming, now: float) -> None:
        """Nobody here wants it any more: tell its sender."""
        if stream.subscriptions or stream.relay is not None:
            return
        self._core.effects.send(stream.source, Leave(*stream.key))
        self._close(stream, now, final=False)
        self._past.pop(stream.key, None)

    # -- end ------------------------------------------------------------------------------------

    def settle(self, stream: Incoming, now: float) -> None:
        """Forget a stream that is over here, once its relay is, too."""
        relay = stream.relay
        if not stream.over or (relay is not None and relay.relations and now < relay.linger_until):
            return
        complete = stream.final is not None and stream.order.expected > stream.final
        self._close(stream, now, final=complete and not stream.lost)

    def _close(self, stream: Incoming, now: float, *, final: bool) -> None:
        self.streams.pop(stream.key, None)
        if stream.relay is not None:
            self._departures.forget(stream.relay)
        for kind in ("gap", "ack"):
            self._core.effects.cancel_timer((kind, stream.key))
        if stream.begun:
            until = now + self._core.settings.remember
            self._past[stream.key] = Past(stream.order.expected, final, stream.receiver, until)

    def sweep(self, now: float) -> None:
        """End streams that fell silent, and forget where long ended ones had come to."""
        settings = self._core.settings
        silence = settings.silence * settings.heartbeat
        for stream in list(self.streams.values()):
            lost, source = stream.lost_at, stream.source
            gone = now - stream.heard_at > silence
            if source == stream.key[0] and lost is not None:
                # Its publisher itself is gone; of a gateway there will be a successor.
                gone |= now - lost > settings.lost_grace and source not in self._core.members
            if gone and not stream.over:
                stream.fail("silent" if lost is None else "failed", now)
            elif now - stream.heard_at > QUIET * settings.heartbeat and not stream.over:
                self.call_for(stream, source)
            self.settle(stream, now)
        for key, past in list(self._past.items()):
            if past.until <= now:
                del self._past[key]
