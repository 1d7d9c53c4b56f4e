"""Scenarios of topics: each subscriber gets everything once and in order, or is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nodes.scenarios.gateways import QUICK as QUICK_GATEWAYS
from nodes.scenarios.registry import scenario
from nodes.scenarios.topic_history import History, Reader, Stream
from nodes.scenarios.zones import SETTLING, SETUP, ZONES, Overlay
from overlay.host import Host, Recipe
from overlay.ids import NodeId, Ring
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder
from protocols.gateways import Gateways, gateway_key, topic_id
from protocols.membership.machine import Membership
from protocols.topics import (
    Gap,
    Publisher,
    PublisherFailed,
    Replay,
    SubscriberFailed,
    Subscription,
    SubscriptionFailed,
    TopicConfig,
    Topics,
    TopicsSettings,
)
from protocols.topics.config import SlowPolicy
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
            self.history.told(self.readers[name], event)

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
        if name in self.readers:
            self.readers.pop(name).gone = True
            self.subscriptions.pop(name, None)
        for stream in [one for one in self.publishers if one[0] == name]:
            del self.publishers[stream]
        self.stage.crash(name)

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


# -- one network after the other ------------------------------------------------------------------


@scenario("topics-basic", nodes=9)
def basic(stage: Stage) -> Scenario:
    """A stream in each reliable mode reaches all members of three zones, and ends."""
    room = Newsroom(stage)
    yield from room.start()
    first, second = everywhere(room), room.open("b1", NACK)
    yield room.connected(first, second)
    for _ in range(20):
        room.publish(first, 5)
        room.publish(second, 5)
        yield Pause(0.02)
    yield from until_quiet(room)
    assert not room.failed, room.failed
    yield from room.close()


@scenario("topics-unreliable", nodes=9)
def unreliable(stage: Stage) -> Scenario:
    """Without faults the modes that may lose lose nothing."""
    room = Newsroom(stage)
    yield from room.start()
    for name in list(room.zone_of):
        if name != "a0":
            room.subscribe(name, "plant/*/7")
    streams = [room.open("a0", TopicConfig(reliability=mode)) for mode in ("ordered", "unordered")]
    for _ in range(20):  # the first ones teach where the streams go
        for stream in streams:
            room.publish(stream)
        yield Pause(0.5)
    before = {stream: room.history.published[stream] for stream in streams}
    for _ in range(50):
        for stream in streams:
            room.publish(stream, 2)
        yield Pause(0.02)
    last = dict(room.history.published)

    def all_have_it() -> bool:
        return all(
            set(range(before[stream] + 1, last[stream] + 1)) <= set(reader.reading(stream).numbers)
            for reader in room.readers.values()
            for stream in streams
        )

    yield Until(all_have_it, within=DELIVERY, what="all messages")
    ordered = streams[0]
    for reader in room.readers.values():
        numbers = reader.reading(ordered).numbers
        assert numbers == sorted(set(numbers)), f"{reader.name} got {numbers}"


@scenario("topics-loss", nodes=9)
def loss(stage: Stage) -> Scenario:
    """Up to three frames in ten are lost, also those of the handshakes."""
    room = Newsroom(stage)
    yield from room.start()
    p = stage.rng.choice((0.05, 0.15, 0.3))
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    stage.loss(p)
    yield from stream_on(room, stream, 60)
    stage.heal()
    yield from until_quiet(room, gaps_allowed=p > 0.2)
    if p <= 0.05:
        assert not room.failed, room.failed


@scenario("topics-duplication", nodes=9, faults=(Duplicate(0.2, within=0.05),))
def duplication(stage: Stage) -> Scenario:
    """Frames arrive twice, messages once."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    yield from stream_on(room, stream, 60)
    yield from until_quiet(room)
    yield from room.close()


@scenario("topics-reordering", nodes=9, faults=(Reorder(0.3, by=0.05), Delay(0.001, jitter=0.02)))
def reordering(stage: Stage) -> Scenario:
    """Frames overtake each other, messages do not."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    yield from stream_on(room, stream, 60)
    yield from until_quiet(room)


@scenario("topics-short-partition", nodes=9)
def short_partition(stage: Stage) -> Scenario:
    """A cut through all zones that is shorter than the time to fail costs nothing."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    names = stage.names
    for _ in range(3):
        stage.rng.shuffle(names)
        cut = stage.rng.randint(1, len(names) - 1)
        stage.partition([names[:cut], names[cut:]])
        yield from stream_on(room, stream, 10)
        stage.heal()
        yield from stream_on(room, stream, 20)
    yield from until_quiet(room)
    assert not room.failed, room.failed


@scenario("topics-long-partition", nodes=9)
def long_partition(stage: Stage) -> Scenario:
    """After a cut that is longer all go on, and who missed something was told."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    names = stage.names
    stage.rng.shuffle(names)
    cut = stage.rng.randint(1, len(names) - 1)
    stage.partition([names[:cut], names[cut:]])
    yield from stream_on(room, stream, 100, 0.3)
    stage.heal()
    yield room.settled()
    yield from stream_on(room, stream, 20)
    yield from until_quiet(room, gaps_allowed=True)


# -- who dies -------------------------------------------------------------------------------------


@scenario("topics-publisher-crash", nodes=9)
def publisher_crash(stage: Stage) -> Scenario:
    """What a dead publisher sent arrives in order up to some message; its next life is another."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    yield from stream_on(room, stream, 20)
    room.crash("a0")
    yield Pause(stage.rng.uniform(0.0, 5.0))
    room.restart("a0")
    yield room.settled()
    again = room.open("a0")
    yield room.connected(again)
    yield from stream_on(room, again, 20)
    yield room.arrived()
    for reader in room.readers.values():
        numbers = reader.reading(stream).numbers
        assert numbers == list(range(1, len(numbers) + 1)) or reader.reading(stream).gaps
        del reader.readings[stream]
    room.history.check(gaps_allowed=False)


@scenario("topics-subscriber-crash", nodes=9)
def subscriber_crash(stage: Stage) -> Scenario:
    """Subscribers die and return; the others miss nothing, and wait for the dead not for ever."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    for _ in range(3):
        gateways = [room.gateway(zone) for zone in ZONES]
        candidates = [name for name in room.readers if name not in gateways]
        victim = stage.rng.choice(candidates)
        yield from stream_on(room, stream, 10)
        room.crash(victim)
        yield from stream_on(room, stream, 40)
        room.restart(victim)
        room.subscribe(victim)
        yield from stream_on(room, stream, 40)
    yield room.settled()
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    yield from until_quiet(room)
    yield from room.close()


@scenario("topics-gateway-crash", nodes=9)
def gateway_crash(stage: Stage) -> Scenario:
    """Gateways die in mid-stream, and nothing is lost or doubled."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    for zone in stage.rng.sample(ZONES, 2):
        yield from stream_on(room, stream, 20)
        victim = room.gateway(zone)
        if victim == "a0":
            continue
        room.crash(victim)
        yield from stream_on(room, stream, 60)
        room.restart(victim)
        room.subscribe(victim)
        yield room.settled()
        yield from stream_on(room, stream, 20)
    yield from until_quiet(room)


@scenario("topics-home-crash", nodes=9)
def home_crash(stage: Stage) -> Scenario:
    """The home of the topic dies, with or without the gateway of a zone."""
    room = Newsroom(stage, supervisors=3)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    yield from stream_on(room, stream, 20)
    victims = {room.home(): None}
    if stage.rng.random() < 0.5:
        victims[room.gateway(stage.rng.choice(ZONES))] = None
    victims.pop("a0", None)
    for victim in victims:
        room.crash(victim)
    yield from stream_on(room, stream, 80)
    yield from until_quiet(room)


@scenario("topics-delegates-crash", nodes=12)
def delegates_crash(stage: Stage) -> Scenario:
    """All delegates of a zone die together."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    yield from stream_on(room, stream, 20)
    for victim in room.serving(stage.rng.choice(ZONES)):
        if victim != "a0":
            room.crash(victim)
    yield from stream_on(room, stream, 100)
    yield from until_quiet(room)


@scenario("topics-zone-split", nodes=12)
def zone_split(stage: Stage) -> Scenario:
    """A zone splits into halves that both reach the others, and becomes one again."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    members = room.running(stage.rng.choice(ZONES[1:]))
    half = len(members) // 2
    stage.partition([members[:half], [n for n in stage.names if n not in members[:half]]])
    yield from stream_on(room, stream, 60, 0.2)
    stage.heal()
    yield room.settled()
    yield from stream_on(room, stream, 20)
    yield from until_quiet(room, gaps_allowed=True)


# -- who comes, goes and waits --------------------------------------------------------------------


@scenario("topics-slow", nodes=6)
def slow(stage: Stage) -> Scenario:
    """One subscriber does not read: the publisher waits, drops or lets go, as it was told."""
    room = Newsroom(stage)
    yield from room.start()
    policies: tuple[SlowPolicy, ...] = ("wait", "drop-oldest", "disconnect")
    policy = stage.rng.choice(policies)
    config = TopicConfig(
        slow=policy, history_messages=200, history_bytes=20_000, window_bytes=4000, linger=20.0
    )
    sleeper = stage.rng.choice(room.members["a"][1:] + room.members["b"])
    for name in list(room.zone_of):
        if name not in ("a0", sleeper):
            room.subscribe(name)
    room.subscribe(sleeper, reads=False, capacity=2000)
    stream = room.open("a0", config)
    yield room.connected(stream)
    published = 0
    for _ in range(200):
        published += room.publish(stream, 5)
        yield Pause(0.01)
    publisher = room.publishers[stream]
    assert publisher.history.bytes <= config.history_bytes
    assert publisher.history.messages <= config.history_messages
    if policy == "wait":
        assert published < 1000, "nobody waited"
    one = room.subscriptions[sleeper]

    def catch_up() -> bool:
        if one.queue:
            room.read(sleeper)
        return room.history.complete(stream)

    yield Until(catch_up, within=DELIVERY, what="the one who slept to catch up")
    room.history.check(gaps_allowed=policy != "wait")


@scenario("topics-storm", nodes=9)
def storm(stage: Stage) -> Scenario:
    """Subscriptions come and go all the time; those that stay miss nothing."""
    room = Newsroom(stage)
    yield from room.start()
    stayers = ["a1", "b0", "c1"]
    for name in stayers:
        room.subscribe(name, stage.rng.choice((TOPIC, "plant/*/7", "**")))
    stream = room.open("a0")
    yield room.connected(stream)
    others = [name for name in room.zone_of if name not in (*stayers, "a0")]
    for _ in range(60):
        name = stage.rng.choice(others)
        if name in room.readers:
            room.unsubscribe(name)
        else:
            room.subscribe(name, stage.rng.choice((TOPIC, "plant/**")))
        room.publish(stream, stage.rng.randint(0, 5))
        yield Pause(stage.rng.uniform(0.0, 0.3))
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    yield from until_quiet(room)
    yield from room.close()


@scenario("topics-routes", nodes=12)
def routes(stage: Stage) -> Scenario:
    """Delivery stays exact while direct links become a tree, and the other way round."""
    settings = TopicsSettings(heartbeat=1.0, silence=12.0, tree_from=3, tree_until=1)
    room = Newsroom(stage, settings=settings)
    yield from room.start()
    stream = room.open("a0", both_modes(stage))
    room.subscribe("a1")
    room.subscribe("b0")
    yield room.connected(stream)
    rest = [name for name in room.zone_of if name not in ("a0", "a1", "b0")]
    for _ in range(2):
        for name in rest:
            room.subscribe(name)
            yield from stream_on(room, stream, 3)
        yield room.connected(stream)
        yield from stream_on(room, stream, 10)
        for name in rest:
            room.unsubscribe(name)
            yield from stream_on(room, stream, 3)
    yield from until_quiet(room)


@scenario("topics-replay", nodes=6)
def replay(stage: Stage) -> Scenario:
    """Who joins late gets what it asks for of the time before."""
    room = Newsroom(stage)
    yield from room.start()
    config = TopicConfig(
        reliability=stage.rng.choice(("ack", "nack")), keep=100, history_messages=100_000
    )
    stream = room.open("a0", config)
    room.subscribe("b0")
    yield room.connected(stream)
    for _ in range(40):
        room.publish(stream)
        yield Pause(0.02)
    yield room.arrived()
    room.subscribe("a1", replay=Replay.last(10))
    room.subscribe("b1", replay=Replay.all())
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    yield room.arrived()
    assert room.readers["a1"].reading(stream).numbers[0] == 31
    assert room.readers["b1"].reading(stream).numbers[0] == 1
    room.history.check(gaps_allowed=False)
