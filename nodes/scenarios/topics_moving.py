"""Scenarios of peers that change their zone, or only their address, in mid-stream."""

from __future__ import annotations

from nodes.scenarios.registry import scenario
from nodes.scenarios.topic_world import (
    QUICK,
    Newsroom,
    both_modes,
    everywhere,
    stream_on,
    until_quiet,
)
from nodes.scenarios.zones import ZONES
from overlay.host import Host, Recipe
from overlay.ids import NodeId
from overlay.protocol import Scope
from overlay.scenario import Pause, Scenario, Stage, Until
from protocols.topics import Topics

SETTLED = 5.0  # s until all have acknowledged what was published during a move


class Caravan(Newsroom):
    """A newsroom whose members may change their zone."""

    def recipe(self, name: NodeId, zone: Scope = "") -> Recipe:
        """As of the zone in which a member is when it starts."""
        if not zone:
            return super().recipe(name)

        def add(host: Host) -> None:
            recipe = super(Caravan, self).recipe(name, self.zone_of[name])
            recipe(host)

        return add

    def move(self, name: NodeId, zone: Scope, away: float) -> Scenario:
        """Leave, be away for a while, and go on in that zone, which may be the same."""
        luggage = self.stage.call(name, lambda host: host.protocol(Topics).pack)
        self.stage.stop(name)
        yield Pause(away)
        self.members[self.zone_of[name]].remove(name)
        self.members[zone].append(name)
        self.zone_of[name] = zone
        self.stage.restart(name)
        self.stage.call(name, lambda host: host.protocol(Topics).unpack, luggage)

    def told_nothing(self) -> None:
        """AssertionError when somebody heard that a publisher or a subscription failed."""
        told = {name: reader.told for name, reader in self.readers.items() if reader.told}
        assert not told, told
        assert not self.failed, self.failed


def some_zone(stage: Stage) -> Scope:
    """One of them, perhaps the one where a member is: then only its address changes."""
    return stage.rng.choice(ZONES)


@scenario("topics-moving-publisher", nodes=9, both_worlds=False)
def moving_publisher(stage: Stage) -> Scenario:
    """A publisher changes its zone again and again; its numbers go on everywhere."""
    room = Caravan(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    yield room.connected(stream)
    yield from stream_on(room, stream, 20)
    out = room.publishers[stream]
    for _ in range(3):
        yield from room.move("a0", some_zone(stage), stage.rng.uniform(0.0, 2.0))
        yield from stream_on(room, stream, stage.rng.randint(1, 60))
        if stage.rng.random() < 0.5:
            yield Until(lambda: out.all_settled, within=SETTLED, what="all acknowledgements")
            yield from stream_on(room, stream, 10)
    yield from until_quiet(room)
    yield Until(lambda: out.all_settled, within=SETTLED, what="all acknowledgements")
    room.told_nothing()
    yield room.settled()
    yield from stream_on(room, stream, 20)
    yield from until_quiet(room)


@scenario("topics-moving-subscriber", nodes=9, both_worlds=False)
def moving_subscriber(stage: Stage) -> Scenario:
    """Subscribers, among them gateways, change their zones, and get everything once."""
    room = Caravan(stage)
    yield from room.start()
    streams = [everywhere(room, both_modes(stage)), room.open("b0", both_modes(stage))]
    yield room.connected(*streams)
    yield from stream_on(room, streams[0], 20)
    for _ in range(3):
        mover = stage.rng.choice([name for name in room.readers if name != "b0"])
        if len(room.members[room.zone_of[mover]]) == 1:
            continue  # nobody would be left to stand for the zone
        for one in streams:
            room.publish(one, 5)
        yield from room.move(mover, some_zone(stage), stage.rng.uniform(0.0, 2.0))
        for one in streams:
            yield from stream_on(room, one, stage.rng.randint(1, 40))
    yield from until_quiet(room)
    room.told_nothing()
    outs = [room.publishers[one] for one in streams]
    what = "all acknowledgements"
    # For a zone whose last subscribers went with their gateway nobody is left to say so.
    within = QUICK.fail_after + SETTLED
    yield Until(lambda: all(out.all_settled for out in outs), within=within, what=what)


@scenario("topics-moving-all", nodes=9, both_worlds=False)
def moving_all(stage: Stage) -> Scenario:
    """Publisher and subscribers move, one after the other, while frames are lost."""
    room = Caravan(stage)
    yield from room.start()
    stream = everywhere(room, both_modes(stage))
    room.subscribe_too("a1")
    yield room.connected(stream)
    stage.loss(stage.rng.choice((0.0, 0.02, 0.1)))
    for _ in range(3):
        mover = stage.rng.choice(("a0", *room.readers))
        if len(room.members[room.zone_of[mover]]) == 1:
            continue
        yield from stream_on(room, stream, 10)
        yield from room.move(mover, some_zone(stage), stage.rng.uniform(0.0, 1.0))
        yield from stream_on(room, stream, stage.rng.randint(1, 60))
    stage.heal()
    yield from until_quiet(room)
    yield room.settled()
    yield from stream_on(room, stream, 10)
    yield from until_quiet(room)
