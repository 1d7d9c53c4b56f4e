"""One node's topics under test: members, links and gateways change by command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pytest

from overlay.errors import RemoteProtocolError
from overlay.ids import NodeId
from overlay.protocol import Event, Message, Scope
from protocols.gateways.interface import RemoteGateway
from protocols.membership.events import (
    AttributesChanged,
    MemberFailed,
    MemberJoined,
    MemberLeft,
)
from protocols.membership.records import Record, State
from protocols.topics import Publisher, Subscription, TopicConfig, Topics, TopicsSettings
from protocols.topics.core import everybody_may
from protocols.topics.messages import Accept, Begin, Data, Offer, Repair
from protocols.topics.modes import Mode
from protocols.topics.names import word_of
from protocols.topology.interface import Kind
from tests.recording import CancelTimer, Emit, Recorded, RecordingEffects, Send, SetTimer, TickEnd
from tests.unit.zones.node import FixedMembership

ZONE: Scope = "hall"
TOPIC = "plant/7"
STREAM = 7  # of publishers elsewhere
LIFE = 99  # of receivers elsewhere
WINDOW = 4096
SIZE = 10  # that the messages of these tests count as


class FixedLinks:
    """Implements `TopologyView`."""

    zone = ZONE
    version = 0

    def __init__(self) -> None:
        self.peers: tuple[NodeId, ...] = ()

    @property
    def degree(self) -> int:
        return len(self.peers)

    def neighbours(self) -> tuple[NodeId, ...]:
        return self.peers

    def is_neighbour(self, peer: NodeId) -> bool:
        return peer in self.peers

    def kinds(self, peer: NodeId) -> Kind:
        return Kind.NONE


class FixedBook:
    """Implements `GatewayBook`; remembers what was declared."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.gateway: NodeId | None = None
        self.remote: dict[NodeId, RemoteGateway] = {}
        self.knows = True
        self.publishers: tuple[NodeId, ...] = ()
        self.subscribers: tuple[NodeId, ...] = ()
        self.declared: list[tuple[str, bool, bool]] = []

    def declare(self, topic: str, *, publishes: bool, subscribes: bool, now: float) -> None:
        self.declared.append((topic, publishes, subscribes))

    def gateway_of(self, topic: str) -> NodeId | None:
        return self.gateway

    def is_gateway(self, topic: str) -> bool:
        return self.gateway == self.me

    def remote_gateways(self, topic: str) -> Mapping[NodeId, RemoteGateway]:
        return self.remote if self.gateway == self.me else {}

    def knows_remote(self, topic: str) -> bool:
        return self.knows

    def local_publishers(self, topic: str) -> tuple[NodeId, ...]:
        return self.publishers

    def local_subscribers(self, topic: str) -> tuple[NodeId, ...]:
        return self.subscribers


class TopicsNode:
    """Runs the topics of "me"; what is put off to the end of a tick is done after each input."""

    def __init__(
        self,
        *members: NodeId,
        me: NodeId = "me",
        may: Callable[[NodeId, str, str], bool] = everybody_may,
        **settings: Any,
    ) -> None:
        self.now = 0.0
        self.effects = RecordingEffects()
        self.base = FixedMembership(ZONE, me)
        for name in members:
            self.base.put(name, 100)
        self.links = FixedLinks()
        self.book = FixedBook(me)
        self.topics = Topics(
            me,
            self.effects,
            Random(1),
            TopicsSettings(**settings),
            base=self.base,
            links=self.links,
            book=self.book,
            may=may,
        )
        self.topics.on_start(0.0, {})
        self.effects.drain()

    @property
    def counts(self) -> Any:
        return self.topics.counts

    # -- inputs ---------------------------------------------------------------------------------

    def end_tick(self) -> list[Recorded]:
        """Do what was put off; returns what was done since the last look."""
        done: list[Recorded] = []
        while recorded := self.effects.drain():
            done += [one for one in recorded if not isinstance(one, TickEnd)]
            for callback in dict.fromkeys(
                one.callback for one in recorded if isinstance(one, TickEnd)
            ):
                callback(self.now)
        self.topics.check_invariants()
        return done

    def receive(self, src: NodeId, *messages: Message) -> list[Recorded]:
        """Messages that arrive in one tick."""
        for msg in messages:
            self.topics.message_handlers()[type(msg)](src, msg, self.now)
        return self.end_tick()

    def refusal(self, src: NodeId, msg: Message) -> str:
        """Why a message is refused; nothing may come of it."""
        before = self.state()
        with pytest.raises(RemoteProtocolError) as refused:
            self.topics.message_handlers()[type(msg)](src, msg, self.now)
        assert self.end_tick() == []
        assert self.state() == before
        return refused.value.reason

    def state(self) -> object:
        """What a refused message must not change."""
        streams = [
            (one.id, one.source, one.order.expected, one.order.newest, one.order.gaps(), one.final)
            for one in self.topics.streams
        ]
        outs = [
            (out.key, out.history.oldest, out.history.newest, seat, one.acked, one.sent)
            for out in self.topics.publishers
            for seat, one in out.relations.items()
        ]
        return streams, outs

    def hear(self, event: Event) -> list[Recorded]:
        self.topics.event_handlers()[type(event)](event, self.now)
        return self.end_tick()

    def says(self, name: NodeId, *topics: str) -> list[Recorded]:
        """A member tells to which topics it subscribes."""
        fresh = name not in self.base
        self.base.put(name, 100, topics=",".join(map(word_of, topics)))
        done = self.hear(MemberJoined(ZONE, name, 100)) if fresh else []
        return done + self.hear(AttributesChanged(ZONE, name, ("topics",)))

    def fails(self, name: NodeId) -> list[Recorded]:
        self.base.drop(name)
        return self.hear(MemberFailed(ZONE, name))

    def leaves(self, name: NodeId) -> list[Recorded]:
        self.base.drop(name)
        self.base._records[name] = Record(name, 100, State.LEFT, 100, 100)
        return self.hear(MemberLeft(ZONE, name))

    def pass_time(self, seconds: float) -> list[Recorded]:
        """Fire what comes due, each at its time, but the sweep's own repetition is left out."""
        end = self.now + seconds
        done = self.end_tick()
        while self.effects.timers:
            key, at = min(self.effects.timers.items(), key=lambda timer: timer[1])
            if at > end:
                break
            self.now = max(self.now, at)
            del self.effects.timers[key]
            self.topics.on_timer(key, self.now)
            done += self.end_tick()
        self.now = end
        return [one for one in done if not (isinstance(one, SetTimer) and one.key == "sweep")]

    # -- commands ---------------------------------------------------------------------------------

    def publisher(self, topic: str = TOPIC, **config: Any) -> Publisher:
        return self.topics.publish(topic, TopicConfig(**config), self.now)

    def subscribe(self, pattern: str = TOPIC, **options: Any) -> Subscription:
        one = self.topics.subscribe(pattern, self.now, **options)
        self.end_tick()
        return one

    def put(self, publisher: Publisher, *items: Any, size: int = SIZE) -> list[Recorded]:
        """Publish each in a chunk of its own; all leave in this tick."""
        for item in items:
            assert publisher.put(item, size, self.now)
        return self.end_tick()

    def serve(
        self, *receivers: NodeId, topic: str = TOPIC, **config: Any
    ) -> tuple[Publisher, list[Recorded]]:
        """A publisher in whose stream these take part; and what was done for it."""
        for name in receivers:
            self.says(name, topic)
        publisher = self.publisher(topic, **config)
        done = self.end_tick()
        if publisher.mode is Mode.ACK:
            for name in receivers:
                done += self.receive(name, Accept(*publisher.key, LIFE, 0))
        return publisher, done

    def take_in(
        self, src: NodeId = "pub", start: int = 1, **subscription: Any
    ) -> tuple[Subscription, int]:
        """A subscription that takes part in an ack stream of `src`; and the receiver's life."""
        one = self.subscribe(**subscription)
        ((_, accept),) = sends(self.receive(src, offer(src, start=start)))
        assert isinstance(accept, Accept)
        self.receive(src, Begin(src, STREAM, start))
        return one, accept.receiver


# -- outputs ---------------------------------------------------------------------------------------


def sends(done: list[Recorded], kind: type[Message] = Message) -> list[Send]:
    return [one for one in done if isinstance(one, Send) and isinstance(one.msg, kind)]


def events(done: list[Recorded]) -> list[Event]:
    return [one.event for one in done if isinstance(one, Emit)]


def timers(done: list[Recorded]) -> list[SetTimer | CancelTimer]:
    return [one for one in done if isinstance(one, SetTimer | CancelTimer)]


def read(one: Subscription) -> list[Any]:
    """All that waits for its reader."""
    items: list[Any] = []
    while one.queue:
        items += one.take().items
    return items


def pack(*items: Any) -> bytes:
    return msgspec.msgpack.encode(list(items))


def data(
    first: int,
    *items: Any,
    origin: NodeId = "pub",
    mode: Mode = Mode.ACK,
    oldest: int = 1,
    flags: int = 0,
    sent_at: float = 0.0,
) -> Data:
    """A chunk of somebody's stream; without items: how far it is."""
    payload = pack(*items) if items else b""
    return Data(origin, STREAM, TOPIC, mode, first, len(items), oldest, sent_at, flags, payload)


def repair(first: int, *items: Any, **fields: Any) -> Repair:
    """The same, sent again."""
    one = data(first, *items, **fields)
    return Repair(*(getattr(one, name) for name in Data.__struct_fields__))


def offer(
    origin: NodeId = "pub",
    *,
    start: int = 1,
    newest: int = 0,
    mode: Mode = Mode.ACK,
    window: int = WINDOW,
    relay: bool = False,
    topic: str = TOPIC,
) -> Offer:
    return Offer(origin, STREAM, topic, mode, start, newest, window, 0, relay)
