"""All streams that arrive at this node, and where those that are over had come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from overlay.errors import LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.patterns import check_topic
from protocols.topics import tracing
from protocols.topics.bridging import Bridge
from protocols.topics.core import Core
from protocols.topics.departures import Departures
from protocols.topics.events import Gap
from protocols.topics.messages import (
    ASK,
    LAST,
    NO_INTEREST,
    NOT_ADMITTED,
    RELAY,
    Accept,
    ArrivalKey,
    Data,
    Knock,
    Leave,
    Offer,
    Reject,
    key_of,
)
from protocols.topics.modes import Mode
from protocols.topics.receiving import Incoming
from protocols.topics.subscribing import Subscriptions
from protocols.topics.subscription import Subscription

if TYPE_CHECKING:
    from protocols.topics.moving import Luggage

QUIET = 2.5  # × heartbeat without a word, then a receiver asks for offers


class Past(NamedTuple):
    """Where a stream that arrived here ended."""

    topic: str
    expected: int
    newest: int  # what lies between never came, and is not known to be gone yet
    final: bool  # it was complete: whatever comes now is a late copy
    receiver: int
    takers: tuple[Subscription, ...]  # who had it
    until: float


class Arrivals:
    """The streams by key."""

    def __init__(
        self, core: Core, subscriptions: Subscriptions, departures: Departures, bridge: Bridge
    ) -> None:
        self.streams: dict[ArrivalKey, Incoming] = {}
        self._core = core
        self._subscriptions = subscriptions
        self._departures = departures
        self._bridge = bridge
        self._past: dict[ArrivalKey, Past] = {}

    # -- begin ----------------------------------------------------------------------------------

    def offered(self, src: NodeId, msg: Offer, now: float) -> None:
        """Take a stream in, or reject it; nothing is said while it is too early to know."""
        self._check_origin(msg.origin, msg.topic)
        at: ArrivalKey = (msg.origin, msg.stream, msg.relay)
        past, stream = self._past.get(at), self.streams.get(at)
        if not (self._may_offer(src, msg) or (stream is not None and stream.source == src)):
            self._core.counts.stray += 1  # or it is too early to know it: offers are repeated
            if stream is not None and now < stream.moves_until:
                self._core.effects.send(src, Reject(*key_of(msg), "served", msg.relay))
            return
        if (past is not None and past.final) or (stream is not None and stream.over):
            self._core.effects.send(src, Leave(*at))
            return
        if stream is None:
            stream = self._open_relay(src, msg, now) if msg.relay else self._open(src, msg, now)
        elif src != stream.source and self._is_served(stream, src, now):
            self._core.effects.send(src, Reject(*key_of(msg), "served", msg.relay))
            return
        elif src != stream.source and stream.waits_for_source(msg, now):
            stream.try_out(src, msg)  # else offers are repeated
            return
        if stream is not None:
            stream.accept(src, msg, now)

    def _may_offer(self, src: NodeId, msg: Offer) -> bool:
        """Whether a node may send streams here: of this zone, or a gateway of another one."""
        core = self._core
        if src == core.me or src in core.members:
            return True
        return msg.relay and src in core.book.remote_gateways(msg.topic)

    def is_from_stranger(self, stream: Incoming, src: NodeId) -> bool:
        """Whether chunks of a stream come from somebody who has no part in it."""
        if src == stream.source:
            return False
        return stream.relay is not None or (src != self._core.me and src not in self._core.members)

    def _is_served(self, stream: Incoming, src: NodeId, now: float) -> bool:
        """Whether a stream is in better hands: two gateways of a zone offer it, for a while."""
        core = self._core
        if stream.relay is not None:
            better = src in core.book.remote_gateways(stream.topic) or src == stream.key[0]
        else:
            better = src in (core.book.gateway_of(stream.topic), stream.key[0])
        quiet = now - stream.heard_at > QUIET * core.settings.heartbeat
        detached = stream.relay is not None and not stream.relay.attached
        return not (better or quiet or detached or stream.lost_at is not None)

    def _is_near(self, stream: Incoming) -> bool:
        """Whether it comes as it should: from its publisher, from the gateway, or from outside."""
        core, source = self._core, stream.source
        if stream.key[0] in core.members or stream.key[0] == core.me:
            return source == stream.key[0]
        if stream.relay is not None:
            return source in core.book.remote_gateways(stream.topic)
        return source == core.book.gateway_of(stream.topic)

    def _open(self, src: NodeId, msg: Offer, now: float) -> Incoming | None:
        """Take it in for subscriptions of this node."""
        takers = self._subscriptions.takers(msg.origin, msg.topic)
        if not takers:
            wanted = self._subscriptions.wanted(msg.topic)
            reason = NOT_ADMITTED if wanted else NO_INTEREST
            self._core.effects.send(src, Reject(*key_of(msg), reason))
            return None
        stream = self._new(src, msg, now)
        stream.subscriptions += takers
        self._resume(stream, now)
        return stream

    def _open_relay(self, src: NodeId, msg: Offer, now: float) -> Incoming | None:
        """Take it in for others, as a gateway."""
        core, key = self._core, key_of(msg)
        fellow = src in core.members and src != msg.origin
        if not fellow and self._bridge.behind(key, msg.topic, src):
            stream = self._new(src, msg, now)
            self._bridge.add_relay(stream, msg.window, msg.keep)
            return stream
        if fellow or core.book.knows_remote(msg.topic):
            # Who stands for a zone gets streams from outside, not from another one who does.
            reason = "a gateway itself" if fellow else NO_INTEREST
            core.effects.send(src, Reject(*key, reason, relay=True))
        return None

    def _new(self, src: NodeId, msg: Offer | Data, now: float) -> Incoming:
        core, most = self._core, self._core.settings.max_streams
        if len(self.streams) >= most:
            raise RemoteProtocolError("too-many-streams", f"{most} arrive here")
        relay = isinstance(msg, Offer) and msg.relay
        stream = Incoming(core, key_of(msg), msg.topic, msg.mode, src, now, relay=relay)
        self.streams[stream.id] = stream
        return stream

    def _resume(self, stream: Incoming, now: float) -> None:
        """Go on where this stream had ended here, if it had."""
        past = self._past.pop(stream.id, None)
        if past is not None:
            stream.receiver = past.receiver
            stream.begin(past.expected, now, past.takers)

    def call_for(self, stream: Incoming, now: float, *others: NodeId) -> bool:
        """Ask whoever may send a stream for an offer: its source does not; False: it just did."""
        if now - stream.called_at < self._core.settings.offer_every:
            return False
        stream.called_at = now
        book, wanted = self._core.book, [*others]
        if stream.key[0] in self._core.members:
            wanted.append(stream.key[0])
        elif stream.relay is not None:
            far = book.remote_gateways(stream.topic)
            wanted += [peer for peer, one in far.items() if one.publishes]
        elif (gateway := book.gateway_of(stream.topic)) is not None:
            wanted.append(gateway)
        for peer in dict.fromkeys(wanted):
            self._core.effects.send(peer, Knock(stream.topic))
        return True

    def met(self, src: NodeId, msg: Data, now: float) -> Incoming | None:
        """A word of a stream that is not known here; returns it if it begins now."""
        at: ArrivalKey = (msg.origin, msg.stream, bool(msg.flags & RELAY))
        past = self._past.get(at)
        if msg.origin == self._core.me and key_of(msg) not in self._departures.publishers:
            self._core.counts.stray += 1  # of an earlier life of this node
            return None
        if msg.mode == Mode.ACK:
            self._answer_stranger(src, msg, at, past)
            return None
        if src != self._core.me and src not in self._core.members:
            self._core.counts.stray += 1
            return None
        self._check_origin(msg.origin, msg.topic)
        # Of a closed stream all may have come before its member was known here: in nack mode its
        # source still has it, and tells since when this node is interested.
        closed = LAST if msg.mode != Mode.NACK else 0
        over = (past is not None and past.final) or bool(msg.flags & (closed | RELAY))
        takers: list[Subscription] = []
        if msg.oldest and not over:
            takers = self._subscriptions.takers(msg.origin, msg.topic)
        if not takers:
            self._core.counts.stray += 1
            return None
        stream = self._new(src, msg, now)
        stream.subscriptions += takers
        self._resume(stream, now)
        return stream

    def _answer_stranger(self, src: NodeId, msg: Data, at: ArrivalKey, past: Past | None) -> None:
        """Its sender counts on this node, which knows of no handshake."""
        self._core.counts.stray += 1
        if not msg.flags & ASK:
            return
        if at[2]:
            wanted = bool(self._bridge.behind(key_of(msg), msg.topic, src))
        else:
            wanted = self._subscriptions.wanted(msg.topic)
        over = past is not None and past.final
        if wanted and not over:
            self._core.effects.send(src, Knock(msg.topic))
        else:  # a gateway that has just begun may not know yet who is behind it
            self._core.effects.send(src, Leave(*at, moved=at[2] and not over))

    def _check_origin(self, origin: NodeId, topic: str) -> None:
        """RemoteProtocolError when that is no topic, or that publisher may not."""
        try:
            check_topic(topic)
        except LocalProtocolError as error:
            raise RemoteProtocolError("bad-topic", str(error)) from None
        if not self._core.may(origin, "publish", topic):
            raise RemoteProtocolError("may-not-publish", f"{origin} to {topic!a}")

    def take_over(self, luggage: Luggage, now: float) -> None:
        """Go on with what arrived elsewhere."""
        self._past.update(luggage.past)
        for stream in luggage.streams:
            self.streams[stream.id] = stream
            stream.moved(self._core, now)
            for one in stream.takers():
                if not one.open and stream.remove(one):  # it was closed on the way
                    self.leave_if_idle(stream, now)

    def give_away(self) -> tuple[tuple[Incoming, ...], dict[ArrivalKey, Past]]:
        """What arrives for subscriptions of this node, and where ended streams had come to."""
        streams = tuple(stream for stream in self.streams.values() if stream.relay is None)
        for stream in streams:
            relay = self.streams.get((*stream.key, True))
            if relay is not None and stream.source == self._core.me:
                stream.source = relay.source  # the relay stays behind: its source goes on
            del self.streams[stream.id]
        past, self._past = self._past, {}
        return streams, {key: one for key, one in past.items() if not key[2]}

    # -- subscriptions come and go --------------------------------------------------------------

    def subscribed(self, one: Subscription, now: float) -> None:
        """Streams that arrive already are for a new subscription, too."""
        for stream in self.streams.values():
            wanted = stream.relay is None and self._subscriptions.matches(one, stream.topic)
            if wanted and one.admit(stream.key[0], stream.topic):
                stream.add(one, now)
        self._past = {
            key: past
            for key, past in self._past.items()
            if past.final or not self._subscriptions.is_only(one, past.topic)
        }

    def unsubscribed(self, one: Subscription, now: float) -> None:
        """A subscription ended; streams that nobody else wants are left."""
        for stream in list(self.streams.values()):
            if stream.remove(one):
                if stream.subscriptions and one.held:
                    stream.resume(now)  # the others wait for it no longer
                    self.settle(stream, now)
                else:
                    self.leave_if_idle(stream, now)

    def leave_if_idle(self, stream: Incoming, now: float) -> None:
        """Nobody here wants it any more: tell its sender."""
        if stream.subscriptions or (stream.relay and not self._bridge.is_idle(stream)):
            return
        moved = stream.relay is not None and self._bridge.others_serve(stream)
        self._core.effects.send(stream.source, Leave(*stream.id, moved=moved))
        if self._core.effects.tracing and stream.relay is None:
            tracing.left(self._core, stream.key, stream.topic, stream.order.expected)
        self._close(stream, now, final=False)
        self._past.pop(stream.id, None)

    def starts_over(self, msg: Accept, now: float) -> bool:
        """Have a relay that trimmed what a receiver lacks begin again; False: there is none.

        Its source keeps what another gateway of this zone did not acknowledge, and whoever was
        served by that one may lack it.
        """
        stream = self.streams.get((*key_of(msg), True))
        if stream is None or stream.relay is None or not stream.relay.had(msg):
            return False
        self._core.counts.started_over += 1
        self._close(stream, now, final=False)
        self._core.effects.send(stream.source, Knock(stream.topic))
        return True

    # -- end ------------------------------------------------------------------------------------

    def settle(self, stream: Incoming, now: float) -> None:
        """Forget a stream that is over here, once its relay is, too."""
        relay = stream.relay
        if not stream.over or (relay is not None and relay.relations and now < relay.linger_until):
            return
        complete = stream.final is not None and stream.order.expected > stream.final
        self._close(stream, now, final=complete and not stream.lost)

    def settle_relay(self, stream: Incoming, now: float) -> None:
        """The receivers of a relay changed: it is over, or nobody needs it, or it goes on."""
        self.settle(stream, now)
        if not stream.over:
            self.leave_if_idle(stream, now)

    def _close(self, stream: Incoming, now: float, *, final: bool) -> None:
        self.streams.pop(stream.id, None)
        if stream.relay is not None:
            self._departures.forget(stream.relay)
        for kind in ("gap", "ack"):
            self._core.effects.cancel_timer((kind, stream.id))
        for request in stream.recalls:
            request.stop()
        if stream.begun and (final or stream.relay is None):
            order, reliable = stream.order, stream.mode in (Mode.ACK, Mode.NACK)
            self._past[stream.id] = Past(
                stream.topic,
                order.expected,
                order.newest if reliable else 0,
                final,
                stream.receiver,
                tuple(stream.takers()),
                now + self._core.settings.remember,
            )
            if len(self._past) > self._core.settings.max_streams:
                oldest = next(iter(self._past))
                self._tell_tail(oldest, self._past.pop(oldest))

    def sweep(self, now: float) -> None:
        """End streams that fell silent, and forget where long ended ones had come to."""
        settings = self._core.settings
        silence = settings.silence * settings.heartbeat
        for stream in list(self.streams.values()):
            lost, source = stream.lost_at, stream.source
            moves = now < stream.moves_until
            gone = now - stream.heard_at > silence and not moves
            if source == stream.key[0] and lost is not None and not moves:
                # Its publisher itself is gone; of a gateway there will be a successor.
                gone |= now - lost > settings.lost_grace and source not in self._core.members
            if stream.over:
                pass
            elif stream.failed:
                if not gone and lost is None:
                    stream.came_back()
            elif gone:
                stream.fail("silent" if lost is None else "failed", now)
            elif lost is not None or now - stream.heard_at > QUIET * settings.heartbeat:
                self.call_for(stream, now, source)
            elif moves and not self._is_near(stream):
                self.call_for(stream, now)
            self.settle(stream, now)
        for key, past in list(self._past.items()):
            if past.until <= now:
                del self._past[key]
                self._tell_tail(key, past)

    def _tell_tail(self, key: ArrivalKey, past: Past) -> None:
        """A source did not come back: what we knew of and did not get is gone for good."""
        if past.newest >= past.expected and any(one.open for one in past.takers):
            self._core.counts.gaps += past.newest - past.expected + 1
            gap = Gap(past.topic, key[0], key[1], past.expected, past.newest, "failed")
            self._core.effects.emit(gap)
