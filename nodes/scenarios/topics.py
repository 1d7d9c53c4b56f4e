"""Scenarios of topics: each subscriber gets everything once and in order, or is told."""

from __future__ import annotations

from nodes.scenarios.registry import scenario
from nodes.scenarios.topic_world import (
    DELIVERY,
    NACK,
    TOPIC,
    Newsroom,
    both_modes,
    everywhere,
    stream_on,
    until_quiet,
)
from overlay.scenario import Pause, Scenario, Stage, Until
from overlay.sim import Delay, Duplicate, Reorder
from protocols.topics import Replay, TopicConfig, TopicsSettings
from protocols.topics.config import SlowPolicy

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


@scenario("topics-second-replay", nodes=6)
def second_replay(stage: Stage) -> Scenario:
    """More subscriptions of nodes that get a stream already: each gets its replay, then the rest.

    Exactly once and in order, in both zones, while messages are published and some are lost.
    """
    room = Newsroom(stage)
    yield from room.start()
    config = TopicConfig(reliability=stage.rng.choice(("ack", "nack")), keep=1000, linger=20.0)
    stream = everywhere(room, config)
    yield room.connected(stream)
    yield from stream_on(room, stream, 20, 0.02)
    yield room.arrived()
    stage.loss(stage.rng.choice((0.0, 0.05, 0.2)))
    for _ in range(4):
        yield from stream_on(room, stream, stage.rng.randint(0, 5), 0.02)
        name = stage.rng.choice(list(room.readers))
        amount = stage.rng.choice((1, 10, 10_000))
        before = room.position(name, stream)
        reader = room.subscribe_too(name, replay=Replay.last(amount))
        reader.reading(stream).owed_from = max(1, before - amount)
    yield from stream_on(room, stream, 10, 0.02)
    stage.heal()
    yield from until_quiet(room)
    for readers in room.others.values():
        for reader in readers:
            reading = reader.reading(stream)
            assert reading.numbers[0] == reading.owed_from, reading
    yield from room.close()


@scenario("topics-late-zone", nodes=9)
def late_zone(stage: Stage) -> Scenario:
    """A zone becomes interested late: its gateway fetches what is kept, only for who asks for it.

    One wants no replay, one all, and one has a subscription of each kind.
    """
    room = Newsroom(stage)
    yield from room.start()
    stream = room.open("a0", TopicConfig(reliability=stage.rng.choice(("ack", "nack")), keep=100))
    room.subscribe("a1")
    if stage.rng.random() < 0.5:
        room.subscribe("c0")  # then there is a gateway already that hands it on
    yield room.connected(stream)
    for _ in range(40):
        room.publish(stream)
        yield Pause(0.02)
    yield room.arrived()
    stage.loss(stage.rng.choice((0.0, 0.05, 0.2)))
    room.subscribe("b0")
    room.subscribe("b1", replay=Replay.all())
    room.subscribe("b2")
    both = room.subscribe_too("b2", replay=Replay.last(10))
    both.reading(stream).owed_from = 31
    yield room.connected(stream)
    yield from stream_on(room, stream, 20, 0.02)
    stage.heal()
    yield from until_quiet(room)
    for reader, first in ((room.readers["b0"], 41), (room.readers["b1"], 1), (both, 31)):
        assert reader.reading(stream).numbers[0] == first, reader
    assert room.readers["b2"].reading(stream).numbers[0] == 41
    yield from room.close()


@scenario("topics-ordered-replay", nodes=9)
def ordered_replay(stage: Stage) -> Scenario:
    """Ordered streams keep some for who joins late, at gateways, too."""
    room = Newsroom(stage)
    yield from room.start()
    room.subscribe("a1")
    stream = room.open("a0", TopicConfig(reliability="ordered", keep=20))
    room.history.unordered.pop(stream)  # nothing is lost here, so it is held to the same
    yield room.connected(stream)
    for _ in range(30):
        room.publish(stream)
        yield Pause(0.02)
    yield room.arrived()
    room.subscribe("a2", replay=Replay.last(5))
    room.subscribe("b0", replay=Replay.all())  # the first one of its zone
    yield room.connected(stream)
    yield room.replayed()  # else what follows takes the place of what is kept
    for _ in range(5):
        room.publish(stream)
        yield Pause(0.02)
    last = room.subscribe_too("b0", replay=Replay.last(7))
    yield room.replayed()
    room.publish(stream)
    last.reading(stream).owed_from = 29
    yield room.arrived()
    assert room.readers["a2"].reading(stream).numbers == list(range(26, 37))
    assert room.readers["b0"].reading(stream).numbers == list(range(11, 37))
    assert last.reading(stream).numbers == list(range(29, 37))
