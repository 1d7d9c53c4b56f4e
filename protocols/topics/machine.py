"""The topics of one node: its publishers, its subscriptions, and streams that arrive or pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.patterns import check_pattern, check_topic
from overlay.protocol import Effects, Event, EventHandler, Handler, Message, OverlayProtocol
from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
)
from protocols.gateways.interface import GatewayBook
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined, MemberLeft
from protocols.membership.interface import MembershipView
from protocols.topics import tree
from protocols.topics.audience import PatternIndex
from protocols.topics.config import TopicConfig, TopicsSettings
from protocols.topics.core import Core, May
from protocols.topics.events import (
    Gap,
    PublisherAppeared,
    PublisherFailed,
    PublisherGone,
    StreamEnded,
    SubscriberFailed,
    SubscriberJoined,
    SubscriberLeft,
    SubscriberSlow,
    SubscriptionFailed,
)
from protocols.topics.interest import INTEREST_KEYS, OwnInterest
from protocols.topics.messages import (
    ASK,
    LAST,
    Accept,
    Ack,
    Begin,
    Data,
    Failed,
    Knock,
    Leave,
    Nack,
    Offer,
    Reject,
    StreamKey,
    TreeData,
    key_of,
)
from protocols.topics.modes import Mode
from protocols.topics.publishing import Publisher
from protocols.topics.receiving import Incoming
from protocols.topics.relaying import Relay
from protocols.topics.sending import Outgoing
from protocols.topics.subscription import Admit, Replay, Subscription, anybody
from protocols.topology.interface import TopologyView

GatewayEvent: TypeAlias = GatewayAppointed | GatewayDismissed | GatewayMoved | GatewaysChanged

SWEEP = "sweep"
SWEEP_EVERY = 1.0  # s between two looks for streams that fell silent, and gateways to call
REMEMBERED_REPAIRS = 4096  # (receiver, chunk) that were sent again a moment ago


class AttributeWriter(Protocol):
    """What topics need of the membership of this node's zone."""

    @property
    def view(self) -> MembershipView:
        """The members."""

    def set_attribute(self, key: str, value: str | float | bool, now: float) -> None:
        """Set an attribute of this node."""

    def remove_attribute(self, key: str, now: float) -> None:
        """Remove one that is set."""


class Past(NamedTuple):
    """Where a stream that arrived here ended."""

    expected: int
    final: bool  # it was complete: whatever comes now is a late copy
    receiver: int
    until: float


def everybody_may(_name: NodeId, _what: str, _topic: str) -> bool:
    """Nobody's certificate says otherwise."""
    return True


class Topics(OverlayProtocol):
    """Publishes, subscribes and, at a gateway, relays."""

    name: ClassVar[str] = "topics"
    messages: ClassVar[tuple[type[Message], ...]] = (
        Offer,
        Accept,
        Reject,
        Begin,
        Data,
        TreeData,
        Ack,
        Nack,
        Failed,
        Leave,
        Knock,
    )
    emits: ClassVar[tuple[type[Event], ...]] = (
        PublisherAppeared,
        PublisherGone,
        PublisherFailed,
        Gap,
        SubscriptionFailed,
        SubscriberJoined,
        SubscriberSlow,
        SubscriberFailed,
        SubscriberLeft,
        StreamEnded,
    )
    config: TopicsSettings

    def __init__(
        self,
        me: NodeId,
        effects: Effects,
        rng: Random,
        config: TopicsSettings,
        *,
        base: AttributeWriter,
        links: TopologyView,
        book: GatewayBook,
        may: May = everybody_may,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self._base = base
        self._book = book
        self._own = OwnInterest(config.interest_bytes)
        self._said: dict[str, str] = {}
        self._local: PatternIndex[int] = PatternIndex()  # numbers of subscriptions
        self._subscriptions: dict[int, Subscription] = {}
        self._numbers: dict[Subscription, int] = {}
        self._last_number = 0
        self.core = Core(me, effects, rng, config, base.view, links, book, may, self._wanted_here)
        self.counts = self.core.counts
        self.publishers: dict[StreamKey, Publisher] = {}
        self.incoming: dict[StreamKey, Incoming] = {}
        self._past: dict[StreamKey, Past] = {}
        self._resent: dict[tuple[NodeId, int], float] = {}
        self._knocked: dict[tuple[str, NodeId], float] = {}  # when a publisher was called last
        self._by_topic: dict[str, dict[StreamKey, Outgoing]] = {}
        self._gateway_topics: dict[str, None] = {}  # for which this node stands
        self._timers: dict[str, Callable[[StreamKey, float], None]] = {
            "out": self._on_out_timer,
            "gap": self._on_gap_timer,
            "ack": self._on_ack_timer,
            "slow": self._on_slow_timer,
            "linger": self._on_linger_timer,
        }

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            Offer: self._on_offer,
            Accept: self._on_accept,
            Reject: self._on_reject,
            Begin: self._on_begin,
            Data: self._on_data,
            TreeData: self._on_tree_data,
            Ack: self._on_ack,
            Nack: self._on_nack,
            Failed: self._on_failed,
            Leave: self._on_leave,
            Knock: self._on_knock,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Members, their interest, and gateways come and go."""
        return {
            MemberJoined: self._on_member,
            MemberFailed: self._on_member_gone,
            MemberLeft: self._on_member_gone,
            AttributesChanged: self._on_attributes,
            GatewayAppointed: self._on_gateways,
            GatewayMoved: self._on_gateways,
            GatewaysChanged: self._on_gateways,
            GatewayDismissed: self._on_gateways,
        }

    # -- commands of the application ------------------------------------------------------------

    def publish(self, topic: str, config: TopicConfig, now: float) -> Publisher:
        """Open a publisher of a topic."""
        check_topic(topic)
        if not self.core.may(self.me, "publish", topic):
            raise LocalProtocolError(
                f"the certificate of {self.me!r} does not allow it to publish to {topic!r}"
            )
        key = (self.me, self.rng.getrandbits(48))
        publisher = Publisher(self.core, key, topic, config, now)
        self.publishers[key] = publisher
        self._by_topic.setdefault(topic, {})[key] = publisher
        self._declare(topic, now)
        publisher.review(now)
        return publisher

    def close_publisher(self, publisher: Publisher, now: float) -> None:
        """Publish no more; it lingers to serve who lacks something. StreamEnded follows."""
        publisher.close(now)
        self._drop_finished(publisher, now)

    def subscribe(
        self,
        pattern: str,
        now: float,
        *,
        replay: Replay | None = None,
        admit: Admit = anybody,
        capacity: int = 1 << 22,
    ) -> Subscription:
        """Take in everything that is published to topics of that pattern."""
        check_pattern(pattern)
        if not self.core.may(self.me, "subscribe", pattern):
            raise LocalProtocolError(
                f"the certificate of {self.me!r} does not allow it to subscribe to {pattern!r}"
            )
        one = Subscription(pattern, replay or Replay(), admit, capacity)
        self._last_number += 1
        self._subscriptions[self._last_number] = one
        self._numbers[one] = self._last_number
        self._local.add(pattern, self._last_number)
        if self._own.subscribe(pattern):
            self._interest_changed(pattern, one, now)
        for stream in self.incoming.values():
            if self._matches(one, stream.topic) and one.admit(stream.key[0], stream.topic):
                stream.subscriptions.append(one)
        for key, past in list(self._past.items()):
            if not past.final:
                del self._past[key]  # a new subscription is no continuation
        self._review_later()
        return one

    def unsubscribe(self, one: Subscription, now: float) -> None:
        """Take in no more for that subscription."""
        number = self._numbers.pop(one, None)
        if number is None:
            return
        one.open = False
        del self._subscriptions[number]
        self._local.remove(one.pattern, number)
        for stream in list(self.incoming.values()):
            if one in stream.subscriptions:
                stream.subscriptions.remove(one)
                self._leave_if_idle(stream, now)
        if self._own.unsubscribe(one.pattern):
            self._interest_changed(one.pattern, one, now)
        self._review_later()

    def resume(self, one: Subscription, now: float) -> None:
        """A subscription that was full has room again."""
        one.held = False
        for stream in list(self.incoming.values()):
            if one in stream.subscriptions:
                stream.resume(now)
                self._settle(stream, now)

    def _interest_changed(self, pattern: str, one: Subscription, now: float) -> None:
        self.effects.at_tick_end(self._tell_interest)
        if one.is_exact:
            self._declare(pattern, now)

    def _tell_interest(self, now: float) -> None:
        attributes = self._own.attributes()
        for key, value in attributes.items():
            if self._said.get(key) != value:
                self._base.set_attribute(key, value, now)
        for key in self._said:
            if key not in attributes:
                self._base.remove_attribute(key, now)
        self._said = attributes

    def _declare(self, topic: str, now: float) -> None:
        streams = self._by_topic.get(topic, {}).values()
        publishes = any(isinstance(one, Publisher) and not one.closed for one in streams)
        self._book.declare(topic, publishes=publishes, subscribes=topic in self._own, now=now)

    # -- who wants what -------------------------------------------------------------------------

    def _wanted_here(self, topic: str) -> bool:
        return bool(self._local.matches(topic))

    def _matches(self, one: Subscription, topic: str) -> bool:
        return self._numbers[one] in self._local.matches(topic)

    def _takers(self, publisher: NodeId, topic: str) -> list[Subscription]:
        """Subscriptions of this node that want that publisher."""
        found = [self._subscriptions[number] for number in self._local.matches(topic)]
        admitted = [one for one in found if one.admit(publisher, topic)]
        if found and not admitted:
            self.counts.refused_publishers += 1
        return admitted

    def _relayed_to(self, key: StreamKey, topic: str) -> Callable[[], dict[NodeId, str]] | None:
        """To whom this node must hand a stream on, as a gateway; None when it is none."""
        core, book = self.core, self._book
        if not book.is_gateway(topic) or key[0] == self.me:
            return None
        if key[0] in core.members:

            def other_zones() -> dict[NodeId, str]:
                if not book.is_gateway(topic):
                    return {}
                remote = book.remote_gateways(topic)
                return {peer: far.zone for peer, far in remote.items() if far.subscribes}

            return other_zones

        def this_zone() -> dict[NodeId, str]:
            if not book.is_gateway(topic):
                return {}
            return {
                peer: ""
                for peer in core.audience.interested(topic)
                if peer != key[0] and core.may(peer, "subscribe", topic)
            }

        return this_zone

    # -- handshakes -----------------------------------------------------------------------------

    def _on_offer(self, src: NodeId, msg: Offer, now: float) -> None:
        key = key_of(msg)
        self._check_origin(src, msg.origin, msg.topic)
        past = self._past.get(key)
        if past is not None and past.final:
            self.effects.send(src, Leave(*key))
            return
        stream = self.incoming.get(key)
        if stream is None:
            stream = self._open(src, msg, past, now)
            if stream is None:
                return
        elif stream.over:
            self.effects.send(src, Leave(*key))
            return
        stream.accept(src, msg, now)

    def _open(self, src: NodeId, msg: Offer, past: Past | None, now: float) -> Incoming | None:
        """Begin to take a stream in, or reject it; None also when it is too early to say."""
        key, mode = key_of(msg), msg.mode
        takers = self._takers(msg.origin, msg.topic)
        relayed_to = self._relayed_to(key, msg.topic)
        if relayed_to is not None and not relayed_to():
            relayed_to = None
        if not takers and relayed_to is None:
            if self._book.knows_remote(msg.topic):
                wanted = self._wanted_here(msg.topic)
                reason = "not admitted" if wanted else "no interest"
                self.effects.send(src, Reject(*key, reason))
            return None
        stream = self._new_stream(src, key, msg.topic, mode, takers, now)
        if relayed_to is not None:
            self._add_relay(stream, relayed_to, msg.window, msg.keep)
        if past is not None:
            stream.receiver = past.receiver
            stream.resume_at(past.expected, now)
            del self._past[key]
        return stream

    def _new_stream(
        self,
        src: NodeId,
        key: StreamKey,
        topic: str,
        mode: Mode,
        takers: list[Subscription],
        now: float,
    ) -> Incoming:
        if len(self.incoming) >= self.config.max_streams:
            raise RemoteProtocolError("too-many-streams", f"{self.config.max_streams} arrive here")
        stream = Incoming(self.core, key, topic, mode, src, now)
        stream.subscriptions = takers
        self.incoming[key] = stream
        return stream

    def _add_relay(
        self,
        stream: Incoming,
        wanted: Callable[[], dict[NodeId, str]],
        window: int,
        keep: int,
    ) -> Relay:
        relay = Relay(
            self.core,
            stream.key,
            stream.topic,
            stream.mode,
            window=window,
            keep=keep,
            wanted=wanted,
        )
        relay.progressed = stream.relay_progressed
        stream.relay = relay
        self._by_topic.setdefault(stream.topic, {})[stream.key] = relay
        return relay

    def _check_origin(self, src: NodeId, origin: NodeId, topic: str) -> None:
        """RemoteProtocolError when that publisher may not, or is not who sends it."""
        try:
            check_topic(topic)
        except LocalProtocolError as error:
            raise RemoteProtocolError("bad-topic", str(error)) from None
        if not self.core.may(origin, "publish", topic):
            raise RemoteProtocolError("may-not-publish", f"{origin} to {topic!a}")

    def _on_accept(self, src: NodeId, msg: Accept, now: float) -> None:
        out = self._outgoing(key_of(msg))
        if out is None:
            self.counts.stray += 1
            self.effects.send(src, Failed(*key_of(msg), "gone"))
            return
        if not self.core.may(src, "subscribe", out.topic):
            raise RemoteProtocolError("may-not-subscribe", f"{src} to {out.topic!a}")
        out.on_accept(src, msg, now)

    def _on_reject(self, src: NodeId, msg: Reject, now: float) -> None:
        out = self._outgoing(key_of(msg))
        if out is not None:
            out.on_reject(src, msg.reason, now)
            self._settle_key(out.key, now)

    def _on_begin(self, src: NodeId, msg: Begin, now: float) -> None:
        stream = self.incoming.get(key_of(msg))
        if stream is None:
            self.counts.stray += 1
            return
        stream.on_begin(src, msg.start, now)
        self._settle(stream, now)

    def _on_knock(self, src: NodeId, msg: Knock, now: float) -> None:
        for out in list(self._by_topic.get(msg.topic, {}).values()):
            out.called_by(src, now)

    def _on_leave(self, src: NodeId, msg: Leave, now: float) -> None:
        out = self._outgoing(key_of(msg))
        if out is not None:
            out.on_leave(src, now)
            self._settle_key(out.key, now)

    def _on_failed(self, src: NodeId, msg: Failed, now: float) -> None:
        """The sender does not count on this node: knock, if it is still wanted."""
        key = key_of(msg)
        stream = self.incoming.get(key)
        if stream is None or stream.source != src or stream.over:
            return
        if msg.reason == "gone":  # it has no such stream: whoever succeeds it will offer
            return
        if stream.subscriptions and stream.begun:
            self.effects.emit(SubscriptionFailed(stream.topic, *key, msg.reason))
        self.effects.send(src, Knock(stream.topic))

    # -- streams --------------------------------------------------------------------------------

    def _on_data(self, src: NodeId, msg: Data, now: float) -> None:
        stream = self.incoming.get((msg.origin, msg.stream))
        if stream is None:
            stream = self._met(src, msg, now)
            if stream is None:
                return
        stream.on_data(src, msg, src, 1, now)
        if stream.over:
            self._settle(stream, now)

    def _on_tree_data(self, src: NodeId, msg: TreeData, now: float) -> None:
        if src not in self.core.members:
            self.counts.stray += 1
            return
        tree.hand_on(self.core, src, msg)
        data = tree.untied(msg)
        stream = self.incoming.get((msg.origin, msg.stream))
        if stream is None:
            stream = self._met(msg.root, data, now)
            if stream is None:
                return
        stream.on_data(msg.root, data, src, msg.hops, now)
        if stream.over:
            self._settle(stream, now)

    def _met(self, src: NodeId, msg: Data, now: float) -> Incoming | None:
        """A word of a stream that is not known here; returns it if it begins now."""
        key = key_of(msg)
        past = self._past.get(key)
        if msg.origin == self.me and key not in self.publishers:
            self.counts.stray += 1  # of an earlier life of this node
            return None
        if msg.mode == Mode.ACK:
            self._answer_stranger(src, msg, past)
            return None
        self._check_origin(src, msg.origin, msg.topic)
        if (past is not None and past.final) or not msg.oldest or msg.flags & LAST:
            self.counts.stray += 1
            return None
        takers = self._takers(msg.origin, msg.topic)
        if not takers:
            self.counts.stray += 1
            return None
        stream = self._new_stream(src, key, msg.topic, msg.mode, takers, now)
        if past is not None:
            stream.resume_at(past.expected, now)
            del self._past[key]
        return stream

    def _answer_stranger(self, src: NodeId, msg: Data, past: Past | None) -> None:
        """Its sender counts on this node, which knows of no handshake."""
        self.counts.stray += 1
        key = key_of(msg)
        if past is not None and past.final:
            if msg.flags & ASK:
                self.effects.send(src, Leave(*key))
        elif msg.flags & ASK:
            wanted = self._wanted_here(msg.topic) or self._book.is_gateway(msg.topic)
            self.effects.send(src, Knock(msg.topic) if wanted else Leave(*key))

    def _on_ack(self, src: NodeId, msg: Ack, now: float) -> None:
        out = self._outgoing(key_of(msg))
        if out is None:
            self.counts.stray += 1
            self.effects.send(src, Failed(*key_of(msg), "gone"))
            return
        out.on_ack(src, msg, now)
        if out.ended:
            self._settle_key(out.key, now)

    def _on_nack(self, src: NodeId, msg: Nack, now: float) -> None:
        key = key_of(msg)
        out = self._outgoing(key)
        stream = self.incoming.get(key)
        if len(self._resent) > REMEMBERED_REPAIRS:
            self._resent.clear()
        if out is not None:
            out.on_nack(src, msg, now, self._resent)
            if stream is not None and msg.gaps and msg.gaps[0][0] < out.history.oldest:
                stream.on_nack(src, msg.gaps, now)
                stream.ask_upstream(msg.gaps)
        elif stream is not None and stream.mode is Mode.NACK:
            stream.on_nack(src, msg.gaps, now)
        else:
            self.counts.stray += 1

    def _outgoing(self, key: StreamKey) -> Outgoing | None:
        publisher = self.publishers.get(key)
        if publisher is not None:
            return publisher
        stream = self.incoming.get(key)
        return stream.relay if stream is not None else None

    # -- ends -----------------------------------------------------------------------------------

    def _settle_key(self, key: StreamKey, now: float) -> None:
        publisher = self.publishers.get(key)
        if publisher is not None:
            self._drop_finished(publisher, now)
        elif (stream := self.incoming.get(key)) is not None:
            self._settle(stream, now)

    def _drop_finished(self, publisher: Publisher, now: float) -> None:
        if publisher.finished:
            self._forget_out(publisher)
            self.publishers.pop(publisher.key, None)
            self._declare(publisher.topic, now)

    def _forget_out(self, out: Outgoing) -> None:
        streams = self._by_topic.get(out.topic, {})
        streams.pop(out.key, None)
        if not streams:
            self._by_topic.pop(out.topic, None)
        for kind in ("out", "slow", "linger"):
            self.effects.cancel_timer((kind, out.key))

    def _settle(self, stream: Incoming, now: float) -> None:
        """Forget a stream that is over here, once its relay is, too."""
        relay = stream.relay
        if not stream.over:
            return
        if relay is not None and relay.relations and now < relay.linger_until:
            return
        final = stream.final is not None and stream.expected > stream.final and not stream.lost
        self._close_stream(stream, now, final=final)

    def _close_stream(self, stream: Incoming, now: float, *, final: bool) -> None:
        self.incoming.pop(stream.key, None)
        if stream.relay is not None:
            self._forget_out(stream.relay)
        for kind in ("gap", "ack"):
            self.effects.cancel_timer((kind, stream.key))
        if stream.begun:
            until = now + self.config.remember
            self._past[stream.key] = Past(stream.expected, final, stream.receiver, until)

    def _leave_if_idle(self, stream: Incoming, now: float) -> None:
        """Nobody here wants it any more: tell its sender."""
        if stream.subscriptions or stream.relay is not None:
            return
        self.effects.send(stream.source, Leave(*stream.key))
        self._close_stream(stream, now, final=False)
        self._past.pop(stream.key, None)

    # -- members and gateways -------------------------------------------------------------------

    def _on_member(self, event: MemberJoined, now: float) -> None:
        if event.zone == self.core.members.zone:
            self.core.audience.refresh(event.member)
            for out in self._all_outgoing():
                out.shunned.pop(event.member, None)
            self._review_later()

    def _on_member_gone(self, event: MemberFailed | MemberLeft, now: float) -> None:
        if event.zone != self.core.members.zone:
            return
        member = event.member
        self.core.audience.refresh(member)  # a restarted one is present again
        for stream in list(self.incoming.values()):
            if stream.source == member and stream.lost_at is None:
                stream.lost_at = now
        for out in self._all_outgoing():
            out.shunned.pop(member, None)
        self._review_later()

    def _on_attributes(self, event: AttributesChanged, now: float) -> None:
        if event.zone != self.core.members.zone or not any(k in INTEREST_KEYS for k in event.keys):
            return
        self.core.audience.refresh(event.member)
        for out in self._all_outgoing():
            out.shunned.pop(event.member, None)
        self._review_later()

    def _all_outgoing(self) -> list[Outgoing]:
        return [out for streams in self._by_topic.values() for out in streams.values()]

    def _on_gateways(self, event: GatewayEvent, now: float) -> None:
        topic = event.topic
        if isinstance(event, GatewayAppointed):
            self._gateway_topics[topic] = None
        elif isinstance(event, GatewayDismissed):
            self._gateway_topics.pop(topic, None)
        for out in self._by_topic.get(topic, {}).values():
            for peer, zone in out.wanted().items():
                if zone:
                    out.shunned.pop(peer, None)
        for stream in [one for one in self.incoming.values() if one.topic == topic]:
            self._follow_gateway(stream, now)
        self._call_publishers(topic, now)
        self._review_later()

    def _follow_gateway(self, stream: Incoming, now: float) -> None:
        """Begin or end to relay a stream, as this node is the topic's gateway or not."""
        relayed_to = self._relayed_to(stream.key, stream.topic)
        if stream.relay is None and relayed_to is not None and relayed_to():
            relay = self._add_relay(stream, relayed_to, 1 << 20, 0)
            if stream.begun:
                relay.begin(stream.expected, now)
        elif stream.relay is not None and (relayed_to is None or not relayed_to()):
            if stream.relay.relations or stream.relay.orphans:
                return  # those who are behind may have no other source yet
            self._forget_out(stream.relay)
            stream.relay = None
            self._leave_if_idle(stream, now)

    def _call_publishers(self, topic: str, now: float) -> None:
        """Ask publishers whose streams must cross to other zones for offers."""
        book = self._book
        if not book.is_gateway(topic):
            return
        far = book.remote_gateways(topic)
        if any(one.subscribes for one in far.values()):
            self._knock_at(topic, book.local_publishers(topic), now)
        if book.local_subscribers(topic):
            self._knock_at(topic, [peer for peer, one in far.items() if one.publishes], now)

    def _knock_at(self, topic: str, peers: Any, now: float) -> None:
        known = {one.source for one in self.incoming.values() if one.topic == topic}
        for peer in peers:
            if peer == self.me or peer in known:
                continue
            if now - self._knocked.get((topic, peer), -1e18) >= self.config.offer_every * 4:
                self._knocked[topic, peer] = now
                self.effects.send(peer, Knock(topic))

    def _review_later(self) -> None:
        self.effects.at_tick_end(self._review)

    def _review(self, now: float) -> None:
        for out in self._all_outgoing():
            out.review(now)
            self._settle_key(out.key, now)

    # -- time -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Nothing is kept: streams end with their node."""
        self.effects.set_timer(SWEEP, now + SWEEP_EVERY)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Each part of a stream has its own timers."""
        if key == SWEEP:
            self._sweep(now)
            self.effects.set_timer(SWEEP, now + SWEEP_EVERY)
        elif isinstance(key, tuple):
            self._timers[key[0]](key[1], now)

    def _on_out_timer(self, key: StreamKey, now: float) -> None:
        out = self._outgoing(key)
        if out is not None:
            out.on_timer(now)
            self._settle_key(key, now)

    def _on_gap_timer(self, key: StreamKey, now: float) -> None:
        stream = self.incoming.get(key)
        if stream is not None:
            stream.on_gap_timer(now)
            self._settle(stream, now)

    def _on_ack_timer(self, key: StreamKey, now: float) -> None:
        stream = self.incoming.get(key)
        if stream is not None:
            stream.on_ack_timer(now)

    def _on_slow_timer(self, key: StreamKey, now: float) -> None:
        publisher = self.publishers.get(key)
        if publisher is not None:
            publisher.on_slow_timer(now)

    def _on_linger_timer(self, key: StreamKey, now: float) -> None:
        publisher = self.publishers.get(key)
        if publisher is not None:
            publisher.on_linger_timer(now)
            self._drop_finished(publisher, now)

    def _sweep(self, now: float) -> None:
        """Look for streams that fell silent, and for publishers who did not hear a call."""
        config = self.config
        silence = config.silence * config.heartbeat
        for stream in list(self.incoming.values()):
            lost = stream.lost_at
            if stream.source == stream.key[0] and lost is not None and not stream.over:
                gone = now - lost > config.lost_grace and stream.source not in self.core.members
            else:
                gone = now - stream.heard_at > silence
            if gone and not stream.over:
                stream.fail("silent" if lost is None else "failed", now)
            self._settle(stream, now)
        for key, past in list(self._past.items()):
            if past.until <= now:
                del self._past[key]
        for topic in self._gateway_topics:
            self._call_publishers(topic, now)

    def on_stop(self, now: float) -> None:
        """Say goodbye to senders and receivers."""
        for publisher in self.publishers.values():
            publisher.close(now)
        for stream in self.incoming.values():
            if stream.relay is None:
                self.effects.send(stream.source, Leave(*stream.key))

    # -- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        for out in self._all_outgoing():
            out.check_invariants()
        for stream in self.incoming.values():
            stream.check_invariants()
        for key, publisher in self.publishers.items():
            if publisher.finished:
                raise InvariantViolation(f"{self.me}: {key} is over and still there")
