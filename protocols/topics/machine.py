"""The topics of one node: its publishers, its subscriptions, and streams that arrive or pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from random import Random
from typing import Any, ClassVar

from overlay.errors import InvariantViolation, LocalProtocolError, RemoteProtocolError
from overlay.ids import NodeId
from overlay.patterns import check_pattern, check_topic
from overlay.protocol import (
    Effects,
    Event,
    EventHandler,
    Handler,
    LinkUp,
    Message,
    OverlayProtocol,
)
from protocols.gateways.events import (
    GatewayAppointed,
    GatewayDismissed,
    GatewayMoved,
    GatewaysChanged,
)
from protocols.gateways.interface import GatewayBook
from protocols.membership.events import AttributesChanged, MemberFailed, MemberJoined, MemberLeft
from protocols.topics import tree
from protocols.topics.arrivals import Arrivals
from protocols.topics.bridging import Bridge
from protocols.topics.changes import Changes
from protocols.topics.config import TopicConfig, TopicsSettings
from protocols.topics.core import Core, May, everybody_may, own_clock
from protocols.topics.counts import TopicsCounts
from protocols.topics.departures import Departures
from protocols.topics.events import EMITTED, SubscriptionFailed
from protocols.topics.messages import (
    ASK,
    GONE,
    MESSAGES,
    MOVED,
    RELAY,
    Accept,
    Ack,
    ArrivalKey,
    Begin,
    Data,
    Failed,
    Knock,
    Leave,
    Moving,
    Nack,
    Offer,
    Recall,
    Recalled,
    Reject,
    Repair,
    StreamKey,
    TreeData,
    key_of,
)
from protocols.topics.modes import Mode
from protocols.topics.moving import Luggage, pack
from protocols.topics.publishing import Publisher
from protocols.topics.receiving import Incoming
from protocols.topics.relation import Seat
from protocols.topics.sending import Outgoing
from protocols.topics.stream import Resent
from protocols.topics.subscribing import AttributeWriter, Subscriptions
from protocols.topics.subscription import Admit, Replay, Subscription, anybody
from protocols.topology.interface import TopologyView

SWEEP = "sweep"
SWEEP_EVERY = 1.0  # s between two looks for streams that fell silent, and gateways to call
REMEMBERED_REPAIRS = 4096  # (receiver, chunk) that were sent again a moment ago
ARRIVED = 0.5  # s in which a node that moved learns who else is in its zone
CAPACITY = 1 << 22  # bytes that a subscription holds for its reader


class Topics(OverlayProtocol):
    """Publishes, subscribes and, at a gateway, relays."""

    name: ClassVar[str] = "topics"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    emits: ClassVar[tuple[type[Event], ...]] = EMITTED
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
        overlay_time: Callable[[float], float] = own_clock,
    ) -> None:
        super().__init__(me, effects, rng, config)
        self.counts = TopicsCounts()
        self._book = book
        self._subscriptions = Subscriptions(base, config.interest_bytes, self.counts)
        self._core = Core(
            *(me, effects, rng, config, self.counts),
            members=base.view,
            links=links,
            book=book,
            may=may,
            wanted_here=self._subscriptions.wanted,
            overlay_time=overlay_time,
        )
        self._departures = Departures(self._core)
        self._bridge = Bridge(self._core, self._departures)
        self._arrivals = Arrivals(self._core, self._subscriptions, self._departures, self._bridge)
        self._changes = Changes(self._core, self._departures, self._arrivals, self._bridge)
        self._streams = self._arrivals.streams
        self._resent: Resent = {}
        self._packed = False  # its streams are on their way elsewhere
        self._timers: dict[str, Callable[[Any, float], None]] = {
            "out": self._on_out_timer,
            "gap": self._on_gap_timer,
            "ack": self._on_ack_timer,
            "recall": self._on_recall_timer,
            "arrived": self._on_arrived,
            "slow": partial(self._on_publisher_timer, Publisher.on_slow_timer),
            "room": partial(self._on_publisher_timer, Publisher.on_room_timer),
            "linger": partial(self._on_publisher_timer, Publisher.on_linger_timer),
        }

    def message_handlers(self) -> Mapping[type[Message], Handler]:
        """One handler for each message of the table in the package's docstring."""
        return {
            Offer: self._on_offer,
            Accept: self._on_accept,
            Reject: self._on_reject,
            Begin: self._on_begin,
            Data: self._on_data,
            Repair: self._on_data,
            TreeData: self._on_tree_data,
            Ack: self._on_ack,
            Nack: self._on_nack,
            Failed: self._on_failed,
            Leave: self._on_leave,
            Knock: self._on_knock,
            Recall: self._on_recall,
            Recalled: self._on_recalled,
            Moving: self._changes.on_moving,
        }

    def event_handlers(self) -> Mapping[type[Event], EventHandler]:
        """Members, their interest, and gateways come and go."""
        return {
            MemberJoined: self._changes.on_member,
            MemberFailed: self._changes.on_member_gone,
            MemberLeft: self._changes.on_member_gone,
            AttributesChanged: self._changes.on_attributes,
            GatewayAppointed: self._changes.on_gateways,
            GatewayMoved: self._changes.on_gateways,
            GatewaysChanged: self._changes.on_gateways,
            GatewayDismissed: self._changes.on_gateways,
            LinkUp: self._changes.on_link,
        }

    # -- commands of the application ------------------------------------------------------------

    def publish(self, topic: str, config: TopicConfig, now: float) -> Publisher:
        """Open a publisher of a topic."""
        check_topic(topic)
        self._check_here()
        self._check_own_right("publish", topic)
        publisher = Publisher(self._core, (self.me, self.rng.getrandbits(48)), topic, config)
        self._departures.add(publisher)
        self._declare(topic, now)
        publisher.review(now)
        return publisher

    def close_publisher(self, publisher: Publisher, now: float) -> None:
        """Publish no more; it lingers to serve who lacks something. StreamEnded follows."""
        publisher.close(now)
        self._changes.settle(publisher.key, now)
        self._declare(publisher.topic, now)

    def subscribe(
        self,
        pattern: str,
        now: float,
        *,
        replay: Replay | None = None,
        admit: Admit = anybody,
        capacity: int = CAPACITY,
    ) -> Subscription:
        """Take in everything that is published to topics of that pattern."""
        check_pattern(pattern)
        self._check_here()
        self._check_own_right("subscribe", pattern)
        one = Subscription(pattern, replay or Replay(), admit, capacity)
        if self._subscriptions.add(one):
            self._interest_changed(one, now)
        self._arrivals.subscribed(one, now)
        self._changes.review_later()
        return one

    def unsubscribe(self, one: Subscription, now: float) -> None:
        """Take in no more for that subscription."""
        if self._subscriptions.remove(one):
            self._interest_changed(one, now)
        self._arrivals.unsubscribed(one, now)
        self._changes.review_later()

    def resume(self, one: Subscription, now: float) -> None:
        """A subscription that was full has room again."""
        one.held = False
        for stream in list(self._streams.values()):
            if stream.has_room_again(one, now):
                self._arrivals.settle(stream, now)

    def _check_here(self) -> None:
        if self._packed:
            raise LocalProtocolError(f"{self.me} is moving: try again when it is there")

    def _check_own_right(self, what: str, topic: str) -> None:
        if not self._core.may(self.me, what, topic):
            raise LocalProtocolError(
                f"the certificate of {self.me!r} does not allow it to {what} to {topic!r}"
            )

    def _interest_changed(self, one: Subscription, now: float) -> None:
        self.effects.at_tick_end(self._subscriptions.tell)
        if one.is_exact:
            self._declare(one.pattern, now)

    def _declare(self, topic: str, now: float) -> None:
        if self._packed:
            return  # what is closed on the way is not unpacked
        publishes = self._departures.publishes(topic)
        subscribes = self._subscriptions.names(topic)
        self._book.declare(topic, publishes=publishes, subscribes=subscribes, now=now)

    @property
    def publishers(self) -> list[Publisher]:
        """Those of this node, also while they linger."""
        return list(self._departures.publishers.values())

    @property
    def streams(self) -> list[Incoming]:
        """What arrives at this node."""
        return list(self._streams.values())

    @property
    def subscriptions(self) -> list[Subscription]:
        """Those of this node, the oldest first."""
        return self._subscriptions.all()

    @property
    def gateways(self) -> GatewayBook:
        """Who stands for which zone in a topic."""
        return self._book

    # -- handshakes -----------------------------------------------------------------------------

    def _on_offer(self, src: NodeId, msg: Offer, now: float) -> None:
        self._arrivals.offered(src, msg, now)

    def _on_accept(self, src: NodeId, msg: Accept, now: float) -> None:
        out = self._found(src, msg)
        if out is None:
            return
        self._check_reader(src, out.topic, hands_on=out.hands_on(src, relay=msg.relay))
        if self._arrivals.starts_over(msg, now):
            return
        out.on_accept(src, msg, now)
        self._changes.settle(out.key, now)

    def _found(self, src: NodeId, msg: Accept | Ack | Recall) -> Outgoing | None:
        """The stream that a message is about; if it is not here its sender is told so."""
        out = self._departures.get(key_of(msg))
        if out is None:
            self.counts.stray += 1
            self.effects.send(src, Failed(*key_of(msg), GONE, msg.relay))
        return out

    def _check_reader(self, src: NodeId, topic: str, *, hands_on: bool) -> None:
        if not hands_on and not self._core.may(src, "subscribe", topic):
            raise RemoteProtocolError("may-not-subscribe", f"{src} to {topic!a}")

    def _on_reject(self, src: NodeId, msg: Reject, now: float) -> None:
        out = self._departures.get(key_of(msg))
        if out is not None:
            out.on_reject(Seat(src, msg.relay), msg.reason, now)
            self._changes.settle(out.key, now)

    def _on_begin(self, src: NodeId, msg: Begin, now: float) -> None:
        stream = self._streams.get((msg.origin, msg.stream, msg.relay))
        if stream is None:
            self.counts.stray += 1
            return
        stream.on_begin(src, msg.start, now, msg.live)
        self._arrivals.settle(stream, now)

    def _on_knock(self, src: NodeId, msg: Knock, now: float) -> None:
        for out in self._departures.of_topic(msg.topic):
            out.called_by(src, now)

    def _on_leave(self, src: NodeId, msg: Leave, now: float) -> None:
        out = self._departures.get(key_of(msg))
        if out is not None:
            out.on_leave(Seat(src, msg.relay), now, moved=msg.moved)
            self._changes.settle(out.key, now)

    def _on_failed(self, src: NodeId, msg: Failed, now: float) -> None:
        """The sender does not count on this node: knock, if it is still wanted."""
        stream = self._streams.get((msg.origin, msg.stream, msg.relay))
        if stream is None or stream.source != src or stream.over:
            return
        if now >= stream.moves_until:
            stream.detach(now)
        # Else its successor goes on where it was, or it does so itself when it has moved.
        told = msg.reason not in (GONE, MOVED) and now >= stream.moves_until
        called = self._arrivals.call_for(stream, now, src)  # so rarely is it told, too
        if called and told and stream.subscriptions and stream.begun:
            self.effects.emit(SubscriptionFailed(stream.topic, *stream.key, msg.reason))

    def pack(self, now: float) -> Luggage:
        """Take publishers, subscriptions and what arrives for them out of this machine."""
        luggage = pack(self._core, self._departures, self._arrivals, self._subscriptions, now)
        self._packed = True
        self.effects = self._core.effects  # who asks for a stream now must not hear that it is gone
        return luggage

    def unpack(self, luggage: Luggage, now: float) -> None:
        """Go on with them here: on this node, in another zone or at another address."""
        for one in luggage.subscriptions:
            if one.open:
                self._subscriptions.add(one)
        self.effects.at_tick_end(self._subscriptions.tell)
        self._arrivals.take_over(luggage, now)
        for publisher in luggage.publishers:
            self._departures.add(publisher)
            publisher.moved(self._core, now)
        self.effects.set_timer(("arrived", luggage.topics), now + ARRIVED)
        self._changes.review_later()

    def _on_arrived(self, topics: tuple[str, ...], now: float) -> None:
        """Tell the gateways; before it knew the others this node would have been all of them."""
        for topic in topics:
            self._declare(topic, now)

    # -- streams --------------------------------------------------------------------------------

    def _on_data(self, src: NodeId, msg: Data, now: float) -> None:
        stream = self._streams.get((msg.origin, msg.stream, msg.flags & RELAY > 0))
        if stream is None:
            stream = self._arrivals.met(src, msg, now)
            if stream is None:
                return
        elif src != stream.source:
            if msg.flags & ASK and stream.begun and msg.mode == Mode.ACK:
                self.effects.send(src, Leave(*stream.id, moved=True))  # the first was lost
            if self._arrivals.is_from_stranger(stream, src):
                self.counts.stray += 1
                return
        stream.on_data(src, msg, src, 1, now)
        if stream.over:
            self._arrivals.settle(stream, now)

    def _on_tree_data(self, src: NodeId, msg: TreeData, now: float) -> None:
        if src not in self._core.members:
            self.counts.stray += 1
            return
        tree.hand_on(self._core, src, msg)
        data = tree.untied(msg)
        stream = self._streams.get((msg.origin, msg.stream, False))
        if stream is None:
            stream = self._arrivals.met(msg.root, data, now)
            if stream is None:
                return
        stream.on_data(msg.root, data, src, msg.hops, now)
        self._arrivals.settle(stream, now)

    def _on_ack(self, src: NodeId, msg: Ack, now: float) -> None:
        out = self._found(src, msg)
        if out is None:
            return
        out.on_ack(src, msg, now)
        if out.ended:
            self._changes.settle(out.key, now)

    def _on_nack(self, src: NodeId, msg: Nack, now: float) -> None:
        out = self._departures.get(key_of(msg))
        if len(self._resent) > REMEMBERED_REPAIRS:
            self._resent.clear()
        if out is not None:
            self._check_reader(src, out.topic, hands_on=out.hands_on(src, relay=msg.relay))
            out.on_nack(src, msg, now, self._resent)
            upstream = self._streams.get((*out.key, True))
            if upstream is not None and msg.gaps and msg.gaps[0][0] < out.history.oldest:
                upstream.on_nack(Seat(src, msg.relay), msg.gaps)
                upstream.repairs.ask_upstream(msg.gaps, upstream.source)
            return
        stream = self._streams.get((msg.origin, msg.stream, False))
        if stream is not None and stream.mode is Mode.NACK:
            self._check_reader(src, stream.topic, hands_on=False)
            stream.on_nack(Seat(src), msg.gaps)
        else:
            self.counts.stray += 1

    def _on_recall(self, src: NodeId, msg: Recall, now: float) -> None:
        out = self._found(src, msg)
        if out is None:
            return
        self._check_reader(src, out.topic, hands_on=out.hands_on(src, relay=msg.relay))
        out.on_recall(src, msg, now)

    def _on_recalled(self, src: NodeId, msg: Recalled, now: float) -> None:
        stream = self._streams.get((msg.origin, msg.stream, msg.relay))
        if stream is None:
            self.counts.stray += 1
            return
        stream.on_recalled(src, msg, now)
        self._arrivals.settle(stream, now)

    # -- time -----------------------------------------------------------------------------------

    def on_start(self, now: float, kept: Mapping[bytes, bytes]) -> None:
        """Nothing is kept: streams end with their node."""
        self.effects.set_timer(SWEEP, now + SWEEP_EVERY)

    def on_timer(self, key: Hashable, now: float) -> None:
        """Each part of a stream has its own timers."""
        if key == SWEEP:
            self._arrivals.sweep(now)
            self._bridge.call_all(self._streams.values(), now)
            self.effects.set_timer(SWEEP, now + SWEEP_EVERY)
        elif isinstance(key, tuple):
            self._timers[key[0]](key[1], now)

    def _on_out_timer(self, key: StreamKey, now: float) -> None:
        out = self._departures.get(key)
        if out is not None:
            out.on_timer(now)
            self._changes.settle(key, now)

    def _on_gap_timer(self, key: ArrivalKey, now: float) -> None:
        stream = self._streams.get(key)
        if stream is not None:
            stream.on_gap_timer(now)
            self._arrivals.settle(stream, now)

    def _on_ack_timer(self, key: ArrivalKey, now: float) -> None:
        stream = self._streams.get(key)
        if stream is not None:
            stream.on_ack_timer(now)

    def _on_recall_timer(self, key: tuple[ArrivalKey, int], now: float) -> None:
        stream = self._streams.get(key[0])
        request = None if stream is None else stream.recall(key[1])
        if request is not None:
            request.on_timer(now)

    def _on_publisher_timer(
        self, due: Callable[[Publisher, float], None], key: StreamKey, now: float
    ) -> None:
        publisher = self._departures.publishers.get(key)
        if publisher is not None:
            due(publisher, now)
            self._changes.settle(key, now)

    def on_stop(self, now: float) -> None:
        """Say goodbye to senders and receivers."""
        self._subscriptions.stop()
        for publisher in self.publishers:
            publisher.close(now)
        for stream in self._streams.values():
            if stream.relay is None:
                self.effects.send(stream.source, Leave(*stream.id))

    # -- invariants -----------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """See the package's docstring."""
        for out in self._departures.all():
            out.check_invariants()
        for stream in self._streams.values():
            stream.check_invariants()
        for publisher in self.publishers:
            if publisher.finished:
                raise InvariantViolation(f"{self.me}: {publisher.key} is over and still there")
