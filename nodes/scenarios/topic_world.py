"""The stage for scenarios of topics: zones whose members publish and subscribe, and a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nodes.scenarios.gateways import QUICK as QUICK_GATEWAYS
from nodes.scenarios.topic_history import History, Reader, Stream
from nodes.scenarios.zones import SETTLING, SETUP, Overlay
from overlay.host import Host, Recipe
from overlay.ids import NodeId, Ring
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.gateways import Gateways, gateway_key, topic_id
from protocols.membership.machine import Membership
from protocols.topics import (
    Gap,
    Publisher,
    PublisherFailed,
    SubscriberFailed,
    Subscription,
    SubscriptionFailed,
    TopicConfig,
    Topics,
    TopicsSettings,
)
from protocols.topology import Topology, TopologySettings

QUICK = TopicsSettings(
    fail_after=8.0, handshake_within=8.0, lost_grace=1.0, heartbeat=1.0, silence=12.0, remember=60.0
)
ACK = TopicConfig(reliability="ack", linger=20.0)
NACK = TopicConfig(reliability="nack", linger=20.0)
TOPIC = "plant/north/7"
DELIVERY = 60.0  # s until everything has arrived


class Newsroom(Overlay):
    """Zones whose members publish and subscribe, and a history of all of it."""

    def __init__(self, stage: Stage, *, supervisors: int = 2, settings: TopicsSettings = QUICK):
        setup = replace(SETUP, gateways=QUICK_GATEWAYS)
        super().__init__(stage, supervisors=supervisors, setup=setup)
        self.settings = settings
        self.history = History()
        self.readers: dict[NodeId, Reader] = {}
        self.others: dict[NodeId, list[Reader]] = {}  # more subscriptions of the same node
        self.subscriptions: dict[NodeId, Subscription] = {}
        self.publishers: dict[Stream, Publisher] = {}
        self.failed: list[SubscriberFailed] = []
        self._lives = 0

    def recipe(self, name: NodeId, zone: Scope = "") -> Recipe:
        """A member with links and topics, or a supervisor."""
        assemble = super().recipe(name, zone)

        def add(host: Host) -> None:
            assemble(host)
            if not zone:
                return
            base = host.protocol(Membership, zone)
            links = host.add(Topology, TopologySettings(), zone, members=base.view)
            host.add(Topics, self.settings, base=base, links=links, book=host.protocol(Gateways))
            host.listen(Gap, lambda event: self._told_gap(host.me, event))
            for kind in (SubscriptionFailed, PublisherFailed):
                host.listen(kind, lambda event: self._told(host.me, event))
            host.listen(SubscriberFailed, self.failed.append)

        return add

    def topics(self, name: NodeId) -> Topics:
        """The topics of one who runs."""
        return self.stage.protocol(name, Topics)

    def _told_gap(self, name: NodeId, event: Gap) -> None:
        if name in self.readers:
            for reader in (self.readers[name], *self.others.get(name, ())):
                self.history.told(reader, event)

    def _told(self, name: NodeId, event: SubscriptionFailed | PublisherFailed) -> None:
        if name in self.readers:
            self.readers[name].told.append(repr(event))

    # -- acts -------------------------------------------------------------------------------------

    def subscribe(
        self, name: NodeId, pattern: str = TOPIC, *, reads: bool = True, **options: Any
    ) -> None:
        """Let a member subscribe, and read whatever comes."""
        self._lives += 1
        reader = Reader(name, self._lives)
        self.history.readers.append(reader)
        self.readers[name] = reader

        def command(host: Host) -> Callable[[float], Subscription]:
            return lambda now: host.protocol(Topics).subscribe(pattern, now, **options)

        one: Subscription = self.stage.call(name, command)
        self.subscriptions[name] = one

        def read() -> None:
            while one.queue:
                self.history.take(reader, one.take())

        if reads:
            one.on_batch(read)

    def subscribe_too(self, name: NodeId, pattern: str = TOPIC, **options: Any) -> Reader:
        """Let a member that subscribes already do so once more, and read on both sides."""
        self._lives += 1
        reader = Reader(name, self._lives)
        self.history.readers.append(reader)
        self.others.setdefault(name, []).append(reader)

        def command(host: Host) -> Callable[[float], Subscription]:
            return lambda now: host.protocol(Topics).subscribe(pattern, now, **options)

        one: Subscription = self.stage.call(name, command)

        def read() -> None:
            while one.queue:
                self.history.take(reader, one.take())

        one.tell_gap = lambda gap: self.history.told(reader, gap)
        one.on_batch(read)
        return reader

    def read(self, name: NodeId) -> None:
        """Let a reader that did not read catch up."""
        one, reader = self.subscriptions[name], self.readers[name]
        while one.queue:
            self.history.take(reader, one.take())
        self.stage.call(name, lambda host: host.protocol(Topics).resume, one)

    def unsubscribe(self, name: NodeId) -> None:
        """Let it end its subscription."""
        self.readers.pop(name).gone = True
        one = self.subscriptions.pop(name)
        self.stage.call(name, lambda host: host.protocol(Topics).unsubscribe, one)

    def open(self, name: NodeId, config: TopicConfig = ACK, topic: str = TOPIC) -> Stream:
        """Let a member begin to publish."""
        publisher: Publisher = self.stage.call(
            name, lambda host: host.protocol(Topics).publish, topic, config
        )
        self.publishers[publisher.key] = publisher
        if config.reliability in ("ordered", "unordered"):
            self.history.unordered[publisher.key] = None
        return publisher.key

    def publish(self, stream: Stream, count: int = 1) -> int:
        """Publish so many, as far as there is room; returns how many."""
        publisher = self.publishers[stream]
        if stream[0] not in self.stage.names:
            return 0
        for done in range(count):
            number = publisher.next_number
            message = [*stream, number]

            def put(now: float, message: list[object] = message) -> bool:
                return publisher.put(message, 64, now)

            if not self.stage.call(stream[0], lambda _host: put):
                return done
            self.history.publish(stream, number)
        return count

    def crash(self, name: NodeId) -> None:
        """End a node at once; its streams and its reader end with it."""
        self._end(name)
        self.stage.crash(name)

    def stop(self, name: NodeId) -> None:
        """Let it end in good order."""
        self._end(name)
        self.stage.stop(name)

    def _end(self, name: NodeId) -> None:
        if name in self.readers:
            self.readers.pop(name).gone = True
            self.subscriptions.pop(name, None)
        for reader in self.others.pop(name, ()):
            reader.gone = True
        for stream in [one for one in self.publishers if one[0] == name]:
            del self.publishers[stream]

    def restart(self, name: NodeId) -> None:
        """Start it again."""
        self.stage.restart(name)

    # -- who is who -------------------------------------------------------------------------------

    def gateway(self, zone: Scope, topic: str = TOPIC) -> NodeId:
        """Who stands for a zone."""
        return Ring(self.running(zone)).responsible_for(gateway_key(topic))

    def home(self, topic: str = TOPIC) -> NodeId:
        """Who keeps the list of gateways."""
        inside = [name for name in self.stage.names if self.zones(name).in_management]
        return Ring(inside).responsible_for(topic_id(topic))

    def position(self, name: NodeId, stream: Stream) -> int:
        """The next message of a stream that its subscriptions at a node get."""
        (arriving,) = [one for one in self.topics(name).streams if one.id == (*stream, False)]
        return arriving.order.expected

    # -- what must come true ----------------------------------------------------------------------

    def taking_part(self, stream: Stream) -> bool:
        """Whether all readers know where the stream begins for them."""
        return all(
            any(one.id == (*stream, False) and one.begun for one in self.topics(name).streams)
            for name in self.readers
        )

    def connected(self, *streams: Stream) -> Until:
        """Wait until everybody takes part; from then on everything is owed."""

        def all_do() -> bool:
            if not all(self.taking_part(stream) for stream in streams):
                return False
            for stream in streams:
                self.history.owe(self.readers.values(), stream)
            return True

        return Until(all_do, within=SETTLING, what="all subscribers")

    def replayed(self) -> Until:
        """Wait until all who wanted something of the time before have it."""

        def all_have() -> bool:
            return not any(
                one.recalls for name in self.readers for one in self.topics(name).streams
            )

        return Until(all_have, within=DELIVERY, what="all replays")

    def arrived(self) -> Until:
        """Wait until everything is where it must be."""

        def complete() -> bool:
            return all(self.history.complete(stream) for stream in self.publishers)

        return Until(complete, within=DELIVERY, what="all messages")

    def close(self) -> Scenario:
        """Close all publishers; nothing of them must be left."""
        for stream, publisher in list(self.publishers.items()):
            self.stage.call(
                stream[0], lambda host: host.protocol(Topics).close_publisher, publisher
            )
        yield Until(self._nothing_left, within=DELIVERY, what="the end of all streams")

    def _nothing_left(self) -> bool:
        return not any(
            self.topics(name).streams or self.topics(name).publishers
            for name in self.stage.names
            if name in self.zone_of
        )


def everywhere(room: Newsroom, config: TopicConfig = ACK) -> Stream:
    """All members subscribe but the publisher, who is the first of zone a."""
    for name in list(room.zone_of):
        if name != "a0":
            room.subscribe(name)
    return room.open("a0", config)


def stream_on(room: Newsroom, stream: Stream, rounds: int, pause: float = 0.05) -> Scenario:
    """Publish a few messages again and again."""
    for _ in range(rounds):
        room.publish(stream, room.stage.rng.randint(1, 5))
        yield Pause(pause)


def both_modes(stage: Stage) -> TopicConfig:
    """Ack in most seeds, nack in the others."""
    return ACK if stage.rng.random() < 0.7 else NACK


def until_quiet(room: Newsroom, *, gaps_allowed: bool = False) -> Scenario:
    """Everything arrives, and the history is as it must be."""
    yield room.arrived()
    room.history.check(gaps_allowed=gaps_allowed)
