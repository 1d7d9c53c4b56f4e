"""Scenarios of topics in which publishers, subscribers, gateways, homes or delegates die."""

from __future__ import annotations

from nodes.scenarios.registry import scenario
from nodes.scenarios.topic_world import (
    DELIVERY,
    Newsroom,
    both_modes,
    everywhere,
    stream_on,
    until_quiet,
)
from nodes.scenarios.zones import ZONES
from overlay.scenario import Pause, Scenario, Stage, Until

FLUSHED = 4.0  # s: less than an offer to somebody dead takes to fail
CLOSED = 2.0  # s: nobody is left whom to wait for

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


@scenario("topics-full-at-crash", nodes=6)
def full_at_crash(stage: Stage) -> Scenario:
    """A publisher dies while a subscriber does not read: it gets what was there, or a Gap."""
    room = Newsroom(stage)
    yield from room.start()
    sleeper = stage.rng.choice(room.members["a"][1:] + room.members["b"])
    for name in list(room.zone_of):
        if name not in ("a0", sleeper):
            room.subscribe(name)
    room.subscribe(sleeper, reads=False, capacity=500)
    stream = room.open("a0", both_modes(stage))
    yield room.connected(stream)
    stage.loss(stage.rng.choice((0.0, 0.2)))
    yield from stream_on(room, stream, 20)
    reader, one = room.readers[sleeper], room.subscriptions[sleeper]
    known = [at.order.newest for at in room.topics(sleeper).streams if at.id == (*stream, False)]
    room.crash("a0")
    stage.heal()
    yield Pause(stage.rng.uniform(0.0, 20.0))

    def caught_up() -> bool:
        if one.queue or one.held:
            room.read(sleeper)
        gaps = reader.reading(stream).gaps
        seen = {*reader.reading(stream).numbers, *(n for a, b in gaps for n in range(a, b + 1))}
        return set(range(1, known[0] + 1)) <= seen

    yield Until(caught_up, within=DELIVERY * 2, what="what was known of, or word that it is gone")
    yield Until(lambda: bool(reader.told), within=DELIVERY, what="word that the publisher failed")
    numbers = reader.reading(stream).numbers
    assert numbers == sorted(set(numbers)), numbers
    for other in room.readers.values():
        numbers = other.reading(stream).numbers
        assert numbers == list(range(1, len(numbers) + 1)) or other.reading(stream).gaps


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


@scenario("topics-gateway-crash-twice", nodes=9)
def gateway_crash_twice(stage: Stage) -> Scenario:
    """A gateway returns and dies again while its successor of then still stands for the zone."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    for zone in stage.rng.sample(ZONES, 2):
        victim = room.gateway(zone)
        if victim == "a0":
            continue
        for pause in (20, 60):
            room.crash(victim)
            yield from stream_on(room, stream, pause)
            room.restart(victim)
            room.subscribe(victim)
            yield room.settled()
            yield from stream_on(room, stream, stage.rng.randint(1, 20))
    yield from until_quiet(room)


@scenario("topics-gateway-restart", nodes=9)
def gateway_restart(stage: Stage) -> Scenario:
    """A gateway dies or stops, and is back before it is missed, while frames are lost."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    stage.loss(stage.rng.choice((0.0, 0.02, 0.1)))
    yield from stream_on(room, stream, 10)
    victim = room.gateway(stage.rng.choice(ZONES))
    if victim != "a0":
        room.crash(victim) if stage.rng.random() < 0.5 else room.stop(victim)
        yield Pause(stage.rng.uniform(0.0, 1.0))
        room.restart(victim)
        room.subscribe(victim)
    yield from stream_on(room, stream, stage.rng.randint(1, 60))
    stage.heal()
    yield room.settled()
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    yield from until_quiet(room)


@scenario("topics-flush-after-crash", nodes=12, both_worlds=False)
def flush_after_crash(stage: Stage) -> Scenario:
    """The gateways on both sides die together: who flushes waits for their successors alone."""
    room = Newsroom(stage)
    yield from room.start()
    publisher = next(name for name in room.members["a"] if name != room.gateway("a"))
    for name in list(room.zone_of):
        if name != publisher:
            room.subscribe(name)
    stream = room.open(publisher)
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    yield room.arrived()
    far = stage.rng.choice(ZONES[1:])
    for victim in (room.gateway(far), room.gateway("a")):
        room.crash(victim)
    yield from stream_on(room, stream, 20)
    out = room.publishers[stream]
    yield Until(lambda: out.all_settled, within=FLUSHED, what="all acknowledgements")
    yield from until_quiet(room)


@scenario("topics-flush-after-close", nodes=9, both_worlds=False)
def flush_after_close(stage: Stage) -> Scenario:
    """A gateway dies, and subscribers close once they have all: who flushes waits for nobody."""
    room = Newsroom(stage)
    yield from room.start()
    stream = everywhere(room)
    yield room.connected(stream)
    yield from stream_on(room, stream, 10)
    victim = room.gateway(stage.rng.choice(ZONES))
    if victim != "a0":
        room.crash(victim)
    yield from stream_on(room, stream, stage.rng.randint(20, 60))
    out = room.publishers[stream]
    last = out.next_number - 1

    def all_left() -> bool:
        for name, reader in list(room.readers.items()):
            if reader.reading(stream).numbers[-1:] == [last]:
                room.unsubscribe(name)
        return not room.readers

    yield Until(all_left, within=DELIVERY, what="all messages")
    yield Until(lambda: out.all_settled, within=CLOSED, what="all acknowledgements")
    room.history.check(gaps_allowed=False)


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
